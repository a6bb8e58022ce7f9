"""Options for logs, serving, metrics and configuration, from the flags of `moorage run`.

Invalid values are rejected as by kube-scheduler, before anything is started.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from msgspec.structs import replace

from moorage.api.quantity import parse_quantity
from moorage.api.yaml_reading import YamlError, load_yaml
from moorage.cli.flags import FlagError, FlagValues
from moorage.cli.logs import LogFormat, LoggingOptions
from moorage.cli.page_process import PageProcess
from moorage.cli.shadow_table import shown_on_terminal
from moorage.config.load import ConfigError, default_config, load_config
from moorage.config.types import SchedulerConfiguration
from moorage.config.validation import validate
from moorage.emulation.kubernetes_version import (
    KubernetesVersion,
    VersionError,
    parse_version,
    version_number,
)
from moorage.scheduler.endpoints import AccessOptions
from moorage.scheduler.process import RunOptions, ShadowOptions
from moorage.services.client_certificates import CertificateOptions, HeaderNames
from moorage.services.metrics import MetricOptions
from moorage.services.private_reads import new_token
from moorage.services.server_tls import TlsOptions, named_certificate
from moorage.services.serving import ServingOptions

_MAX_PORTS: Final = 65535
_ALPHA_OPTIONS: Final = "LoggingAlphaOptions"
"""The feature gate of log options; it has the same default in all versions."""
_METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_METRIC_LABEL: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*),([a-zA-Z_][a-zA-Z0-9_]*)")
_CONNECTION: Final = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_PROFILING: Final = {
    "profiling": "enable_profiling",
    "contention-profiling": "enable_contention_profiling",
}
_ELECTION: Final = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration",
    "leader-elect-renew-deadline": "renew_deadline",
    "leader-elect-retry-period": "retry_period",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
"""Flags, and the fields of the configuration that they set."""


def configuration(flags: FlagValues, version: KubernetesVersion) -> SchedulerConfiguration:
    """The effective configuration: only the leader election flags override a configuration file."""
    path = flags.path("config")
    if path is None:
        config = default_config(version)
        connection = replace(config.client_connection, **_given(flags, _CONNECTION))
        config = replace(config, client_connection=connection, **_given(flags, _PROFILING))
    else:
        config = load_config(path, version)
    config = replace(config, leader_election=replace(config.leader_election, **_given(flags, _ELECTION)))
    if flags.switch("shadow"):  # It writes nothing, and a lease would have to be written.
        config = replace(config, leader_election=replace(config.leader_election, leader_elect=False))
    if problems := validate(config, version):
        raise ConfigError(problems)
    return config


def _given(flags: FlagValues, fields: Mapping[str, str]) -> dict[str, Any]:
    return {field: flags.given(name) for name, field in fields.items() if flags.is_given(name)}


def serving_options(flags: FlagValues) -> ServingOptions | None:
    """Address and TLS options for serving; None if serving is disabled."""
    port = flags.whole("secure-port")
    if not 0 <= port <= _MAX_PORTS:
        raise FlagError(
            f"--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
        )
    tls = TlsOptions(
        flags.path("tls-cert-file"),
        flags.path("tls-private-key-file"),
        flags.path("cert-dir"),
        [named_certificate(text) for text in flags.words("tls-sni-cert-key")],
        flags.text("tls-min-version"),
        flags.words("tls-cipher-suites"),
        flags.numbers("tls-curve-preferences"),
    )
    shares_port = flags.switch("permit-port-sharing")
    return ServingOptions(flags.text("bind-address"), port, shares_port, tls) if port else None


def access_options(flags: FlagValues) -> AccessOptions:
    """Options for authentication and authorization of requests."""
    names = HeaderNames(
        _header_names(flags, "requestheader-username-headers"),
        _header_names(flags, "requestheader-uid-headers"),
        _header_names(flags, "requestheader-group-headers"),
        _header_names(flags, "requestheader-extra-headers-prefix"),
        _header_names(flags, "requestheader-allowed-names"),
    )
    certificates = CertificateOptions(
        flags.path("client-ca-file"),
        flags.path("requestheader-client-ca-file"),
        names,
        flags.switch("authentication-skip-lookup"),
        flags.switch("authentication-tolerate-lookup-failure"),
    )
    return AccessOptions(
        flags.path("authentication-kubeconfig"),
        flags.path("authorization-kubeconfig"),
        certificates,
        flags.duration("authentication-token-webhook-cache-ttl"),
        flags.duration("authorization-webhook-cache-authorized-ttl"),
        flags.duration("authorization-webhook-cache-unauthorized-ttl"),
        flags.words("authorization-always-allow-paths"),
        new_token() if flags.is_given("ui-port") else "",
    )


def _header_names(flags: FlagValues, name: str) -> tuple[str, ...]:
    words = flags.words(name)
    if not all(word.strip() for word in words):
        raise FlagError(f'empty value in "{name}"')
    return words


def metric_options(flags: FlagValues, version: KubernetesVersion) -> MetricOptions:
    """Disabled metrics, and allowed values of labels."""
    hidden = flags.text("show-hidden-metrics-for-version")
    if hidden not in ("", version.previous_minor):
        raise FlagError(
            f'metrics.showHiddenMetricsForVersion: Invalid value: "{hidden}": must be omitted or have the '
            f"value '{version.previous_minor}'; only the previous minor version is allowed"
        )
    disabled = [name for name in flags.words("disabled-metrics") if name]
    for name in disabled:
        if not _METRIC_NAME.fullmatch(name):
            raise FlagError(f'metrics.disabledMetrics: Invalid value: "{name}": not the name of a metric')
    manifest = flags.path("allow-metric-labels-manifest")
    words = flags.words("allow-metric-labels")
    if manifest is not None and words:
        raise FlagError("metrics: cannot specify both allowListMapping and allowListMappingManifest")
    allowed = dict(_pair(text) for text in words) if manifest is None else _read_manifest(manifest)
    return MetricOptions(frozenset(disabled), dict(_allowed(allowed)))


def _pair(text: str) -> tuple[str, str]:
    key, equals, values = text.partition("=")
    if not equals:
        raise FlagError(f"--allow-metric-labels: {text} must be formatted as key=value")
    return key, values.strip("'")


def _read_manifest(path: Path) -> dict[str, str]:
    try:
        content = load_yaml(path.read_text())
    except (OSError, UnicodeDecodeError, YamlError) as error:
        reason = getattr(error, "strerror", None) or "not YAML"
        raise FlagError(f"failed to read allow list manifest: {path}: {reason}") from None
    if not isinstance(content, dict):
        raise FlagError(f"failed to parse allow list manifest: {path}: not a mapping")
    return {str(key): str(value) for key, value in content.items()}


def _allowed(words: Mapping[str, str]) -> Iterable[tuple[tuple[str, str], frozenset[str]]]:
    for key, values in words.items():
        named = _METRIC_LABEL.fullmatch(key)
        if named is None:
            raise FlagError(
                f'metrics.allowListMapping: Invalid value: "{key}": must have keys with format '
                "`metricName,labelName`"
            )
        yield (named[1], named[2]), frozenset(values.split(","))


def log_options(flags: FlagValues, gates: Mapping[str, bool]) -> LoggingOptions:
    """Log options; `gates` are the feature gates that were set."""
    allows_alpha = gates.get(_ALPHA_OPTIONS, gates.get("AllAlpha", False))
    format = flags.text("logging-format")
    if format not in get_args(LogFormat):
        raise FlagError(f'format: Invalid value: "{format}": Unsupported log format')
    if flags.duration("log-flush-frequency") <= 0:
        raise FlagError("flushFrequency: Invalid value: Must be greater than zero")
    by_file = [_by_file(text) for text in flags.words("vmodule")]
    if by_file and format != "text":
        raise FlagError("vmodule: Forbidden: Only supported for text log format")
    for name in ("text-split-stream", "text-info-buffer-size", "json-split-stream", "json-info-buffer-size"):
        if flags.is_given(f"log-{name}") and not allows_alpha:
            raise FlagError(f"--log-{name}: Forbidden: Feature {_ALPHA_OPTIONS} is disabled")
    splits = flags.switch(f"log-{format}-split-stream")
    return LoggingOptions(flags.whole("v"), "json" if format == "json" else "text", by_file, splits)


def _by_file(text: str) -> tuple[str, int]:
    pattern, _, verbosity = text.partition("=")
    if not pattern or not verbosity.isdecimal():
        raise FlagError(
            f'invalid argument "{text}" for "--vmodule" flag: "{text}" does not have the pattern=N format'
        )
    return pattern, int(verbosity)


def plugin_files(flags: FlagValues) -> list[Path]:
    """The files with custom plugins."""
    return [Path(text) for text in flags.words("plugin")]


def slow_plugin_seconds(flags: FlagValues) -> float:
    """Duration of a plugin call above which a warning is logged, in seconds; zero: never."""
    seconds = flags.duration("slow-plugin-warning")
    if seconds < 0:
        raise FlagError(f"--slow-plugin-warning: {seconds} is less than nothing; 0s switches warnings off")
    return seconds


def remembered_attempts(flags: FlagValues) -> tuple[int, int]:
    """Number of attempts that are remembered of a pod, and the memory for all, in bytes."""
    count, size = flags.whole("remembered-attempts"), flags.text("remembered-attempts-memory")
    if count < 0:
        raise FlagError(f"--remembered-attempts: {count} is less than none; 0 switches them off")
    if (amount := parse_quantity(size).value) < 0:
        raise FlagError(f"--remembered-attempts-memory: {size} is less than nothing")
    return count, amount


def shadow_options(flags: FlagValues, config: SchedulerConfiguration) -> ShadowOptions | None:
    """What shadow mode reports; None without it."""
    if not flags.switch("shadow"):
        if flags.is_given("shadow-report"):
            raise FlagError("--shadow-report: only with --shadow")
        return None
    if config.extenders:
        raise FlagError("--shadow: extenders would be called for pods that others schedule; remove them")
    return ShadowOptions(flags.path("shadow-report"), shown_on_terminal())


def recording_path(flags: FlagValues, config: SchedulerConfiguration) -> Path | None:
    """The file to record to; None: nothing is recorded."""
    path = flags.path("record")
    if path is not None and config.extenders:
        raise FlagError("--record: decisions of extenders cannot be replayed, and the configuration has some")
    return path


def page(flags: FlagValues, options: RunOptions) -> PageProcess | None:
    """The page beside a scheduler; None without it."""
    if not flags.is_given("ui-port"):
        return None
    port = flags.whole("ui-port")
    if not 0 <= port <= _MAX_PORTS:
        raise FlagError(f"--ui-port: {port} is not between 0 and {_MAX_PORTS}")
    if options.master:
        raise FlagError("--ui-port: the page finds the API server in a kubeconfig; leave --master out")
    if options.credentials_over_http:
        raise FlagError("--ui-port: the page sends credentials over TLS only; use an https:// server")
    kubeconfig = options.config.client_connection.kubeconfig
    return PageProcess(
        Path(kubeconfig) if kubeconfig else None,
        port,
        config=flags.path("config"),
        plugins=plugin_files(flags),
        emulated_version=options.version.minor,
        feature_gates=flags.words("feature-gates"),
        scheduler=_own_url(options.serving),
        token=options.access.page_token,
    )


def _own_url(serving: ServingOptions | None) -> str:
    """Where this machine reaches the secure port; empty: there is none."""
    if serving is None:
        return ""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(serving.bind_address, serving.bind_address)
    return f"https://[{host}]:{serving.port}" if ":" in host else f"https://{host}:{serving.port}"


def emulated_version(flags: FlagValues) -> KubernetesVersion | None:
    """The version that the flag chooses; None without it."""
    try:
        return parse_version(flags.words("emulated-version"))
    except VersionError as error:
        raise FlagError(f"--emulated-version: {error}") from None


def check_compatibility(flags: FlagValues, version: KubernetesVersion) -> None:
    """Reject minimum compatibility versions that are not supported."""
    try:
        for text in flags.words("min-compatibility-version"):
            version_number(text, (version.minor, version.previous_minor))
    except VersionError as error:
        raise FlagError(f"--min-compatibility-version: {error}") from None


def without_keys(config: SchedulerConfiguration) -> SchedulerConfiguration:
    """A configuration for the log: without the private keys of extenders."""
    extenders = tuple(
        replace(each, tls_config=replace(each.tls_config, key_data=b"")) if each.tls_config else each
        for each in config.extenders
    )
    return replace(config, extenders=extenders)
