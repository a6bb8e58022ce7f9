"""The arguments, named and defaulted as those of scheduler-plugins' NodeResourceTopologyMatch."""

from __future__ import annotations

from collections.abc import Collection

from moorage import Struct
from moorage.optional_plugins.numa.accounting import AUTODETECT, METHODS
from moorage.optional_plugins.numa.scoring import LEAST, STRATEGIES

_LARGEST_WEIGHT = 1_000_000


class ResourceWeight(Struct, forbid_unknown_fields=True):
    """A resource and its weight; zero counts as one."""

    name: str = ""
    weight: int = 1


class ScoringStrategy(Struct, forbid_unknown_fields=True):
    """How nodes are scored, and the weights of resources; those that are not named have the weight one."""

    type: str = LEAST
    resources: tuple[ResourceWeight, ...] = ()


class Cache(Struct, forbid_unknown_fields=True):
    """How the pods that an object accounts for are found. Only `resync_method` has an effect."""

    foreign_pods_detect: str = "All"
    resync_method: str = AUTODETECT
    informer_mode: str = "Dedicated"
    resync_scope: str = "All"


class NumaArgs(Struct):
    """The arguments of the plugin. The period and the preemption mode have no effect."""

    scoring_strategy: ScoringStrategy = ScoringStrategy()
    cache_resync_period_seconds: int = 0
    discard_reserved_nodes: bool = False
    cache: Cache = Cache()
    preemption_mode: str = "Disabled"

    def __post_init__(self) -> None:
        _check(self)


def _check(args: NumaArgs) -> None:
    """ValueError if an argument is not allowed."""
    _one_of("scoringStrategy.type", args.scoring_strategy.type, STRATEGIES)
    for number, each in enumerate(args.scoring_strategy.resources):
        field = f"scoringStrategy.resources[{number}]"
        if not each.name:
            raise ValueError(f"{field}.name: required; write the name of a resource, such as cpu")
        if not 0 <= each.weight <= _LARGEST_WEIGHT:
            raise ValueError(f"{field}.weight: expected 0 to {_LARGEST_WEIGHT}, got {each.weight}")
    if args.cache_resync_period_seconds < 0:
        raise ValueError(
            f"cacheResyncPeriodSeconds: expected 0 or more, got {args.cache_resync_period_seconds}"
        )
    cache = args.cache
    _one_of("cache.foreignPodsDetect", cache.foreign_pods_detect, ("None", "All", "OnlyExclusiveResources"))
    _one_of("cache.resyncMethod", cache.resync_method, METHODS)
    _one_of("cache.informerMode", cache.informer_mode, ("Shared", "Dedicated"))
    _one_of("cache.resyncScope", cache.resync_scope, ("All", "OnlyResources"))
    _one_of("preemptionMode", args.preemption_mode, ("Disabled", "Enabled"))


def _one_of(field: str, value: str, allowed: Collection[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{field}: expected one of {', '.join(allowed)}, got {value!r}")
