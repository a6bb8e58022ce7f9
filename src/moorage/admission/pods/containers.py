"""Validation of containers of all three kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final, NamedTuple

from moorage.admission.pods.environment import validate_env, validate_env_from
from moorage.admission.pods.probes import PROBES, validate_probes
from moorage.admission.pods.requirements import validate_requirements
from moorage.admission.pods.security import validate_container_security
from moorage.admission.pods.totals import is_sidecar
from moorage.api.manifests import Manifest
from moorage.api.names import dns_label_problems, port_name_problems
from moorage.apimachinery.fields import (
    ENOUGH_ERRORS,
    FieldError,
    complaints,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from moorage.apimachinery.validation.network_addresses import check_port_or_name
from moorage.apimachinery.validation.paths import check_relative_path, goes_up

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS: Final = ("Disabled", "Enabled", "IfPossible")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")
_MAX_RESTART_RULES: Final = 20
_MAX_EXIT_CODES: Final = 255

_NOT_EPHEMERAL: Final = ("ports", "resources", "lifecycle", "resizePolicy", "restartPolicyRules", *PROBES)
_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"
_NOT_INIT: Final = "may not be set for init containers without restartPolicy=Always"


class Surroundings(NamedTuple):
    """The fields of the rest of the pod that the validation of containers depends on."""

    volumes: Mapping[str, Manifest]
    claims: Set[str]
    grace_seconds: int | None
    restart_policy: str
    host_users: bool
    in_pod: bool
    """Whether this is a pod, not a pod template."""


def validate_containers(containers: Sequence[Manifest], around: Surroundings, path: str) -> list[FieldError]:
    """Validation errors of a pod's regular containers."""
    if not containers:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    for index, container in enumerate(containers):
        if len(errors) > ENOUGH_ERRORS:
            return errors
        where = f"{path}[{index}]"
        errors += _validate_common(container, around, where)
        errors += _repeated_name(container, seen, where)
        errors += validate_probes(container, around.grace_seconds, where)
        errors += _restart_errors(container, where)
    for index, container in enumerate(containers):
        if ports := container.get("ports"):
            errors += _host_port_conflicts(ports, host_ports, f"{path}[{index}].ports")
    return errors


def validate_init_containers(
    containers: Sequence[Manifest], others: Sequence[Manifest], around: Surroundings, path: str
) -> list[FieldError]:
    """Validation errors of init containers, restartable ones included."""
    errors: list[FieldError] = []
    seen = {container.get("name", "") for container in others}
    for index, container in enumerate(containers):
        if len(errors) > ENOUGH_ERRORS:
            return errors
        where = f"{path}[{index}]"
        errors += _validate_common(container, around, where)
        errors += _restart_errors(container, where)
        name = container.get("name", "")
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        elif name:
            seen.add(name)
        # They run one by one, so only ports of one container can conflict; the index is always the first.
        errors += _host_port_conflicts(container.get("ports") or (), set(), f"{path}[0].ports")
        if is_sidecar(container):
            errors += validate_probes(container, around.grace_seconds, where)
            continue
        for key in ("lifecycle", *PROBES):
            if key in container:
                errors.append(forbidden(f"{where}.{key}", _NOT_INIT))
        for at, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                problem = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                there = f"{where}.resizePolicy[{at}].restartPolicy"
                errors.append(invalid(there, "RestartContainer", problem))
    return errors


def validate_ephemeral_containers(
    containers: Sequence[Manifest], others: Sequence[Manifest], around: Surroundings, path: str
) -> list[FieldError]:
    """Validation errors of ephemeral containers."""
    errors: list[FieldError] = []
    targets = {container.get("name", "") for container in others}
    seen = set(targets)
    for index, container in enumerate(containers):
        if len(errors) > ENOUGH_ERRORS:
            return errors
        where = f"{path}[{index}]"
        errors += _validate_common(container, around, where)
        errors += _repeated_name(container, seen, where)
        target = container.get("targetContainerName")
        if target and target not in targets:
            errors.append(not_found(f"{where}.targetContainerName", target))
        for key in (*_NOT_EPHEMERAL, "restartPolicy"):
            if container.get(key):
                errors.append(forbidden(f"{where}.{key}", _EPHEMERAL))
        for at, mount in enumerate(container.get("volumeMounts") or ()):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    errors.append(forbidden(f"{where}.volumeMounts[{at}].{key}", _EPHEMERAL))
    return errors


def _repeated_name(container: Manifest, seen: set[str], path: str) -> list[FieldError]:
    """The error of a container whose name was seen before; its name is seen from now on."""
    name = container.get("name", "")
    if name in seen:
        return [duplicate(f"{path}.name", name)]
    seen.add(name)
    return []


def _validate_common(container: Manifest, around: Surroundings, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    get = container.get
    name, image = get("name", ""), get("image", "")
    if not name:
        errors.append(required(f"{path}.name"))
    elif problems := dns_label_problems(name):
        errors += complaints(f"{path}.name", name, problems)
    if not image:
        errors.append(required(f"{path}.image"))
    elif around.in_pod and image != image.strip():
        errors.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    for key, known in (("terminationMessagePolicy", _MESSAGE_POLICIES), ("imagePullPolicy", _PULL_POLICIES)):
        value = get(key)
        if value not in known:
            where = f"{path}.{key}"
            errors.append(not_supported(where, value, known) if value else required(where))
    if ports := get("ports"):
        errors += _ports(ports, f"{path}.ports")
    if variables := get("env"):
        errors += validate_env(variables, around.volumes, f"{path}.env")
    if sources := get("envFrom"):
        errors += validate_env_from(sources, f"{path}.envFrom")
    mounts, devices = get("volumeMounts"), get("volumeDevices")
    if mounts:
        errors += _mounts(container, mounts, devices or (), around.volumes, f"{path}.volumeMounts")
    if devices:
        errors += _devices(devices, mounts or (), around.volumes, f"{path}.volumeDevices")
    if resources := get("resources"):
        errors += validate_requirements(resources, around.claims, f"{path}.resources")
    if policies := get("resizePolicy"):
        errors += _resize_policies(policies, around.restart_policy, f"{path}.resizePolicy")
    if context := get("securityContext"):
        errors += validate_container_security(
            context, f"{path}.securityContext", host_users=around.host_users
        )
    return errors


def _ports(ports: Sequence[Manifest], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        if name := port.get("name"):
            if problems := port_name_problems(name):
                errors += complaints(f"{where}.name", name, problems)
            elif name in seen:
                errors.append(duplicate(f"{where}.name", name))
            seen.add(name)
        if not port.get("containerPort"):
            errors.append(required(f"{where}.containerPort"))
        for key in ("containerPort", "hostPort"):
            if (number := port.get(key)) and not 0 < number < 65536:
                errors += check_port_or_name(number, f"{where}.{key}")
        protocol = port.get("protocol", "")
        if protocol not in _PROTOCOLS:
            there = f"{where}.protocol"
            errors.append(not_supported(there, protocol, _PROTOCOLS) if protocol else required(there))
    return errors


def _host_port_conflicts(
    ports: Sequence[Manifest], taken: set[tuple[str, str, int]], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, port in enumerate(ports):
        if number := port.get("hostPort"):
            this = (port.get("protocol", ""), port.get("hostIP", ""), number)
            if this in taken:
                errors.append(duplicate(f"{path}[{index}].hostPort", f"{this[0]}/{this[1]}/{this[2]}"))
            taken.add(this)
    return errors


def _mounts(
    container: Manifest,
    mounts: Sequence[Manifest],
    devices: Sequence[Manifest],
    volumes: Mapping[str, Manifest],
    path: str,
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    device_paths = {device.get("name", ""): device.get("devicePath", "") for device in devices}
    occupied = set(device_paths.values())
    for index, mount in enumerate(mounts):
        where = f"{path}[{index}]"
        name, place = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{where}.name"))
        if name not in volumes:
            errors.append(not_found(f"{where}.name", name))
        if not place:
            errors.append(required(f"{where}.mountPath"))
        if place in seen:
            errors.append(invalid(f"{where}.mountPath", place, "must be unique"))
        seen.add(place)
        if name in device_paths:
            errors.append(invalid(f"{where}.name", name, "must not already exist in volumeDevices"))
        if place in occupied:
            problem = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{where}.mountPath", place, problem))
        if below := mount.get("subPath"):
            errors += check_relative_path(below, f"{path}.subPath")
        if expression := mount.get("subPathExpr"):
            if below:
                problem = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid(f"{where}.subPathExpr", expression, problem))
            errors += check_relative_path(expression, f"{path}.subPathExpr")
        if "mountPropagation" in mount or "recursiveReadOnly" in mount:
            errors += _mount_modes(container, mount, path)
    return errors


def _mount_modes(container: Manifest, mount: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    propagation, recursion = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None and propagation not in _PROPAGATIONS:
        errors.append(not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS))
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        problem = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden(f"{path}.mountPropagation", problem))
    if recursion is not None and recursion not in _RECURSIONS:
        errors.append(not_supported(f"{path}.recursiveReadOnly", recursion, _RECURSIONS))
    elif recursion in ("Enabled", "IfPossible"):
        where = f"{path}.recursiveReadOnly"
        if not mount.get("readOnly"):
            errors.append(forbidden(where, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            problem = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden(where, problem))
    return errors


def _devices(
    devices: Sequence[Manifest], mounts: Sequence[Manifest], volumes: Mapping[str, Manifest], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    places: set[str] = set()
    mount_paths = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
    occupied = set(mount_paths.values())
    for index, device in enumerate(devices):
        where = f"{path}[{index}]"
        name, place = device.get("name", ""), device.get("devicePath", "")
        if not name:
            errors.append(required(f"{where}.name"))
        if name in names:
            errors.append(invalid(f"{where}.name", name, "must be unique"))
        volume = volumes.get(name)
        if volume is None:
            errors.append(not_found(f"{where}.name", name))
        elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            problem = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{where}.name", name, problem))
        if not place:
            errors.append(required(f"{where}.devicePath"))
        if place in places:
            errors.append(invalid(f"{where}.devicePath", place, "must be unique"))
        if goes_up(place):
            errors.append(invalid(f"{where}.devicePath", place, "can not contain backsteps ('..')"))
        if name in mount_paths:
            errors.append(invalid(f"{where}.name", name, "must not already exist in volumeMounts"))
        if place in occupied:
            problem = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{where}.devicePath", place, problem))
        names.add(name)
        places.add(place)
    return errors


def _resize_policies(policies: Sequence[Manifest], restart_policy: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        for value, known in (
            (resource, ("cpu", "memory")),
            (restart, ("NotRequired", "RestartContainer")),
        ):
            if value not in known:
                errors.append(not_supported(path, value, known) if value else required(path))
        if restart_policy == "Never" and restart != "NotRequired":
            problem = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, restart, problem))
    return errors


def _restart_errors(container: Manifest, path: str) -> list[FieldError]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    errors: list[FieldError] = []
    if policy is None:
        if not rules:
            return errors
        problem = "must specify restartPolicy when restart rules are used"
        errors.append(required(f"{path}.restartPolicy", problem))
    elif policy not in _RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > _MAX_RESTART_RULES:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), _MAX_RESTART_RULES))
    for index, rule in enumerate(rules):
        where = f"{path}.restartPolicyRules[{index}]"
        if rule.get("action") not in _RESTART_ACTIONS:
            errors.append(not_supported(f"{where}.action", rule.get("action", ""), _RESTART_ACTIONS))
        codes = rule.get("exitCodes")
        if codes is None:
            errors.append(required(f"{where}.exitCodes", "must be specified"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            operator = codes.get("operator", "")
            errors.append(not_supported(f"{where}.exitCodes.operator", operator, ("In", "NotIn")))
        if len(codes.get("values") or ()) > _MAX_EXIT_CODES:
            errors.append(too_many(f"{where}.exitCodes.values", len(codes["values"]), _MAX_EXIT_CODES))
    return errors
