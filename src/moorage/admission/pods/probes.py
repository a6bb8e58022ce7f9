"""Validation of probes and lifecycle hooks."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.names import header_name_problems
from moorage.apimachinery.fields import (
    NOT_NEGATIVE,
    FieldError,
    complaints,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.network_addresses import check_port_or_name

PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")

_PROBE_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def validate_probes(container: Manifest, grace_seconds: int | None, path: str) -> list[FieldError]:
    """Validation errors of a container's probes and hooks."""
    errors: list[FieldError] = []
    if lifecycle := container.get("lifecycle"):
        for key in ("postStart", "preStop"):
            if (hook := lifecycle.get(key)) is not None:
                errors += _handler(hook, _HOOK_HANDLERS, grace_seconds, f"{path}.lifecycle.{key}")
    for key in PROBES:
        if (probe := container.get(key)) is not None:
            errors += _probe(probe, f"{path}.{key}", is_readiness=key == "readinessProbe")
    return errors


def _probe(probe: Manifest, path: str, *, is_readiness: bool) -> list[FieldError]:
    errors = _handler(probe, _PROBE_HANDLERS, None, path)
    for key in _COUNTS:
        if (count := probe.get(key, 0)) < 0:
            errors.append(invalid(f"{path}.{key}", count, NOT_NEGATIVE))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None:
        where = f"{path}.terminationGracePeriodSeconds"
        if grace <= 0:
            errors.append(invalid(where, grace, "must be greater than 0"))
        if is_readiness:
            errors.append(invalid(where, grace, "must not be set for readinessProbes"))
    if not is_readiness and probe.get("successThreshold") != 1:
        errors.append(invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def _handler(
    handler: Manifest, kinds: tuple[str, ...], grace_seconds: int | None, path: str
) -> list[FieldError]:
    used = [kind for kind in kinds if handler.get(kind) is not None]
    if not used:
        return [required(path, "must specify a handler type")]
    kind, *others = used
    action, where = handler[kind], f"{path}.{kind}"
    errors: list[FieldError] = []
    if kind == "exec":
        if not action.get("command"):
            errors.append(required(f"{where}.command"))
    elif kind == "httpGet":
        errors += _http_get(action, where)
    elif kind == "sleep":
        seconds = action.get("seconds", 0)
        if grace_seconds is not None and not 0 <= seconds <= grace_seconds:
            problem = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
            errors.append(invalid(where, seconds, problem))
    else:
        errors += check_port_or_name(action.get("port", 0), f"{where}.port")
    for other in others:
        errors.append(forbidden(f"{path}.{other}", "may not specify more than 1 handler type"))
    return errors


def _http_get(action: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not action.get("path"):
        errors.append(required(f"{path}.path"))
    errors += check_port_or_name(action.get("port", 0), f"{path}.port")
    if action.get("scheme") not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        errors += complaints(f"{path}.httpHeaders", name, header_name_problems(name))
    return errors
