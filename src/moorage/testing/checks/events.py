"""Event registrations of plugins: well-formed events, and queueing hints that accept any object."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import KINDS, all_types
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.declared_kinds import declared_kind_of
from moorage.framework.interface.events import Action, Interest, Resource, interests_of
from moorage.framework.interface.status import PluginError
from moorage.framework.loading.registry import RegistryError
from moorage.scheduler.watched_kinds import CustomObject
from moorage.testing.trial import Check, Trial

_OF_NODES = (
    Action.UPDATE_NODE_ALLOCATABLE
    | Action.UPDATE_NODE_LABEL
    | Action.UPDATE_NODE_TAINT
    | Action.UPDATE_NODE_CONDITION
    | Action.UPDATE_NODE_ANNOTATION
    | Action.UPDATE_NODE_DECLARED_FEATURE
)
_OF_PODS = (
    Action.UPDATE_POD_LABEL
    | Action.UPDATE_POD_SCALE_DOWN
    | Action.UPDATE_POD_TOLERATION
    | Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    | Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
)
_PODS = (Resource.POD, Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD, Resource.TARGET_POD)


def _interests(trial: Trial) -> tuple[Interest, ...]:
    answer: Any = trial.stage.call("events")
    return tuple(each for each in answer if isinstance(each, Interest)) if _is_iterable(answer) else ()


def _is_iterable(answer: Any) -> bool:
    return hasattr(answer, "__iter__")


def _malformed(trial: Trial) -> Iterator[str]:
    stage = trial.stage
    try:
        interests_of({stage.recipe.name: stage.plugin})
        interests = _interests(trial)
    except (RegistryError, PluginError) as error:
        yield str(error)
        return
    except Exception as error:
        yield f"events raised {type(error).__name__}: {error}"
        return
    for interest in interests:
        yield from _wrong_interest(interest)
    if len(interests) != len(_interests(trial)):
        yield "events gives another number of interests when it is asked again"


def _wrong_interest(interest: Interest) -> Iterator[str]:
    resource, action = interest.event.resource, interest.event.action
    known = {str(each) for each in Resource}
    if resource not in known and resource.count(".") < 2:
        yield (
            f"events names {resource!r}; name a Resource, or a kind of your own as plural.version.group, "
            "such as foos.v1.example.com"
        )
    if not isinstance(action, Action) or not action:
        yield f"events names no action for {resource}; say what has to happen, such as Action.ADD"
        return
    # The action for all updates is valid for every kind; a single update must be one of the kind's.
    if action & Action.UPDATE != Action.UPDATE:
        if action & _OF_NODES and resource not in (Resource.NODE, Resource.ANY):
            yield f"events names {(action & _OF_NODES)!r} of {resource}, which only happens to nodes"
        if action & _OF_PODS and resource not in (*_PODS, Resource.ANY):
            yield f"events names {(action & _OF_PODS)!r} of {resource}, which only happens to pods"
    if interest.hint is not None and (problem := _wrong_hint(interest.hint)):
        yield f"the hint for {resource} {problem}"


def _wrong_hint(hint: Any) -> str:
    if not callable(hint):
        return f"is {hint!r}; it has to be a function of the pod, the old and the new object"
    try:
        inspect.signature(hint).bind(None, None, None)
    except TypeError:
        return "has to take three arguments: the pod, the old and the new object"
    except ValueError:
        pass  # Some callables have no signature.
    return ""


def _failing_hints(trial: Trial) -> Iterator[str]:
    for interest in _interests(trial):
        hint, resource = interest.hint, interest.event.resource
        if hint is None or _wrong_hint(hint):
            continue
        for obj in _objects_of(resource, trial):
            for old, new in _changes_of(interest.event.action, obj):
                happened = "added" if old is None else "deleted" if new is None else "updated"
                try:
                    returned: Any = hint(trial.pod, old, new)
                except Exception as error:
                    yield f"the hint for {resource} ({happened}) raised {type(error).__name__}: {error}"
                    break
                if not isinstance(returned, bool | np.bool_):
                    yield f"the hint for {resource} ({happened}) answered {returned!r}, not yes or no"


def _changes_of(action: Action, obj: Object) -> Iterator[tuple[Object | None, Object | None]]:
    if Action.ADD in action:
        yield None, obj
    if action & Action.UPDATE:
        labels = {"moorage.io/changed": "yes"}
        yield obj, replace(obj, metadata=replace(obj.metadata, labels=labels, annotations=labels))
        yield obj, obj
    if Action.DELETE in action:
        yield obj, None


def _objects_of(resource: str, trial: Trial) -> Iterator[Object]:
    """Objects of a kind: the cluster's, one with nothing but a name, one with a deletion timestamp."""
    for kind in _kinds(resource):
        here = [each for each in trial.cluster.objects if type(each) is kind]
        if kind is Pod and resource != Resource.ASSIGNED_POD:
            here += [each for each in trial.cluster.pods if each is not trial.pod] + [trial.pod]
        yield from here[:4]
        if kind is Pod:
            yield here[-1] if here else trial.pod
        empty = kind()
        yield replace(empty, metadata=replace(empty.metadata, name="unknown"))
        terminating = replace(
            empty.metadata, name="going", deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)
        )
        yield replace(empty, metadata=terminating)


def _kinds(resource: str) -> list[type[Object]]:
    if resource in _PODS:
        return [Pod]
    if resource == Resource.ANY:
        return [*all_types()]
    if resource == Resource.NODE:
        return [Node]
    kind = KINDS.get(resource.rpartition("/")[2]) or _declared(resource)
    return [CustomObject if kind is None else kind]


def _declared(resource: str) -> type[Object] | None:
    """The type of a kind that a plugin has declared, by the resource of its events."""
    kinds = ((each, declared_kind_of(each)) for each in all_types())
    return next((each for each, kind in kinds if kind is not None and kind.resource == resource), None)


CHECKS = (
    Check(
        "events-are-well-formed",
        "events names kinds of objects, what happens to them, and hints that take three arguments.",
        _malformed,
        ("events",),
        once=True,
    ),
    Check(
        "hints-answer",
        "Hints say yes or no about any object of the kind, and do not raise.",
        _failing_hints,
        ("events",),
    ),
)
