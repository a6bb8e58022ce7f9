"""Objects to test with, and the steps that the verbs take with them."""

from __future__ import annotations

from typing import Any

from moorage.admission.pods.defaults import default_pod_template
from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.strategy import Strategy

UID = "0b5e5d3c-4f0b-4a3e-9d0e-0f0f0f0f0f0f"
LABELS = {"app": "web"}


def an_object(spec: Manifest | None = None, *, meta: Manifest | None = None, **fields: Any) -> Manifest:
    """An object as a client sends it; kinds do not matter to strategies."""
    obj: Manifest = {
        "metadata": {"name": "web", "namespace": "default", "uid": UID, **(meta or {})},
        **fields,
    }
    if spec is not None:
        obj["spec"] = spec
    return obj


def a_template(labels: Manifest | None = None, **spec: Any) -> Manifest:
    """A pod template with a container."""
    wanted = LABELS if labels is None else labels
    return {
        "metadata": {"labels": dict(wanted)} if wanted else {},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}], **spec},
    }


def a_full_template(labels: Manifest | None = None, **spec: Any) -> Manifest:
    """A pod template as the server shows it."""
    template = a_template(labels, **spec)
    default_pod_template(template)
    return template


def a_controller(**spec: Any) -> Manifest:
    """The smallest valid Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    return an_object({"selector": {"matchLabels": dict(LABELS)}, "template": a_template(), **spec})


def a_job(**spec: Any) -> Manifest:
    """The smallest valid job."""
    return an_object({"template": a_template({}, restartPolicy="Never"), **spec})


def created(strategy: Strategy, obj: Manifest) -> Manifest:
    """An object as it is before validation of its creation."""
    new: Manifest = copy(obj)
    strategy.default(new)
    strategy.prepare_create(new)
    return new


def updated(strategy: Strategy, old: Manifest, obj: Manifest) -> Manifest:
    """An object as it is before validation of its update."""
    new: Manifest = copy(obj)
    strategy.default(new)
    strategy.prepare_update(new, old)
    return new


def creation_problems(strategy: Strategy, obj: Manifest) -> list[str]:
    """What a client would read after a create."""
    return [str(error) for error in strategy.validate(created(strategy, obj))]


def update_problems(strategy: Strategy, old: Manifest, obj: Manifest) -> list[str]:
    """What a client would read after an update of a created object."""
    stored = created(strategy, old)
    kept: Manifest = copy(stored)
    problems = [str(error) for error in strategy.validate_update(updated(strategy, stored, obj), stored)]
    assert stored == kept, "what is stored must not be changed"
    return problems


def status_problems(strategy: Strategy, old: Manifest, status: Manifest) -> list[str]:
    """What a client would read after an update of a created object's status."""
    stored = created(strategy, old)
    new: Manifest = copy(stored)
    new["status"] = status
    strategy.default(new)
    strategy.prepare_status(new, stored)
    return [str(error) for error in strategy.validate_status(new, stored)]
