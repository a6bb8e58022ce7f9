"""What is kept for templates is bounded in bytes, whatever users write into their pods."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from moorage.api.base import OwnerReference
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.cache import equivalence_classes, plugin_answers
from moorage.framework.cache.equivalence_classes import EquivalenceClasses
from moorage.framework.interface.dependencies import DependsOn
from tests.builders import make_framework, make_node, make_pod
from tests.framework.helpers import Log, framework_of, recorder

TEMPLATES = 200


def tolerating(number: int, count: int) -> Pod:
    """A pod of a template of its own."""
    tolerations = [{"key": f"key-{number}-{each}", "operator": "Exists"} for each in range(count)]
    return make_pod("p", tolerations=tolerations)


@pytest.mark.parametrize(
    ("tolerations", "nodes", "max_kept"),
    [
        pytest.param(1, 10, 128, id="small pods"),
        pytest.param(200, 10, 10, id="large pods"),
        pytest.param(1, 10_000, 7, id="many nodes"),
    ],
)
def test_equivalence_classes_are_bounded_by_the_bytes_of_pods_and_rows(
    monkeypatch: pytest.MonkeyPatch, tolerations: int, nodes: int, max_kept: int
) -> None:
    monkeypatch.setattr(equivalence_classes, "_MAX_BYTES", 1 << 20)
    monkeypatch.setattr(equivalence_classes, "_MIN_CLASSES", 2)
    classes = EquivalenceClasses()
    for number in range(TEMPLATES):
        assert classes.of(tolerating(number, tolerations), nodes) is not None
    sizes = [each.size_bytes for each in classes._known.values()]
    assert 2 <= len(sizes) <= max_kept
    assert (1 << 20) - max(sizes) < sum(sizes) <= 1 << 20
    assert classes._size_bytes == sum(sizes)
    assert set(classes._by_spec.values()) == set(classes._known.values())
    newest = tolerating(TEMPLATES - 1, tolerations)
    assert classes.of(newest, nodes) is classes.of(newest, nodes), "the most recently used ones are kept"


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param({"name": "another"}, True, id="name"),
        pytest.param({"labels": {"app": "other"}}, False, id="labels"),
        pytest.param({"namespace": "elsewhere"}, False, id="namespace"),
        pytest.param({"owner_references": (OwnerReference(uid="1", controller=True),)}, False, id="owner"),
    ],
)
def test_pods_that_share_a_spec_are_of_one_class_only_if_the_rest_is_equal(
    other: dict[str, Any], is_same: bool
) -> None:
    pod = make_pod("p", labels={"app": "web"})
    twin = replace(pod, metadata=replace(pod.metadata, **other))
    assert twin.spec is pod.spec
    classes = EquivalenceClasses()
    found = [classes.of(each, 10) for each in (pod, twin, pod, twin)]
    assert (found[0] is found[1]) == is_same
    assert found[:2] == found[2:]
    assert (
        found == [classes.of(msgspec.convert(msgspec.to_builtins(each), Pod), 10) for each in (pod, twin)] * 2
    )


def test_shared_answers_are_bounded_by_the_bytes_of_what_plugins_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plugin_answers, "_MAX_BYTES", 8 << 20)
    framework, engine = make_framework(), Engine()
    snapshot = Cache(make_node(name) for name in "ab").snapshot()
    for number in range(TEMPLATES):
        assert engine.decide(framework, tolerating(number, 100), snapshot).node is not None
    known = framework._result_caches._shared._known
    size = sum(each.size_bytes for each in known.values())
    assert 2 <= len(known) < TEMPLATES
    # Sizes are added up once for each eighth that is new.
    assert size < (8 << 20) * 9 / 8 + 2 * max(each.size_bytes for each in known.values())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("node", "returned 'node'; return a DependsOn, or None"),
        (DependsOn(reads=cast(Any, ["a"])), "returned reads that cannot be hashed: unhashable type: 'list'"),
    ],
    ids=["not a DependsOn", "reads that cannot be hashed"],
)
def test_a_wrong_declaration_fails_the_attempt_with_the_plugin_s_name(answer: Any, message: str) -> None:
    plugin = recorder("Wrong", Log(), filter_node=None)
    plugin.depends_on = lambda pod, objects: answer
    decision = Engine().decide(framework_of(plugin), make_pod("p"), Cache([make_node("a")]).snapshot())
    assert decision.node is None
    assert "Wrong" in decision.message
    assert message in decision.message
