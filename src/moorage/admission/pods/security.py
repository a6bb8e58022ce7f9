"""Validation of security contexts."""

from __future__ import annotations

import re
from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.apimachinery.validation.checks import MAX_INT32, check_range
from moorage.apimachinery.validation.paths import check_relative_path

_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL_PART: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_FORM: Final = rf"({_SYSCTL_PART}[\./])*{_SYSCTL_PART}"
_SYSCTL: Final = re.compile(_SYSCTL_FORM)
_MAX_SYSCTL_LENGTH: Final = 253
_MAX_PROFILE_BYTES: Final = 4095
_POLICIES: Final[dict[str, tuple[str, ...]]] = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}
_NOT_ON_WINDOWS: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
)


def validate_pod_security(spec: Manifest, context: Manifest, path: str) -> list[FieldError]:
    """Validation errors of a pod's security context."""
    errors: list[FieldError] = []
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        if key in context:
            errors += check_range(context[key], 0, MAX_INT32, f"{path}.{key}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += check_range(group, 0, MAX_INT32, f"{path}.supplementalGroups[{index}]")
    if sysctls := context.get("sysctls"):
        errors += _sysctls(sysctls, spec, f"{path}.sysctls")
    for key, known in _POLICIES.items():
        if key in context and context[key] not in known:
            errors.append(not_supported(f"{path}.{key}", context[key], known))
    return errors + _profiles(context, path)


def _profiles(context: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (seccomp := context.get("seccompProfile")) is not None:
        errors += _seccomp(seccomp, f"{path}.seccompProfile")
    if (armor := context.get("appArmorProfile")) is not None:
        errors += _app_armor(armor, f"{path}.appArmorProfile")
    return errors


def _seccomp(profile: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = profile.get("type", "")
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(f"{path}.type", kind, _PROFILES))
    file = profile.get("localhostProfile")
    if kind == "Localhost":
        if file is None:
            problem = "must be set when seccomp type is Localhost"
            errors.append(required(f"{path}.localhostProfile", problem))
        else:
            errors += check_relative_path(file, f"{path}.localhostProfile")
    elif file is not None:
        problem = "can only be set when seccomp type is Localhost"
        errors.append(invalid(f"{path}.localhostProfile", profile, problem))
    return errors


def _app_armor(profile: Manifest, path: str) -> list[FieldError]:
    kind, file = profile.get("type", ""), profile.get("localhostProfile")
    where = f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [not_supported(f"{path}.type", kind, _PROFILES)]
    if kind != "Localhost":
        problem = "can only be set when AppArmor type is Localhost"
        return [] if file is None else [invalid(where, file, problem)]
    errors: list[FieldError] = []
    if file is None or file == "":
        errors.append(required(where, "must be set when AppArmor type is Localhost"))
    elif file != file.strip():
        errors.append(invalid(where, file, "must not be padded with whitespace"))
    if file and len(file.encode()) > _MAX_PROFILE_BYTES:
        errors.append(too_long(where, _MAX_PROFILE_BYTES))
    return errors


def _sysctls(sysctls: list[Manifest], spec: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        where, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            errors.append(required(where))
        elif len(name) > _MAX_SYSCTL_LENGTH or not _SYSCTL.fullmatch(name):
            problem = f"must have at most {_MAX_SYSCTL_LENGTH} characters and match regex ^{_SYSCTL_FORM}$"
            errors.append(invalid(where, name, problem))
        elif name in seen:
            errors.append(duplicate(where, name))
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.append(invalid(where, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and dotted.startswith(
            ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
        ):
            errors.append(invalid(where, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return errors


def validate_container_security(context: Manifest, path: str, *, host_users: bool) -> list[FieldError]:
    """Validation errors of a container's security context."""
    errors: list[FieldError] = []
    for key in ("runAsUser", "runAsGroup"):
        if key in context:
            errors += check_range(context[key], 0, MAX_INT32, f"{path}.{key}")
    if (mount := context.get("procMount")) is not None:
        if mount not in ("Default", "Unmasked"):
            errors.append(not_supported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        elif host_users and mount == "Unmasked":
            problem = "`hostUsers` must be false to use `Unmasked`"
            errors.append(invalid(f"{path}.procMount", mount, problem))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            problem = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, context, problem))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            problem = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, context, problem))
    return errors + _profiles(context, path)


def validate_operating_system(spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of a pod's operating system, and of fields that it does not support."""
    name = spec["os"].get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name not in ("linux", "windows"):
        return [not_supported(f"{path}.os", name, ("linux", "windows"))]
    errors: list[FieldError] = []
    if name == "windows":
        for key in ("hostUsers", "shareProcessNamespace"):
            if key in spec:
                errors.append(forbidden(f"{path}.{key}", "cannot be set for a windows pod"))
        for key in ("hostPID", "hostIPC"):
            if spec.get(key):
                errors.append(forbidden(f"{path}.{key}", "cannot be set for a windows pod"))
    contexts = [(spec.get("securityContext"), f"{path}.securityContext")]
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            contexts.append((container.get("securityContext"), f"{path}.{kind}[{index}].securityContext"))
    for context, where in contexts:
        if not context:
            continue
        if name == "linux" and "windowsOptions" in context:
            problem = "windows options cannot be set for a linux pod"
            errors.append(forbidden(f"{where}.windowsOptions", problem))
        if name == "windows":
            for key in _NOT_ON_WINDOWS:
                if key in context:
                    errors.append(forbidden(f"{where}.{key}", "cannot be set for a windows pod"))
    return errors
