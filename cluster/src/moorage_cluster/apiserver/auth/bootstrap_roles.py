"""The roles and bindings that exist from the start, as Kubernetes makes them.

Rules are written as `(verbs, groups, resources)`, each a text of words in order; the core group is `core`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moorage.admission.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.auth.authorizers import PUBLIC_PATHS
from moorage_cluster.apiserver.auth.rbac import GROUP, aggregated_rules
from moorage_cluster.apiserver.auth.rules import EVERYTHING, Rule
from moorage_cluster.apiserver.auth.serviceaccounts import ALL_SERVICE_ACCOUNTS
from moorage_cluster.apiserver.server_version import COMPOSITE_POD_GROUP, GENERIC_WORKLOAD, ServerVersion

_API_VERSION: Final = f"{GROUP}/v1"
_SYSTEM: Final = "kube-system"
_SCHEDULER: Final = "system:kube-scheduler"
_CONTROLLER_MANAGER: Final = "system:kube-controller-manager"

_READ: Final = "get list watch"
_WRITE: Final = "create delete deletecollection patch update"
_READ_WRITE: Final = "create delete deletecollection get list patch update watch"
_READ_UPDATE: Final = "get list patch update watch"
_LOCK: Final = "create get list update watch"


def _rule(verbs: str, groups: str, resources: str, *names: str) -> Rule:
    in_groups = tuple("" if group == "core" else group for group in groups.split())
    return Rule(tuple(verbs.split()), in_groups, tuple(resources.split()), names)


def _get(urls: str) -> Rule:
    return Rule(verbs=("get",), urls=tuple(urls.split()))


_EVENTS: Final = _rule("create patch update", "core events.k8s.io", "events")
_TOKEN_REVIEWS: Final = _rule("create", "authentication.k8s.io", "tokenreviews")
_ACCESS_REVIEWS: Final = _rule("create", "authorization.k8s.io", "subjectaccessreviews")

_VIEW: Final = (
    _rule(
        _READ,
        "core",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
        "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
    ),
    _rule(
        _READ,
        "core",
        "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
        "resourcequotas resourcequotas/status",
    ),
    _rule(_READ, "core", "namespaces"),
    _rule(_READ, "core events.k8s.io", "events"),
    _rule(_READ, "discovery.k8s.io", "endpointslices"),
    _rule(
        _READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
        "replicasets replicasets/scale replicasets/status "
        "statefulsets statefulsets/scale statefulsets/status",
    ),
    _rule(_READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    _rule(_READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    _rule(
        _READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
        "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
        "replicationcontrollers/scale",
    ),
    _rule(_READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    _rule(_READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    _rule(_READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
)
_EDIT: Final = (
    _rule(_READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    _rule("impersonate", "core", "serviceaccounts"),
    _rule(_WRITE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    _rule("create", "core", "pods/eviction"),
    _rule(
        _WRITE,
        "core",
        "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
        "serviceaccounts services services/proxy",
    ),
    _rule("create", "core", "serviceaccounts/token"),
    _rule(_WRITE, "core events.k8s.io", "events"),
    _rule(
        _WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
        "statefulsets statefulsets/scale",
    ),
    _rule(_WRITE, "autoscaling", "horizontalpodautoscalers"),
    _rule(_WRITE, "batch", "cronjobs jobs"),
    _rule(
        _WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
        "replicasets/scale replicationcontrollers/scale",
    ),
    _rule(_WRITE, "policy", "poddisruptionbudgets"),
    _rule(_WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    _rule(_READ_WRITE, "coordination.k8s.io", "leases"),
    _rule(_WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
)
_ADMIN: Final = (
    _rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    _rule(_READ_WRITE, GROUP, "rolebindings roles"),
)
_DEVICE_TAINT_RULES: Final = _rule(_READ, "resource.k8s.io", "devicetaintrules")
"""Since v1.37."""
_KUBE_SCHEDULER: Final = (
    _EVENTS,
    _rule("create", "coordination.k8s.io", "leases"),
    _rule("get list update watch", "coordination.k8s.io", "leases", "kube-scheduler"),
    _rule(_READ_WRITE, "coordination.k8s.io", "leasecandidates"),
    _rule(_READ, "core", "nodes"),
    _rule("delete get list watch", "core", "pods"),
    _rule("create", "core", "bindings pods/binding"),
    _rule("patch update", "core", "pods/status"),
    _rule(_READ, "core", "replicationcontrollers services"),
    _rule(_READ, "apps extensions", "replicasets"),
    _rule(_READ, "apps", "statefulsets"),
    _rule(_READ, "policy", "poddisruptionbudgets"),
    _rule(_READ, "core", "persistentvolumeclaims persistentvolumes"),
    _TOKEN_REVIEWS,
    _ACCESS_REVIEWS,
    _rule(_READ, "storage.k8s.io", "csinodes"),
    _rule(_READ, "storage.k8s.io", "volumeattachments"),
    _rule(_READ, "core", "namespaces"),
    _rule(_READ, "storage.k8s.io", "csidrivers"),
    _rule(_READ, "storage.k8s.io", "csistoragecapacities"),
    _rule(_READ, "resource.k8s.io", "deviceclasses"),
    _rule(_READ_UPDATE, "resource.k8s.io", "resourceclaims"),
    _rule(_READ_UPDATE, "resource.k8s.io", "resourceclaims/status"),
    _rule("update", "core", "pods/finalizers"),
    _rule(_READ, "resource.k8s.io", "resourceslices"),
    _rule("create delete", "resource.k8s.io", "resourceclaims"),
    _DEVICE_TAINT_RULES,
    _rule("patch update", "resource.k8s.io", "resourceclaims/binding"),
)


class _GatedRules(NamedTuple):
    """The rules that a feature gate adds to roles."""

    view: tuple[Rule, ...] = ()
    edit: tuple[Rule, ...] = ()
    scheduler: tuple[Rule, ...] = ()


def _group_rules(objects: str, groups: str) -> _GatedRules:
    group = "scheduling.k8s.io"
    return _GatedRules(
        view=(_rule(_READ, group, f"{objects} {groups}/status"),),
        edit=(_rule(_WRITE, group, objects),),
        scheduler=(_rule(_READ, group, groups), _rule("patch update", group, f"{groups}/status")),
    )


_GATED: Final = {
    GENERIC_WORKLOAD: _group_rules("podgroups workloads", "podgroups"),
    COMPOSITE_POD_GROUP: _group_rules("compositepodgroups", "compositepodgroups"),
}
_KUBE_CONTROLLER_MANAGER: Final = (
    _EVENTS,
    _rule("create", "coordination.k8s.io", "leases"),
    _rule("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
    _rule("create", "core", "secrets serviceaccounts"),
    _rule("delete", "core", "secrets"),
    _rule("get", "core", "configmaps namespaces secrets serviceaccounts"),
    _rule("update", "core", "secrets serviceaccounts"),
    _TOKEN_REVIEWS,
    _ACCESS_REVIEWS,
    _rule("list watch", "*", "*"),
    _rule("create", "core", "serviceaccounts/token"),
)
_VOLUME_SCHEDULER: Final = (
    _rule(_READ_UPDATE, "core", "persistentvolumes"),
    _rule(_READ, "storage.k8s.io", "storageclasses"),
    _rule(_READ_UPDATE, "core", "persistentvolumeclaims"),
)
_DISCOVERY: Final = (
    _get("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
)
_MONITORING: Final = (
    _get("/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"),
    _rule("get", "core", "nodes/metrics"),
)
_ISSUER_DISCOVERY: Final = (
    _get(
        "/.well-known/openid-configuration /.well-known/openid-configuration/ "
        "/openid/v1/jwks /openid/v1/jwks/"
    ),
)
_BASIC_USER: Final = (
    _rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
    _rule("create", "authentication.k8s.io", "selfsubjectreviews"),
)
_LEADER_LOCKING: Final = (
    _rule(_LOCK, "coordination.k8s.io", "leases"),
    _rule(_LOCK, "coordination.k8s.io", "leasecandidates"),
)
_AUTHENTICATION_READER: Final = (_rule(_READ, "core", "configmaps", "extension-apiserver-authentication"),)


def cluster_roles(version: ServerVersion) -> list[Manifest]:
    """The ClusterRoles; aggregated ones already contain the rules of the roles they select."""
    more = [rules for gate, rules in _GATED.items() if version.enabled(gate)]
    view = (*_VIEW, *(rule for rules in more for rule in rules.view))
    edit = (*_EDIT, *(rule for rules in more for rule in rules.edit))
    scheduler = (
        *(rule for rule in _KUBE_SCHEDULER if rule is not _DEVICE_TAINT_RULES or not version.is_1_36),
        *(rule for rules in more for rule in rules.scheduler),
    )
    roles = [
        _cluster_role("cluster-admin", EVERYTHING),
        _cluster_role("system:discovery", _DISCOVERY),
        _cluster_role("system:monitoring", _MONITORING),
        _cluster_role("system:basic-user", _BASIC_USER),
        _cluster_role("system:public-info-viewer", (Rule(verbs=("get",), urls=PUBLIC_PATHS),)),
        _gathering("admin"),
        _gathering("edit", part_of="admin"),
        _gathering("view", part_of="edit"),
        _cluster_role("system:aggregate-to-admin", _ADMIN, part_of="admin"),
        _cluster_role("system:aggregate-to-edit", edit, part_of="edit"),
        _cluster_role("system:aggregate-to-view", view, part_of="view"),
        _cluster_role("system:auth-delegator", (_TOKEN_REVIEWS, _ACCESS_REVIEWS)),
        _cluster_role(_CONTROLLER_MANAGER, _KUBE_CONTROLLER_MANAGER),
        _cluster_role("system:volume-scheduler", _VOLUME_SCHEDULER),
        _cluster_role("system:service-account-issuer-discovery", _ISSUER_DISCOVERY),
        _cluster_role(_SCHEDULER, scheduler),
    ]
    for role in roles:
        if "aggregationRule" in role:
            role["rules"] = [rule.manifest for rule in aggregated_rules(role, roles)]
    return roles


def cluster_role_bindings() -> list[Manifest]:
    """The ClusterRoleBindings."""
    return [
        _cluster_binding("cluster-admin", _group(MASTERS)),
        _cluster_binding("system:monitoring", _group("system:monitoring")),
        _cluster_binding("system:discovery", _group(AUTHENTICATED)),
        _cluster_binding("system:basic-user", _group(AUTHENTICATED)),
        _cluster_binding("system:public-info-viewer", _group(AUTHENTICATED), _group(UNAUTHENTICATED)),
        _cluster_binding(_CONTROLLER_MANAGER, _user(_CONTROLLER_MANAGER)),
        _cluster_binding(_SCHEDULER, _user(_SCHEDULER)),
        _cluster_binding("system:volume-scheduler", _user(_SCHEDULER)),
        _cluster_binding("system:service-account-issuer-discovery", _group(ALL_SERVICE_ACCOUNTS)),
    ]


def roles() -> list[Manifest]:
    """The Roles of kube-system."""
    rules = {
        "extension-apiserver-authentication-reader": _AUTHENTICATION_READER,
        "system::leader-locking-kube-controller-manager": _LEADER_LOCKING,
        "system::leader-locking-kube-scheduler": _LEADER_LOCKING,
    }
    return [
        {**_object("Role", name, _SYSTEM), "rules": [rule.manifest for rule in of]}
        for name, of in rules.items()
    ]


def role_bindings() -> list[Manifest]:
    """The RoleBindings of kube-system."""
    return [
        _binding(
            "system::extension-apiserver-authentication-reader",
            "extension-apiserver-authentication-reader",
            _user(_CONTROLLER_MANAGER),
            _user(_SCHEDULER),
        ),
        _binding(
            "system::leader-locking-kube-controller-manager",
            "system::leader-locking-kube-controller-manager",
            _user(_CONTROLLER_MANAGER),
            _account("kube-controller-manager"),
            _account("leader-election-controller"),
        ),
        _binding(
            "system::leader-locking-kube-scheduler",
            "system::leader-locking-kube-scheduler",
            _user(_SCHEDULER),
            _account("kube-scheduler"),
        ),
    ]


def _object(kind: str, name: str, namespace: str = "") -> Manifest:
    metadata: Manifest = {
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata}


def _cluster_role(name: str, rules: tuple[Rule, ...], part_of: str = "") -> Manifest:
    role = _object("ClusterRole", name)
    if part_of:
        role["metadata"]["labels"][_aggregation_label(part_of)] = "true"
    role["rules"] = [rule.manifest for rule in rules]
    return role


def _gathering(name: str, part_of: str = "") -> Manifest:
    role = _cluster_role(name, (), part_of)
    role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {_aggregation_label(name): "true"}}]}
    return role


def _aggregation_label(role: str) -> str:
    return f"{GROUP}/aggregate-to-{role}"


def _cluster_binding(role: str, *subjects: Manifest) -> Manifest:
    binding = _object("ClusterRoleBinding", role)
    binding["roleRef"] = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    binding["subjects"] = list(subjects)
    return binding


def _binding(name: str, role: str, *subjects: Manifest) -> Manifest:
    binding = _object("RoleBinding", name, _SYSTEM)
    binding["roleRef"] = {"apiGroup": GROUP, "kind": "Role", "name": role}
    binding["subjects"] = list(subjects)
    return binding


def _user(name: str) -> Manifest:
    return {"apiGroup": GROUP, "kind": "User", "name": name}


def _group(name: str) -> Manifest:
    return {"apiGroup": GROUP, "kind": "Group", "name": name}


def _account(name: str) -> Manifest:
    return {"kind": "ServiceAccount", "name": name, "namespace": _SYSTEM}
