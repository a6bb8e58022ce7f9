"""APIServices: groups that another server would serve. They are stored; no request is proxied."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, Now, timestamp, utc_now
from moorage.api.names import dns_1035_label_problems, path_segment_problems
from moorage.api.text import quoted
from moorage.apimachinery.fields import FieldError, complaints, invalid, required
from moorage.apimachinery.validation.checks import check_optional_word
from moorage.apimachinery.validation.names import check_subdomain
from moorage.apimachinery.validation.network_addresses import HTTPS_PORT, check_service_port
from moorage_cluster.apiserver.kinds.base import StatusStrategy, keep_metadata

_MAX_GROUP_PRIORITY: Final = 20000
_MAX_VERSION_PRIORITY: Final = 1000
_CONDITION_STATUSES: Final = ("True", "False", "Unknown")
_NOT_PASSED_ON: Final = "API services are stored but no request is passed on to them by this server"


class APIServiceStrategy(StatusStrategy):
    """An APIService."""

    allows_unconditional_update = False

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now

    def name_problems(self, name: str) -> tuple[str, ...]:
        """Names are path segments; further rules follow from the group and version."""
        return path_segment_problems(name)

    def default(self, obj: Manifest) -> None:
        """Services are reached with HTTPS."""
        super().default(obj)
        if "service" in obj["spec"]:
            obj["spec"]["service"].setdefault("port", HTTPS_PORT)

    def prepare_create(self, obj: Manifest) -> None:
        """An APIService without a service is available."""
        super().prepare_create(obj)
        if "service" not in obj["spec"]:
            condition = {
                "type": "Available",
                "status": "True",
                "lastTransitionTime": timestamp(self._now()),
                "reason": "Local",
                "message": "Local APIServices are always available",
            }
            obj["status"]["conditions"] = [condition]

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Status updates do not change the metadata."""
        super().prepare_status(obj, old)
        keep_metadata(obj, old)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The name consists of version and group, and the service can be reached."""
        spec = obj["spec"]
        errors = _check_name(obj) + _check_group(spec)
        version = spec.get("version", "")
        errors += complaints("spec.version", version, dns_1035_label_problems(version))
        for key, highest in (
            ("groupPriorityMinimum", _MAX_GROUP_PRIORITY),
            ("versionPriority", _MAX_VERSION_PRIORITY),
        ):
            priority = spec.get(key, 0)
            if not 0 < priority <= highest:
                errors.append(invalid(f"spec.{key}", priority, f"must be positive and less than {highest}"))
        return errors + (_check_service(spec) if "service" in spec else _check_local(spec))

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The status of a condition is True, False or Unknown."""
        errors: list[FieldError] = []
        for index, condition in enumerate(obj["status"].get("conditions") or ()):
            path = f"status.conditions[{index}].status"
            errors += check_optional_word(condition.get("status", ""), _CONDITION_STATUSES, path)
        return errors

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn that the service is never called."""
        return [_NOT_PASSED_ON] if old is None and "service" in obj["spec"] else []


def _check_name(obj: Manifest) -> list[FieldError]:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if path_segment_problems(name) or name == wanted:
        return []
    return [invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: {quoted(wanted)}')]


def _check_group(spec: Manifest) -> list[FieldError]:
    group = spec.get("group", "")
    if group:
        return check_subdomain(group, "spec.group")
    if spec.get("version") == "v1":
        return []
    return [required("spec.group", "only v1 may have an empty group and it better be legacy kube")]


def _check_local(spec: Manifest) -> list[FieldError]:
    errors = []
    if spec.get("caBundle"):
        size = len(spec["caBundle"]) * 3 // 4 - spec["caBundle"].count("=")
        why = "local APIServices may not have a caBundle"
        errors.append(invalid("spec.caBundle", f"{size} bytes", why))
    if spec.get("insecureSkipTLSVerify"):
        why = "local APIServices may not have insecureSkipTLSVerify"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, why))
    return errors


def _check_service(spec: Manifest) -> list[FieldError]:
    service = spec["service"]
    errors = [required(f"spec.service.{key}") for key in ("namespace", "name") if not service.get(key)]
    errors += check_service_port(service["port"], "spec.service.port")
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        why = "may not be true if caBundle is present"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, why))
    return errors
