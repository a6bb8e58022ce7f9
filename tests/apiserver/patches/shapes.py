"""Shapes built by hand: a kind with one of everything that patches tell apart."""

from __future__ import annotations

from typing import Any

from moorage.api.manifests import Manifest
from moorage.apimachinery.schema.shape import ANYTHING, SCALAR, Form, Shape


def struct(**fields: Shape) -> Shape:
    return Shape(Form.OBJECT, fields=fields)


def atomic_struct(**fields: Shape) -> Shape:
    return Shape(Form.OBJECT, fields=fields, atomic=True)


def mapping(items: Shape = SCALAR, **more: Any) -> Shape:
    return Shape(Form.MAP, items=items, **more)


def keyed(items: Shape, *keys: str, **more: Any) -> Shape:
    return Shape(Form.LIST, items=items, keys=keys, merge_key=keys[0], merges=True, **more)


def scalars(**more: Any) -> Shape:
    return Shape(Form.LIST, items=SCALAR, **more)


PORTS = keyed(
    struct(name=SCALAR, containerPort=SCALAR, protocol=SCALAR),
    "containerPort",
    "protocol",
    key_defaults={"protocol": "TCP"},
)
CONTAINERS = keyed(
    struct(
        name=SCALAR,
        image=SCALAR,
        args=scalars(atomic=True),
        env=keyed(struct(name=SCALAR, value=SCALAR), "name"),
        ports=PORTS,
        resources=struct(limits=mapping()),
    ),
    "name",
)
METADATA = struct(
    name=SCALAR,
    namespace=SCALAR,
    uid=SCALAR,
    resourceVersion=SCALAR,
    generation=SCALAR,
    labels=mapping(),
    annotations=mapping(),
    finalizers=scalars(is_set=True, merges=True),
    managedFields=Shape(Form.LIST, items=ANYTHING, atomic=True),
)
THING = struct(
    apiVersion=SCALAR,
    kind=SCALAR,
    metadata=METADATA,
    spec=struct(
        replicas=SCALAR,
        paused=SCALAR,
        selector=atomic_struct(matchLabels=mapping()),
        strategy=Shape(Form.OBJECT, fields={"type": SCALAR, "rolling": struct(surge=SCALAR)}),
        containers=CONTAINERS,
        tolerations=Shape(Form.LIST, items=struct(key=SCALAR, effect=SCALAR), atomic=True),
        devices=mapping(struct(model=SCALAR)),
        nameless=Shape(Form.LIST, items=struct(a=SCALAR), merges=True),
        anything=ANYTHING,
    ),
    status=struct(phase=SCALAR, ready=SCALAR),
)
API_VERSION = "apps/v1"


def thing(labels: Manifest | None = None, status: Manifest | None = None, **spec: Any) -> Manifest:
    obj: Manifest = {
        "apiVersion": API_VERSION,
        "kind": "Thing",
        "metadata": {"name": "x", "namespace": "ns"},
    }
    if labels is not None:
        obj["metadata"]["labels"] = labels
    if spec:
        obj["spec"] = spec
    if status is not None:
        obj["status"] = status
    return obj
