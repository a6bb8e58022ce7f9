"""Which plugins run for a pod at each extension point, which are cached, and why others do not run.

Every equivalence class of pods has a plan; classes for which the same plugins run share one. Where an answer
that is not cached leaves a plugin out (Skip, `skips_pod`), the cycle goes on with a plan derived from it. The
framework runs the plan; `str(plan)` shows it as a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from moorage.framework.runtime.plugin_call import PluginCall

Calls = tuple[PluginCall, ...]


class CallDecision(StrEnum):
    """Whether a plugin runs at an extension point, and why not; the values are shown to users."""

    RUNS = "runs"
    CACHED = "answers from the result cache"
    NOT_ENABLED = "left out: not enabled"
    PRE_FILTER_SKIPPED = "left out: pre_filter answered Skip"
    PRE_SCORE_SKIPPED = "left out: pre_score answered Skip"
    SKIPS_POD = "left out: skips_pod"
    NOT_AFTER_FILTER = "left out: depends_on says runs_after_filter=False"


_REASONS: Final[Mapping[str, tuple[CallDecision, ...]]] = {
    "pre_filter": (CallDecision.SKIPS_POD,),
    "filter": (CallDecision.SKIPS_POD, CallDecision.PRE_FILTER_SKIPPED),
    "pre_score": (CallDecision.SKIPS_POD,),
    "score": (CallDecision.SKIPS_POD, CallDecision.PRE_SCORE_SKIPPED),
    "reserve": (CallDecision.NOT_AFTER_FILTER,),
    "unreserve": (CallDecision.NOT_AFTER_FILTER,),
    "pre_bind_pre_flight": (CallDecision.NOT_AFTER_FILTER,),
    "pre_bind": (CallDecision.NOT_AFTER_FILTER,),
}
"""Why plugins are left out, by extension point."""
_CACHED_POINTS: Final = frozenset(("pre_filter", "filter", "pre_score", "score"))
_MAX_CHANGED_SHARE: Final = 1 / 64
"""Share of changed nodes from which on whole columns are cheaper than picking rows from them."""
_MAX_CHANGED_SHARE_OUTSIDE: Final = 1 / 4
"""The same where a plugin from outside takes part, which may look at one node at a time."""
_CACHED, _BY_PODS, _SKIPS_FILTER, _SKIPS_SCORE, _ENDS_AFTER_FILTER = 1, 2, 4, 8, 16
"""The traits of a cached plugin."""
_MAX_PLANS: Final = 1024
"""Maximum number of plans that are kept; a few dozen occur, unless pods are made to differ in every way."""


@dataclass(frozen=True, slots=True)
class ProfileCalls:
    """All plugin calls of a profile.

    enabled: the plugins at each extension point of the configuration, in order.
    by_method: those called for a pod, by method, in the order of a pod's life: `reserve` and `unreserve`
        apart, and the pre-flights of pre-bind.
    skipping: the calls of `skips_pod`, where a plugin is enabled at pre-filter and pre-score.
    depending: the calls of `depends_on`.
    outside: the plugins that are not moorage's own.
    disabled: the names of plugins that have a method of an extension point, and are not enabled there.
    """

    enabled: Mapping[str, Calls]
    by_method: Mapping[str, Calls]
    skipping: Calls
    depending: Calls
    outside: frozenset[str]
    disabled: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class FilterPlan:
    """The filters that run.

    A node is rejected by the first filter that rejects it, so only those before the first that is not cached
    can be answered from the cache.
    active: all of them. cached: those up to the first that is not cached. rest: the others.
    by_pods: of the cached ones, those that depend on the pods on a node.
    max_changed_share: the share of nodes up to which only those that changed are filtered again.
    """

    active: Calls
    cached: Calls
    rest: Calls
    by_pods: Calls
    max_changed_share: float


@dataclass(frozen=True, slots=True, eq=False)
class ScorePlan:
    """The score plugins that run.

    active: all of them. cached: those that are cached.
    by_pods: of the cached ones, those that depend on the pods on a node.
    cached_weight: the sum of the weights of the cached ones.
    max_changed_share: the share of nodes up to which only those that changed are scored again.
    """

    active: Calls
    cached: Calls
    by_pods: Calls
    cached_weight: int
    max_changed_share: float


class ProfilePlan:
    """What runs for the pods of an equivalence class, or for a pod without one.

    cached: the plugins whose answers are cached. by_pods: those of them that depend on the pods on a node.
    left_out: the plugins that are left out, by reason.
    """

    __slots__ = (
        "_by_pods",
        "_cached",
        "_derived",
        "_left_out",
        "filters",
        "pre_binds",
        "pre_filters",
        "pre_flights",
        "pre_scores",
        "profile",
        "reserves",
        "scores",
        "unreserves",
    )

    def __init__(
        self,
        profile: ProfileCalls,
        cached: frozenset[str] = frozenset(),
        by_pods: frozenset[str] = frozenset(),
        left_out: Mapping[CallDecision, frozenset[str]] | None = None,
    ) -> None:
        self.profile = profile
        self._cached = cached
        self._by_pods = by_pods
        self._left_out = left_out or {}
        self._derived: dict[tuple[CallDecision, frozenset[str]], ProfilePlan] = {}
        self.pre_filters = self._uncached("pre_filter")
        self.filters = self._filters()
        self.pre_scores = self._uncached("pre_score")
        self.scores = self._scores()
        self.reserves = self._active("reserve")
        self.unreserves = self._active("unreserve")
        self.pre_flights = self._active("pre_bind_pre_flight")
        self.pre_binds = self._active("pre_bind")

    @property
    def is_cached(self) -> bool:
        """Whether cached answers decide about a pod up to its binding: no plugin is called for each pod."""
        uncached = self.pre_filters or self.filters.rest or self.pre_scores or self.reserves
        return not uncached and len(self.scores.cached) == len(self.scores.active)

    @property
    def undeclared_filters(self) -> set[str]:
        """The plugins whose answers about a node may depend on other nodes, also if they skip the pod."""
        methods = self.profile.by_method
        return {call.plugin for call in (*methods["pre_filter"], *methods["filter"])} - self._cached

    def leaving_out(self, reason: CallDecision, plugins: Collection[str]) -> ProfilePlan:
        """This plan without some more plugins."""
        if not plugins:
            return self
        more = frozenset(plugins)
        known = self._derived.get((reason, more))
        if known is None:
            left_out = {**self._left_out, reason: self._left_out.get(reason, frozenset()) | more}
            known = self._derived[reason, more] = ProfilePlan(
                self.profile, self._cached, self._by_pods, left_out
            )
        return known

    def choice(self, point: str, plugin: str) -> CallDecision:
        """The choice for a plugin that is enabled at an extension point."""
        for reason in _REASONS.get(point, ()):
            if plugin in self._left_out.get(reason, ()):
                return reason
        if point == "filter":
            is_cached = any(call.plugin == plugin for call in self.filters.cached)
        else:
            is_cached = point in _CACHED_POINTS and plugin in self._cached
        return CallDecision.CACHED if is_cached else CallDecision.RUNS

    def runs(self, point: str, plugin: str) -> bool:
        """Whether a plugin takes part at an extension point, cached or not."""
        return self.choice(point, plugin) in (CallDecision.RUNS, CallDecision.CACHED)

    def rows(self) -> Iterator[tuple[str, str, CallDecision]]:
        """Extension point, plugin and choice, in the order in which they run."""
        for point, calls in self.profile.by_method.items():
            for call in calls:
                yield point, call.plugin, self.choice(point, call.plugin)
            for plugin in self.profile.disabled.get(point, ()):
                yield point, plugin, CallDecision.NOT_ENABLED

    def __str__(self) -> str:
        rows = [(point, plugin, str(choice)) for point, plugin, choice in self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        return "\n".join(f"{point:{widths[0]}}  {plugin:{widths[1]}}  {text}" for point, plugin, text in rows)

    def _active(self, point: str) -> Calls:
        """The plugins that are not left out."""
        out = {plugin for reason in _REASONS[point] for plugin in self._left_out.get(reason, ())}
        return tuple(call for call in self.profile.by_method[point] if call.plugin not in out)

    def _uncached(self, point: str) -> Calls:
        return tuple(call for call in self._active(point) if call.plugin not in self._cached)

    def _filters(self) -> FilterPlan:
        active = self._active("filter")
        end = next((i for i, call in enumerate(active) if call.plugin not in self._cached), len(active))
        by_pods = tuple(call for call in active[:end] if call.plugin in self._by_pods)
        return FilterPlan(active, active[:end], active[end:], by_pods, self._changed_share(active[:end]))

    def _scores(self) -> ScorePlan:
        active = self._active("score")
        cached = tuple(call for call in active if call.plugin in self._cached)
        by_pods = tuple(call for call in cached if call.plugin in self._by_pods)
        cached_weight = sum(call.weight for call in cached)
        return ScorePlan(active, cached, by_pods, cached_weight, self._changed_share(cached))

    def _changed_share(self, cached: Calls) -> float:
        has_outside = any(call.plugin in self.profile.outside for call in cached)
        return _MAX_CHANGED_SHARE_OUTSIDE if has_outside else _MAX_CHANGED_SHARE


class Plans:
    """The plans of a profile's equivalence classes."""

    def __init__(self, profile: ProfileCalls) -> None:
        self.profile = profile
        self._known: dict[bytes, ProfilePlan] = {}

    def of(self, traits: bytes) -> ProfilePlan:
        """The plan for the traits of the plugins in `ProfileCalls.depending`; 0: not cached (`traits_of`)."""
        plan = self._known.get(traits)
        if plan is None:
            if len(self._known) >= _MAX_PLANS:
                self._known.clear()
            plan = self._known[traits] = self._make(traits)
        return plan

    def _make(self, traits: bytes) -> ProfilePlan:
        def having(trait: int) -> frozenset[str]:
            pairs = zip(self.profile.depending, traits, strict=True)
            return frozenset(call.plugin for call, own in pairs if own & trait)

        left_out = {
            CallDecision.PRE_FILTER_SKIPPED: having(_SKIPS_FILTER),
            CallDecision.PRE_SCORE_SKIPPED: having(_SKIPS_SCORE),
            CallDecision.NOT_AFTER_FILTER: having(_ENDS_AFTER_FILTER),
        }
        return ProfilePlan(self.profile, having(_CACHED), having(_BY_PODS), left_out)


def traits_of(*, by_pods: bool, skips_filter: bool, skips_score: bool, runs_after_filter: bool) -> int:
    """What a plan depends on of a plugin that is cached, as bits of a byte."""
    return (
        _CACHED
        + by_pods * _BY_PODS
        + skips_filter * _SKIPS_FILTER
        + skips_score * _SKIPS_SCORE
        + (not runs_after_filter) * _ENDS_AFTER_FILTER
    )
