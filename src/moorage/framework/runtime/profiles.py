"""Several schedulers in one process: a framework for each profile of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from moorage.api.pod import Pod
from moorage.config.types import Profile, SchedulerConfiguration
from moorage.framework.extenders.managed_resources import profiles_of
from moorage.framework.interface.handle import Handle
from moorage.framework.loading.registry import Registry, RegistryError
from moorage.framework.runtime.framework import Framework

FrameworkFactory = Callable[[Profile, Registry, Handle], Framework]


class Profiles(Mapping[str, Framework]):
    """Frameworks by scheduler name. All profiles share one queue, so their queue sort must be the same."""

    def __init__(
        self,
        config: SchedulerConfiguration,
        registry: Registry,
        handle: Handle | None = None,
        make: FrameworkFactory = Framework,
    ) -> None:
        shared = handle or Handle()
        self._frameworks: dict[str, Framework] = {}
        first: Framework | None = None
        for profile in profiles_of(config):
            framework = make(profile, registry, shared)
            first = first or framework
            ours, theirs = framework.at("queue_sort")[0].plugin, first.at("queue_sort")[0].plugin
            if ours != theirs:
                raise RegistryError(
                    f'different queue sort plugins for profile "{profile.scheduler_name}": "{ours}", '
                    f'first: "{theirs}"'
                )
            self._frameworks[profile.scheduler_name] = framework

    def __getitem__(self, scheduler_name: str) -> Framework:
        return self._frameworks[scheduler_name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frameworks)

    def __len__(self) -> int:
        return len(self._frameworks)

    def of(self, pod: Pod) -> Framework | None:
        """The framework that is responsible for a pod, or None: another scheduler's pod."""
        return self._frameworks.get(pod.spec.scheduler_name)
