"""KubeSchedulerConfiguration `kubescheduler.config.k8s.io/v1`, as data.

The same types hold a configuration before and after defaulting. The default of a field here is the value of
an absent field; other defaults (empty text, zero, merged plugin lists) are in `defaults`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import Meta, field

from moorage.api.base import Struct
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.config.duration import Duration

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"

Int32 = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class PluginRef(Struct):
    """A plugin by name; the weight is used at scoring points only."""

    name: str
    weight: Int32 | None = None


class PluginSet(Struct):
    """The plugins to add to the default ones, and the default ones to disable (`*`: all)."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()

    @property
    def disabled_names(self) -> frozenset[str]:
        """The names of the disabled plugins."""
        return frozenset(ref.name for ref in self.disabled)


_NO_PLUGINS = PluginSet()


class Plugins(Struct):
    """A plugin set for every extension point, and one (`multi_point`) for all points a plugin implements."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()

    def items(self) -> Iterator[tuple[str, PluginSet]]:
        """Every extension point with its set, including `multi_point`."""
        for point in self.__struct_fields__:
            yield point, getattr(self, point)

    def at(self, point: str) -> PluginSet:
        """The set of one extension point; empty for one that a configuration does not name."""
        found: PluginSet = getattr(self, point, _NO_PLUGINS)
        return found

    def names(self) -> list[str]:
        """The names of all enabled plugins, sorted."""
        return sorted({ref.name for _, plugins in self.items() for ref in plugins.enabled})


EXTENSION_POINTS: tuple[str, ...] = tuple(
    point for point in Plugins.__struct_fields__ if point != "multi_point"
)
"""The extension points in snake case, roughly in the order in which they run."""

UNNAMED_POINTS: tuple[str, ...] = ("placement_feasible",)
"""Extension points that a configuration does not name: plugins enabled at `multi_point` run there."""


WIRE_NAMES: dict[str, str] = dict(
    zip(Plugins.__struct_fields__, Plugins.__struct_encode_fields__, strict=True)
)
"""The names of the extension points in files, such as `preFilter`; including `multi_point`."""


class PluginConfig(Struct):
    """The arguments of a plugin: a typed struct for default plugins, as written for all others."""

    name: str
    args: Any = None


class Profile(Struct):
    """A profile: its scheduler name, plugins and arguments."""

    scheduler_name: str = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    def args(self, name: str) -> Any:
        """The arguments of a plugin, or None if it has none."""
        return next((each.args for each in self.plugin_config if each.name == name), None)


class LeaderElection(Struct):
    """Leader election settings."""

    leader_elect: bool = True
    lease_duration: Duration = Duration(15)
    renew_deadline: Duration = Duration(10)
    retry_period: Duration = Duration(2)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(Struct):
    """API client settings; the two content types have no effect (`without_effect`)."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


class ExtenderTLSConfig(Struct):
    """TLS settings for an extender; data takes precedence over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(Struct):
    """An extended resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(Struct):
    """A web service that takes part in scheduling; an empty verb is not supported by it."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration(0)
    """Zero: kube-scheduler's default of five seconds."""
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class SchedulerConfiguration(Struct):
    """A whole configuration: settings of all profiles, the profiles, and the extenders.

    `parallelism` and the two kinds of profiling are accepted and have no effect (`without_effect`).
    """

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False

    def profile(self, scheduler_name: str) -> Profile | None:
        """The profile of a scheduler name, or None."""
        return next((each for each in self.profiles if each.scheduler_name == scheduler_name), None)
