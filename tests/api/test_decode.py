from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.decode import KINDS, InputError, decode_object
from moorage.api.files import completed, load_json, load_manifests
from moorage.api.pod import Pod


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        (pod(priority="high"), "f.yaml: Pod web: spec.priority: expected `int | null`, got `str`"),
        (
            pod(containers=[{"name": "c", "resources": {"requests": {"memory": "1Gi", "cpu": "lots"}}}]),
            "f.yaml: Pod web: spec.containers[0].resources.requests.cpu: "
            "'lots' is not a quantity (like 100m, 1.5Gi or 2e3)",
        ),
        (
            pod(nodeSelector={"disk": "ssd", "gen": 5}),
            "f.yaml: Pod web: spec.nodeSelector.gen: expected `str`, got `int`",
        ),
        (pod(containers={"name": "c"}), "f.yaml: Pod web: spec.containers: expected `array`, got `object`"),
        ([], "f.yaml: expected an object with a kind, got a list"),
        ("text", "f.yaml: expected an object with a kind, got text"),
        ({"metadata": {}}, "f.yaml: kind: missing"),
    ],
)
def test_bad_manifests_give_one_line_with_file_field_and_reason(manifest: Any, line: str) -> None:
    with pytest.raises(InputError) as error:
        decode_object(manifest, "f.yaml")
    assert str(error.value) == line


def test_unknown_fields_and_kinds_are_passed_over() -> None:
    assert decode_object({"kind": "ConfigMap", "data": {}}) is None
    decoded = decode_object(pod(nonsense={"deep": [1]}, dnsPolicy="None"))
    assert isinstance(decoded, Pod)


def test_a_kind_of_another_group_is_another_kind() -> None:
    assert (
        decode_object({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": {"selector": 5}})
        is None
    )
    assert decode_object({"apiVersion": "v1", "kind": "Service"}) is not None
    assert decode_object({"apiVersion": "apps/v1", "kind": "ReplicaSet"}) is not None


def test_negative_amounts_are_refused() -> None:
    with pytest.raises(InputError, match=r"requests\.cpu: '-1' is negative"):
        decode_object(pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "-1"}}}]))


def load_objects(file: Path) -> list[Object]:
    decoded = [
        decode_object(completed(manifest, number, where), where)
        for number, (manifest, where) in enumerate(load_manifests(file))
    ]
    return [item for item in decoded if item is not None]


def test_text_that_is_no_unicode(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text('{"kind": "Pod", "metadata": {"name": "\\ud800"}}')
    with pytest.raises(InputError, match="not valid Unicode"):
        load_objects(file)


def test_null_is_absent() -> None:
    decoded = decode_object(pod(containers=None, nodeSelector=None, affinity=None))
    assert decoded == decode_object(pod())


@pytest.mark.parametrize("amount", [2, 0.5, "2", "500m"])
def test_quantities_may_be_numbers(amount: object) -> None:
    decoded = decode_object(pod(containers=[{"name": "c", "resources": {"requests": {"cpu": amount}}}]))
    assert isinstance(decoded, Pod)
    assert decoded.spec.containers[0].resources.requests["cpu"].milli_value in (2000, 500)


def test_every_kind_decodes_from_its_name_alone() -> None:
    for kind in KINDS:
        assert decode_object({"kind": kind, "metadata": {"name": "x"}}) is not None


def test_lists_and_several_documents_are_unfolded(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        "kind: List\nitems:\n- {kind: Node, metadata: {name: a, creationTimestamp: 2026-01-01T00:00:00Z}}\n"
        "---\n---\nkind: Pod\nmetadata: {name: p}\n---\nkind: Secret\n"
    )
    assert [item.name for item in load_objects(file)] == ["a", "p"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: [1", "line 2: not YAML"), ("kind: Pod\nspec: {x: {", "not YAML"), ("\x00", "not YAML")],
)
def test_text_that_is_no_yaml_says_where(tmp_path: Path, text: str, line: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=line) as error:
        load_objects(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("kind: List\nitems: 5\n", "List: items: expected a list"),
        ("kind: List\nitems: [{metadata: {name: x}}]\n", "items[0]: kind: missing"),
        ("kind: Pod\n", "Pod: metadata.name: missing"),
    ],
)
def test_manifests_that_lack_something(tmp_path: Path, text: str, line: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        load_objects(file)
    assert str(error.value) == f"{file}: {line}"


def test_lists_of_the_api_server_and_namespaces(tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    file.write_text('{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]}')
    (node,) = load_objects(file)
    assert (type(node).__name__, node.key) == ("Node", "a")
    file.write_text('{"kind": "Pod", "metadata": {"name": "a"}}')
    assert load_objects(file)[0].key == "default/a"


def test_a_manifest_that_contains_itself(tmp_path: Path) -> None:
    file = tmp_path / "loop.yaml"
    file.write_text("kind: Pod\nmetadata: {name: p}\nspec: &a {containers: [*a]}\n")
    with pytest.raises(InputError, match="contains itself"):
        load_objects(file)


def test_compressed_files_are_unpacked_and_broken_ones_named(tmp_path: Path) -> None:
    file = tmp_path / "all.json.gz"
    file.write_bytes(gzip.compress(b'{"kind": "Pod"}'))
    assert load_json(file) == {"kind": "Pod"}
    file.write_bytes(gzip.compress(b'{"kind": "Pod"}')[:-9])
    with pytest.raises(InputError, match="a broken gzip file"):
        load_json(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_objects(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="Is a directory"):
        load_objects(tmp_path)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8 text"):
        load_json(binary)
    broken = tmp_path / "broken.json"
    broken.write_text("{\n  nope\n}")
    with pytest.raises(InputError, match="line 2: not JSON"):
        load_json(broken)
