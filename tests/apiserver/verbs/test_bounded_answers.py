"""However much is wrong with a request, the answer stays small, and so does the work of writing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.admission.pods.validation import validate_pod_spec
from moorage.apimachinery import errors
from moorage.apimachinery.fields import FieldError, Problem, required
from moorage.apimachinery.schema.strictness import duplicate_fields
from moorage_cluster.apiserver.auth.rules import Rule, TooManyPartsError, missing
from tests.apiserver.client import Cluster, configmap, pod

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
MAX_BYTES = 110_000


def _with_meta(**meta: Any) -> dict[str, Any]:
    obj = configmap("a")
    return {**obj, "metadata": {**obj["metadata"], **meta}}


def _controlling_owners() -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p" * 40, "uid": "u", "controller": True}
    return _with_meta(ownerReferences=[owner] * 2000)


ATTACKS: dict[str, Callable[[], dict[str, Any]]] = {
    "many bad labels": lambda: _with_meta(labels={f"?{index}": "?" for index in range(5000)}),
    "a long bad label": lambda: _with_meta(labels={"a": "\0" * 500_000}),
    "a long key": lambda: {**configmap("a"), "data": {"?" * 300_000: ""}},
    "a long name": lambda: _with_meta(name="?" * 300_000),
    "many controlling owners": _controlling_owners,
    "many finalizers": lambda: _with_meta(finalizers=["?"] * 10_000),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_answer_to_many_or_long_errors_is_small(cluster: Cluster, attack: str) -> None:
    answer = cluster.post(MAPS, ATTACKS[attack]())
    assert answer.code == 422, answer
    assert len(answer.raw) < MAX_BYTES
    assert answer["details"]["causes"], "the first is said in any case"


def test_number_of_errors_left_out_is_reported() -> None:
    error = errors.invalid("", "Pod", "a", [required(f"x[{index}]") for index in range(150)])
    assert len(error.details["causes"]) == 100
    assert error.message.endswith("x[99]: Required value, too many errors: at least 50 more are not shown]")


def test_errors_that_are_not_shown_are_not_written() -> None:
    written = 0

    class CountingError(FieldError):
        @property
        def body(self) -> str:
            nonlocal written
            written += 1
            return super().body

    errors.invalid(
        "", "Pod", "a", [CountingError(Problem.INVALID, f"x[{index}]", "v", "d") for index in range(5000)]
    )
    assert written <= 100


def test_containers_after_a_thousand_errors_are_not_looked_at() -> None:
    looked_at = 0

    class Container(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            nonlocal looked_at
            looked_at += key == "image"
            return super().get(key, default)

    for field in ("containers", "initContainers", "ephemeralContainers"):
        looked_at = 0
        bad = [Container(name="?", image="") for _ in range(20_000)]
        assert validate_pod_spec({"containers": [{"name": "c"}], field: bad}, "spec", {})
        assert looked_at < 5000


def test_patch_that_is_refused_is_not_sent_back_whole(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    patch = {"spec": {"containers": [{"name": "main", "x" * 500_000: 1}]}}
    answer = cluster.patch(f"{PODS}/a", "strategic", patch, fieldValidation="Strict")
    assert answer.code >= 400
    assert len(answer.raw) < MAX_BYTES


def test_long_key_is_not_repeated_in_every_path_below_it() -> None:
    body = b'{"%b":{%b}}' % (b"k" * 100_000, b",".join([b'"a":1', *(b'"a":1' for _ in range(100))]))
    deep = b'{"%b":[%b]}' % (b"k" * 100_000, b",".join(b'{"a":1,"a":2}' for _ in range(100)))
    assert all(len(path) < 1000 for path in [*duplicate_fields(body), *duplicate_fields(deep)])


def test_role_whose_lists_multiply_beyond_all_bounds_is_not_multiplied_out() -> None:
    words = tuple(f"w{index}" for index in range(2000))
    everything = Rule(("*",), ("*",), ("*",))
    with pytest.raises(TooManyPartsError):
        missing([Rule(("get",), ("",), ("pods",))], [Rule(words, words, words)])
    assert missing([everything], [Rule(words, words, words)]) == [], "what one rule covers needs no parts"
