"""A job's pods, sorted and counted.

A pod that has ended is counted in two steps, so that none is counted twice or not at all whatever happens in
between: first its uid is written to the status, then its finalizer is removed, then the count is raised and
the uid forgotten. A uid in the status without a pod that waits has been counted and only has to be added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from moorage.api.manifests import Manifest, annotations_of, status_of
from moorage_cluster.controllers.job_failures import is_failed, judge
from moorage_cluster.controllers.job_indexes import format_indexes, index_of, parse_indexes
from moorage_cluster.controllers.job_pods import FAILURE_COUNT, is_tracked
from moorage_cluster.controllers.pods import is_active, phase_of

MOST_UNCOUNTED: Final = 500
"""So many uids are in a status at once; the rest has to wait."""


def is_indexed(job: Manifest) -> bool:
    """Whether each completion of a job has an index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def uid_of(pod: Manifest) -> str:
    """A pod's uid."""
    return str(pod["metadata"]["uid"])


def failure_count(pod: Manifest) -> int:
    """How often its index had failed when a pod was made."""
    text = annotations_of(pod).get(FAILURE_COUNT, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


@dataclass
class Tally:
    """A job's pods as they were when it was looked at, and what they amount to."""

    job: Manifest
    pods: list[Manifest]
    active: list[Manifest] = field(init=False)
    tracked: list[Manifest] = field(init=False)
    counted_succeeded: int = field(init=False)
    counted_failed: int = field(init=False)
    uncounted_succeeded: list[str] = field(init=False)
    uncounted_failed: list[str] = field(init=False)
    succeeded_indexes: set[int] = field(init=False)
    failed_indexes: set[int] = field(init=False)

    def __post_init__(self) -> None:
        status = status_of(self.job)
        self.active = [pod for pod in self.pods if is_active(pod)]
        self.tracked = [pod for pod in self.pods if is_tracked(pod)]
        uncounted = status.get("uncountedTerminatedPods") or {}
        waiting = set(map(uid_of, self.tracked))
        succeeded: list[str] = uncounted.get("succeeded") or []
        failed: list[str] = uncounted.get("failed") or []
        self.uncounted_succeeded = [uid for uid in succeeded if uid in waiting]
        self.uncounted_failed = [uid for uid in failed if uid in waiting]
        done = len(succeeded) - len(self.uncounted_succeeded)
        self.counted_succeeded = int(status.get("succeeded") or 0) + done
        self.counted_failed = int(status.get("failed") or 0) + len(failed) - len(self.uncounted_failed)
        self.succeeded_indexes = self.counted_indexes | {
            index for pod in self.new_succeeded if (index := index_of(pod)) is not None
        }
        self.failed_indexes = self._failed_indexes()

    @property
    def completions(self) -> int:
        """How many completions are wanted; 0 if that is not said."""
        return int(self.job["spec"].get("completions") or 0)

    @property
    def counted_indexes(self) -> set[int]:
        """Indexes that are completed by the status."""
        text = status_of(self.job).get("completedIndexes") or ""
        return parse_indexes(text, self.completions) if is_indexed(self.job) else set()

    def _is_valid(self, pod: Manifest) -> bool:
        """Whether a pod is for an index that is wanted, if the job has indexes."""
        if not is_indexed(self.job):
            return True
        index = index_of(pod)
        return index is not None and index < self.completions

    @property
    def new_succeeded(self) -> list[Manifest]:
        """Pods that have succeeded and are in no count."""
        known = set(self.uncounted_succeeded)
        return [
            pod
            for pod in self.tracked
            if phase_of(pod) == "Succeeded" and uid_of(pod) not in known and self._is_valid(pod)
        ]

    @property
    def new_failed(self) -> list[Manifest]:
        """Pods that have failed and are in no count."""
        known = set(self.uncounted_failed)
        return [
            pod
            for pod in self.tracked
            if is_failed(self.job, pod) and uid_of(pod) not in known and self._is_valid(pod)
        ]

    @property
    def succeeded(self) -> int:
        """How many completions there are."""
        if is_indexed(self.job):
            return len(self.succeeded_indexes)
        return self.counted_succeeded + len(self.uncounted_succeeded) + len(self.new_succeeded)

    @property
    def failed(self) -> int:
        """How many failures there are that count."""
        new = sum(judge(self.job, pod).counts for pod in self.new_failed)
        return self.counted_failed + len(self.uncounted_failed) + new

    # -- failures of single indexes

    @property
    def limit_per_index(self) -> int | None:
        """How often each index may fail, if that is limited."""
        limit: int | None = self.job["spec"].get("backoffLimitPerIndex")
        return limit

    def _failed_indexes(self) -> set[int]:
        limit = self.limit_per_index
        if limit is None:
            return set()
        found = parse_indexes(status_of(self.job).get("failedIndexes") or "", self.completions)
        for pod in self.new_failed:
            index, judgement = index_of(pod), judge(self.job, pod)
            is_last = judgement.counts and failure_count(pod) >= limit
            if index is not None and (judgement.action == "FailIndex" or is_last):
                found.add(index)
        return found

    def last_failed(self, index: int) -> Manifest | None:
        """The pod that failed last for an index."""
        failed = [pod for pod in self.pods if index_of(pod) == index and is_failed(self.job, pod)]
        return max(failed, key=lambda pod: (failure_count(pod), uid_of(pod)), default=None)

    # -- counting

    def to_count(self, is_over: bool, is_failure: bool) -> tuple[list[Manifest], bool]:
        """Note the uids of pods that can be counted now; those pods, and whether that was all."""
        done: list[Manifest] = []
        is_deleted_job = "deletionTimestamp" in self.job["metadata"]
        for pod in self.tracked:
            if len(self.uncounted_succeeded) + len(self.uncounted_failed) >= MOST_UNCOUNTED:
                return done, False
            has_succeeded, has_failed = phase_of(pod) == "Succeeded", is_failed(self.job, pod)
            if not (is_deleted_job or is_over or has_succeeded or has_failed):
                continue
            done.append(pod)
            uid = uid_of(pod)
            if uid in self.uncounted_succeeded or uid in self.uncounted_failed or not self._is_valid(pod):
                continue
            if has_succeeded:
                if not is_indexed(self.job):
                    self.uncounted_succeeded.append(uid)
            elif (has_failed or is_failure) and judge(self.job, pod).counts:
                self.uncounted_failed.append(uid)
        return done, True

    def count(self) -> None:
        """Raise the counts by what was noted, once the pods are let go."""
        self.counted_succeeded += len(self.uncounted_succeeded)
        self.counted_failed += len(self.uncounted_failed)
        self.uncounted_succeeded, self.uncounted_failed = [], []

    def counts(self) -> Manifest:
        """The part of the status that is counted here."""
        found: Manifest = {
            "succeeded": self.counted_succeeded,
            "failed": self.counted_failed,
            "uncountedTerminatedPods": {
                "succeeded": self.uncounted_succeeded or None,
                "failed": self.uncounted_failed or None,
            },
        }
        if is_indexed(self.job):
            found["succeeded"] = len(self.succeeded_indexes)
            found["completedIndexes"] = format_indexes(self.succeeded_indexes) or None
            if self.limit_per_index is not None:
                found["failedIndexes"] = format_indexes(self.failed_indexes)
        return found
