"""What shadow mode reports: each comparison as a line of JSON, and counts by profile, template and plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from moorage.api.base import Struct
from moorage.api.decode import InputError
from moorage.api.pod import Pod
from moorage.api.pod_groups import Group, PodGroup
from moorage.client.scheduler_api import API_VERSION
from moorage.klog import Logger
from moorage.scheduler.shadow.weights import WeightEvidence
from moorage.services.metrics import Metrics

log = Logger(__name__)

ComparisonResult = Literal["same", "tie", "different"]
RESULTS: Final[tuple[ComparisonResult, ...]] = ("same", "tie", "different")
"""The same node; another node with an equal total; another node."""
_MAX_TEMPLATES: Final = 1000
"""Number of templates that are told apart; the others are counted together."""
_OTHER: Final = "(other)"


class Comparison(Struct):
    """One pod that another scheduler has bound, and where we would have.

    ours: our node; absent if none is feasible.
    plugin: the plugin that explains a difference; absent if no plugin does alone.
    reason: how it does.
    scores: of plugins with different scores on the two nodes, the other scheduler's node first.
    reordered: whether the decisions agree if bindings of the same moment were decided in another order.
    """

    time: datetime
    pod: str
    uid: str
    profile: str
    template: str
    result: ComparisonResult
    node: str
    ours: str = ""
    plugin: str = ""
    reason: str = ""
    totals: tuple[int, int] | None = None
    scores: dict[str, tuple[int, int]] = {}
    reordered: bool = False


class GroupComparison(Struct):
    """One group whose members another scheduler has bound, and where we would have.

    nodes: the other scheduler's nodes, by member. ours: our nodes, of members with another one; empty: none.
    member: the member whose node explains a difference; absent if it is about the group as a whole.
    plugin, reason, totals, scores, reordered: as those of a pod, of that member.
    """

    time: datetime
    group: str
    uid: str
    profile: str
    template: str
    result: ComparisonResult
    nodes: dict[str, str]
    ours: dict[str, str] = {}
    member: str = ""
    plugin: str = ""
    reason: str = ""
    totals: tuple[int, int] | None = None
    scores: dict[str, tuple[int, int]] = {}
    reordered: bool = False


class Agreement(Struct, omit_defaults=False):
    """Counts of comparisons."""

    same: int = 0
    tie: int = 0
    different: int = 0


class ShadowStatus(Struct, omit_defaults=False):
    """All counts, as they are served."""

    api_version: str = API_VERSION
    kind: str = "ShadowStatus"
    profiles: dict[str, Agreement] = {}
    groups: dict[str, Agreement] = {}
    """Groups of pods by profile; their members are not counted among the pods."""
    templates: dict[str, Agreement] = {}
    plugins: dict[str, int] = {}
    """Number of differences that each plugin explains."""
    unexplained: int = 0


class ShadowReport:
    """Counts comparisons, and writes them to metrics and to a file.

    path: a file to which lines are appended; InputError if that is impossible.
    """

    def __init__(self, metrics: Metrics, path: Path | None = None) -> None:
        self._metrics = metrics
        self._profiles: dict[str, Counter[str]] = {}
        self._groups: dict[str, Counter[str]] = {}
        self._templates: dict[str, Counter[str]] = {}
        self._rejections: Counter[str] = Counter()
        """Number of differences by the plugin that rejects the other scheduler's node."""
        self._evidence: dict[str, WeightEvidence] = {}
        self._file = None
        if path is not None:
            try:
                self._file = path.open("ab")
            except OSError as error:
                raise InputError(str(path), f"cannot be written: {error.strerror}") from None

    def evidence(self, profile: str) -> WeightEvidence:
        """What is known of the other scheduler's weights, for a profile."""
        return self._evidence.setdefault(profile, WeightEvidence())

    def add(self, comparison: Comparison | GroupComparison) -> None:
        """One more comparison."""
        metrics, profile, result = self._metrics, comparison.profile, comparison.result
        is_group = isinstance(comparison, GroupComparison)
        (self._groups if is_group else self._profiles).setdefault(profile, Counter())[result] += 1
        (metrics.shadow_groups if is_group else metrics.shadow_pods).labels(profile, result).inc()
        template = comparison.template
        if template not in self._templates and len(self._templates) >= _MAX_TEMPLATES:
            template = _OTHER
        self._templates.setdefault(template, Counter())[result] += 1
        if result == "different":
            if comparison.totals is None:
                self._rejections[comparison.plugin] += 1
            metrics.shadow_differences.labels(profile, comparison.plugin).inc()
        if self._file is not None:
            try:
                self._file.write(msgspec.json.encode(comparison) + b"\n")
                self._file.flush()
            except OSError as error:
                log.error(error.strerror or error, "Failed to write the shadow report")

    @property
    def status(self) -> ShadowStatus:
        """All counts; a difference may be explained better than when it was seen."""
        plugins = sum((each.explanations() for each in self._evidence.values()), self._rejections.copy())
        return ShadowStatus(
            profiles=_agreements(self._profiles),
            groups=_agreements(self._groups),
            templates=_agreements(self._templates),
            plugins={plugin: count for plugin, count in plugins.most_common() if plugin},
            unexplained=plugins[""],
        )

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _agreements(counts: Mapping[str, Counter[str]]) -> dict[str, Agreement]:
    return {
        name: Agreement(**{result: count[result] for result in RESULTS}) for name, count in counts.items()
    }


def template_of(obj: Pod | Group) -> str:
    """What a pod or a group was made from: its controller, or itself."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            return f"{obj.namespace}/{owner.kind}/{owner.name}"
    name = f"{obj.metadata.generate_name}*" if obj.metadata.generate_name else obj.name
    kind = "Pod" if isinstance(obj, Pod) else "PodGroup" if isinstance(obj, PodGroup) else "CompositePodGroup"
    return f"{obj.namespace}/{kind}/{name}"


def report_rows(status: ShadowStatus) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Rows of a table: the pods and the groups of profiles, then the templates with the most differences."""
    by_difference = sorted(status.templates.items(), key=lambda item: (-item[1].different, item[0]))
    parts = (
        ("profile", status.profiles.items()),
        ("groups of", status.groups.items()),
        ("template", by_difference),
    )
    for title, counts in parts:
        for name, count in counts:
            total = count.same + count.tie + count.different
            agreed = f"{100 * (count.same + count.tie) / total:.1f}%"
            yield title, name, str(count.same), str(count.tie), str(count.different), agreed
