"""Validation of a pod or a pod template, part by part, in Kubernetes' order."""

from __future__ import annotations

from typing import Final

from moorage.admission.pods.containers import (
    Surroundings,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from moorage.admission.pods.requirements import validate_pod_resources, validate_requirements
from moorage.admission.pods.scheduling import (
    validate_affinity,
    validate_scheduling_gates,
    validate_scheduling_group,
    validate_spread_constraints,
)
from moorage.admission.pods.security import validate_operating_system, validate_pod_security
from moorage.admission.pods.volumes import validate_volumes
from moorage.api.manifests import Manifest
from moorage.api.names import dns_label_problems, dns_subdomain_problems, search_domain_problems
from moorage.apimachinery.fields import (
    FieldError,
    complaints,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.apimachinery.validation.checks import MAX_INT32, check_range
from moorage.apimachinery.validation.metadata import validate_annotations, validate_labels
from moorage.apimachinery.validation.names import check_label, check_qualified_name, check_subdomain
from moorage.apimachinery.validation.network_addresses import check_address
from moorage.apimachinery.validation.taints import check_tolerations

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
DELETION_COST_ANNOTATION: Final = "controller.kubernetes.io/pod-deletion-cost"

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")

_MAX_NAMESERVERS: Final = 3
_MAX_SEARCHES: Final = 32
_MAX_SEARCHES_LENGTH: Final = 2048
_MAX_HOSTNAME_BYTES: Final = 64
_NONE: Final[frozenset[str]] = frozenset()


def validate_template(template: Manifest, path: str) -> list[FieldError]:
    """Validation errors of a workload's pod template; the caller checks the restart policy."""
    meta = template.get("metadata") or {}
    spec = template.get("spec") or {}
    errors: list[FieldError] = []
    if labels := meta.get("labels"):
        errors += validate_labels(labels, f"{path}.labels")
    if annotations := meta.get("annotations"):
        errors += validate_annotations(annotations, f"{path}.annotations")
        errors += validate_pod_annotations(annotations, spec, f"{path}.annotations")
    errors += validate_pod_spec(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        problem = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", problem))
    return errors


def validate_pod(pod: Manifest) -> list[FieldError]:
    """Validation errors of a new or updated pod, except those of its metadata."""
    spec, meta = pod["spec"], pod["metadata"]
    errors: list[FieldError] = []
    if annotations := meta.get("annotations"):
        errors += validate_pod_annotations(annotations, spec, "metadata.annotations")
    errors += validate_pod_spec(spec, "spec", meta)
    if not spec.get("serviceAccountName"):
        errors += _tokens_without_account(spec)
    return errors


def validate_new_pod(pod: Manifest) -> list[FieldError]:
    """Validation errors of a pod to be created, except those of its metadata."""
    errors = validate_pod(pod)
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        problem = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden("spec.nodeName", problem))
    return errors


def validate_pod_annotations(annotations: dict[str, str], spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of the annotations with a meaning for pods."""
    errors: list[FieldError] = []
    if MIRROR_ANNOTATION in annotations and not spec.get("nodeName"):
        problem = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR_ANNOTATION}]", annotations[MIRROR_ANNOTATION], problem))
    cost = annotations.get(DELETION_COST_ANNOTATION)
    if cost is not None and not _is_int32(cost):
        errors.append(invalid(f"{path}[{DELETION_COST_ANNOTATION}]", cost, "must be a 32bit integer"))
    return errors


def _is_int32(text: str) -> bool:
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        return False
    # Only the canonical form of a number is valid: no plus sign, no leading zeros.
    return str(int(text)) == text and -MAX_INT32 - 1 <= int(text) <= MAX_INT32


def _tokens_without_account(spec: Manifest) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, volume in enumerate(spec.get("volumes") or ()):
        for at, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if "serviceAccountToken" in source:
                where = f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken"
                problem = "must not be specified when serviceAccountName is not set"
                errors.append(forbidden(where, problem))
    return errors


def validate_pod_spec(spec: Manifest, path: str, meta: Manifest | None = None) -> list[FieldError]:
    """Validation errors of a pod's spec, or of a template's if there is no pod metadata."""
    errors: list[FieldError] = []
    get = spec.get
    in_pod = meta is not None
    grace = get("terminationGracePeriodSeconds")
    if grace is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    volumes: dict[str, Manifest] = {}
    if listed := get("volumes"):
        name = meta.get("name", "") if meta is not None else ""
        volumes, problems = validate_volumes(listed, name, f"{path}.volumes", in_pod=in_pod)
        errors += problems
    claims: frozenset[str] = _NONE
    if wanted := get("resourceClaims"):
        claims = frozenset(claim["name"] for claim in wanted if claim.get("name"))
        errors += _resource_claims(wanted, meta, f"{path}.resourceClaims")
    host_users = get("hostUsers") is not False
    around = Surroundings(volumes, claims, grace, get("restartPolicy", ""), host_users, in_pod)
    containers = get("containers") or []
    init_containers = get("initContainers") or []
    errors += validate_containers(containers, around, f"{path}.containers")
    if init_containers:
        errors += validate_init_containers(init_containers, containers, around, f"{path}.initContainers")
    if ephemeral := get("ephemeralContainers"):
        others = [*containers, *init_containers]
        errors += validate_ephemeral_containers(ephemeral, others, around, f"{path}.ephemeralContainers")
    if get("resources") is not None:
        errors += validate_pod_resources(spec, claims, f"{path}.resources")
    if get("hostNetwork"):
        errors += _host_network_ports(containers, f"{path}.containers", in_pod=in_pod)
    for key, known in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", DNS_POLICIES)):
        value = get(key)
        if value not in known:
            where = f"{path}.{key}"
            errors.append(not_supported(where, value, known) if value else required(where))
    return errors + _validate_where(spec, path) + _validate_identity(spec, path)


def _validate_where(spec: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    get = spec.get
    if selector := get("nodeSelector"):
        errors += validate_labels(selector, f"{path}.nodeSelector")
    if affinity := get("affinity"):
        errors += validate_affinity(affinity, f"{path}.affinity")
    if gates := get("schedulingGates"):
        errors += validate_scheduling_gates(gates, f"{path}.schedulingGates")
    if constraints := get("topologySpreadConstraints"):
        errors += validate_spread_constraints(constraints, f"{path}.topologySpreadConstraints")
    if tolerations := get("tolerations"):
        errors += check_tolerations(tolerations, f"{path}.tolerations")
    for key in ("nodeName", "priorityClassName"):
        if (name := get(key)) and (problems := dns_subdomain_problems(name)):
            errors += complaints(f"{path}.{key}", name, problems)
    policy = get("preemptionPolicy")
    if policy is not None and policy not in PREEMPTION_POLICIES:
        where = f"{path}.preemptionPolicy"
        errors.append(not_supported(where, policy, PREEMPTION_POLICIES) if policy else required(where))
    if overhead := get("overhead"):
        errors += validate_requirements({"limits": overhead}, _NONE, f"{path}.overhead")
    return errors


def _validate_identity(spec: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    get = spec.get
    if context := get("securityContext"):
        errors += validate_pod_security(spec, context, f"{path}.securityContext")
    if get("shareProcessNamespace") and get("hostPID"):
        where = f"{path}.securityContext.shareProcessNamespace"
        errors.append(invalid(where, True, "ShareProcessNamespace and HostPID cannot both be enabled"))
    if get("hostUsers") is False:
        errors += _user_namespace(spec, path)
    if get("dnsPolicy") == "None" or "dnsConfig" in spec:
        errors += _dns(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(get("readinessGates") or ()):
        where = f"{path}.readinessGates[{index}].conditionType"
        errors += check_qualified_name(gate.get("conditionType", ""), where)
    if get("hostnameOverride") is not None:
        errors += _hostname_override(spec, f"{path}.hostnameOverride")
    for key in ("serviceAccountName", "runtimeClassName"):
        if (name := get(key)) and (problems := dns_subdomain_problems(name)):
            errors += complaints(f"{path}.{key}", name, problems)
    for key in ("hostname", "subdomain"):
        if (name := get(key)) and (problems := dns_label_problems(name)):
            errors += complaints(f"{path}.{key}", name, problems)
    if (deadline := get("activeDeadlineSeconds")) is not None:
        errors += check_range(deadline, 1, MAX_INT32, f"{path}.activeDeadlineSeconds")
    for index, alias in enumerate(get("hostAliases") or ()):
        where, address = f"{path}.hostAliases[{index}]", alias.get("ip", "")
        errors += check_address(address, f"{where}.ip")
        for at, name in enumerate(alias.get("hostnames") or ()):
            errors += check_subdomain(name, f"{where}.hostnames[{at}]")
    if get("os") is not None:
        errors += validate_operating_system(spec, path)
    if (group := get("schedulingGroup")) is not None:
        errors += validate_scheduling_group(group, f"{path}.schedulingGroup")
    return errors


def _resource_claims(claims: list[Manifest], meta: Manifest | None, path: str) -> list[FieldError]:
    if meta is not None and MIRROR_ANNOTATION in (meta.get("annotations") or ()):
        return [forbidden("", "static pods do not support resource claims")]
    errors: list[FieldError] = []
    seen: set[str] = set()
    kinds = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        where, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            errors.append(required(f"{where}.name"))
        elif name in seen:
            errors.append(duplicate(f"{where}.name", name))
        else:
            errors += check_label(name, f"{where}.name")
            seen.add(name)
        used = [kind for kind in kinds if kind in claim]
        if len(used) > 1:
            problem = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(where, claim, problem))
        elif not used:
            problem = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(where, claim, problem))
        for kind in used:
            errors += check_subdomain(claim[kind], f"{where}.{kind}")
    return errors


def _host_network_ports(containers: list[Manifest], path: str, *, in_pod: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort", 0)
            if (in_pod or number) and number != port.get("containerPort", 0):
                problem = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(f"{path}[{index}].ports[{at}].hostPort", number, problem))
    return errors


def _user_namespace(spec: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(key):
            errors.append(forbidden(f"{path}.{name}", "when `hostUsers` is false"))
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            if container.get("volumeDevices"):
                where = f"{path}.{key}[{index}].volumeDevices"
                errors.append(forbidden(where, "when `hostUsers` is false"))
    return errors


def _hostname_override(spec: Manifest, path: str) -> list[FieldError]:
    name: str = spec["hostnameOverride"]
    errors: list[FieldError] = []
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(path, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(path, "may not be specified when hostNetwork is true"))
    if len(name.encode()) > _MAX_HOSTNAME_BYTES:
        errors.append(too_long(path, _MAX_HOSTNAME_BYTES))
    return errors + check_subdomain(name, path)


def _dns(spec: Manifest, path: str) -> list[FieldError]:
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not servers:
            problem = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", problem)]
    if config is None:
        return []
    errors: list[FieldError] = []
    if len(servers) > _MAX_NAMESERVERS:
        problem = f"must not have more than {_MAX_NAMESERVERS} nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, problem))
    for index, server in enumerate(servers):
        errors += check_address(server, f"{path}.nameservers[{index}]")
    searches = config.get("searches") or []
    if len(searches) > _MAX_SEARCHES:
        problem = f"must not have more than {_MAX_SEARCHES} search paths"
        errors.append(invalid(f"{path}.searches", searches, problem))
    if len(" ".join(searches)) > _MAX_SEARCHES_LENGTH:
        problem = (
            f"must not have more than {_MAX_SEARCHES_LENGTH} characters (including spaces) in the search list"
        )
        errors.append(invalid(f"{path}.searches", searches, problem))
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            errors += complaints(f"{path}.searches[{index}]", domain, search_domain_problems(domain))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors
