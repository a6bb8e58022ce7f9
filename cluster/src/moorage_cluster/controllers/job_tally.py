"""A job's pods, sorted and counted.

A finished pod is counted in steps, so that none is counted twice or missed after a failure in between: first
its uid is written to the status, then its finalizer is removed, then the count is raised and the uid removed.
A uid in the status without a pod that has the finalizer only has to be added to the count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from moorage.api.manifests import Manifest, annotations_of, status_of
from moorage_cluster.controllers.job_failures import apply_failure_policy, is_failed
from moorage_cluster.controllers.job_indexes import format_indexes, index_of, parse_indexes
from moorage_cluster.controllers.job_pods import FAILURE_COUNT, is_tracked
from moorage_cluster.controllers.pods import is_active, phase_of

MAX_UNCOUNTED: Final = 500
"""Maximum number of uids in a status at once; the rest has to wait."""


def is_indexed(job: Manifest) -> bool:
    """Whether each completion of a job has an index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def uid_of(pod: Manifest) -> str:
    """A pod's uid."""
    return str(pod["metadata"]["uid"])


def failure_count(pod: Manifest) -> int:
    """Number of failures of its index when a pod was created."""
    text = annotations_of(pod).get(FAILURE_COUNT, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


@dataclass
class JobTally:
    """A snapshot of a job's pods, and the counts derived from it."""

    job: Manifest
    pods: list[Manifest]
    group: Manifest | None = field(init=False, default=None)
    """The PodGroup that new pods belong to."""
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
        """Number of desired completions; 0 if not specified."""
        return int(self.job["spec"].get("completions") or 0)

    @property
    def counted_indexes(self) -> set[int]:
        """Completed indexes in the status."""
        text = status_of(self.job).get("completedIndexes") or ""
        return parse_indexes(text, self.completions) if is_indexed(self.job) else set()

    def _is_valid(self, pod: Manifest) -> bool:
        """Whether a pod's index is within the completions, if the job is indexed."""
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
        """Number of completions."""
        if is_indexed(self.job):
            return len(self.succeeded_indexes)
        return self.counted_succeeded + len(self.uncounted_succeeded) + len(self.new_succeeded)

    @property
    def failed(self) -> int:
        """Number of failures that count."""
        new = sum(apply_failure_policy(self.job, pod).counts for pod in self.new_failed)
        return self.counted_failed + len(self.uncounted_failed) + new

    # -- failures of single indexes

    @property
    def limit_per_index(self) -> int | None:
        """Backoff limit per index, if there is one."""
        limit: int | None = self.job["spec"].get("backoffLimitPerIndex")
        return limit

    def _failed_indexes(self) -> set[int]:
        limit = self.limit_per_index
        if limit is None:
            return set()
        found = parse_indexes(status_of(self.job).get("failedIndexes") or "", self.completions)
        for pod in self.new_failed:
            index, decision = index_of(pod), apply_failure_policy(self.job, pod)
            is_last = decision.counts and failure_count(pod) >= limit
            if index is not None and (decision.action == "FailIndex" or is_last):
                found.add(index)
        return found

    def last_failed(self, index: int) -> Manifest | None:
        """The pod that failed last for an index."""
        failed = [pod for pod in self.pods if index_of(pod) == index and is_failed(self.job, pod)]
        return max(failed, key=lambda pod: (failure_count(pod), uid_of(pod)), default=None)

    # -- counting

    def to_count(self, is_over: bool, is_failure: bool) -> tuple[list[Manifest], bool]:
        """Record the uids of pods that can be counted now; returns those pods, and whether these were all."""
        done: list[Manifest] = []
        is_deleted_job = "deletionTimestamp" in self.job["metadata"]
        for pod in self.tracked:
            if len(self.uncounted_succeeded) + len(self.uncounted_failed) >= MAX_UNCOUNTED:
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
            elif (has_failed or is_failure) and apply_failure_policy(self.job, pod).counts:
                self.uncounted_failed.append(uid)
        return done, True

    def count(self) -> None:
        """Raise the counts by the recorded uids, once the pods' finalizers are removed."""
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
