"""Objects of custom kinds whose definitions change, or have several versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import Cluster

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = f"{DEFINITIONS}/boats.example.com"
BOATS = "/apis/example.com/v1/boats"
NEWER_BOATS = "/apis/example.com/v2/boats"
TEXT = {"type": "string"}


def version(name: str, *, selectable: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    fields = {"selectableFields": [{"jsonPath": path} for path in selectable]} if selectable else {}
    return {"name": name, "served": True, "storage": name == "v1", "schema": schema, **fields}


def define(cluster: Cluster, *versions: dict[str, Any]) -> None:
    names = {"plural": "boats", "kind": "Boat"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": list(versions)}
    cluster.create(DEFINITIONS, {"metadata": {"name": "boats.example.com"}, "spec": spec})


def redefine(cluster: Cluster, *versions: dict[str, Any]) -> None:
    assert cluster.patch(DEFINITION, "merge", {"spec": {"versions": list(versions)}}).code == 200


def boat(name: str, api_version: str = "example.com/v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": "Boat", "metadata": {"name": name}, **fields}


def fields_of(obj: Any) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}


def test_objects_stored_before_a_default_existed_have_it_when_they_are_read(cluster: Cluster) -> None:
    define(cluster, version("v1", sail=TEXT, mast=TEXT))
    made = cluster.create(BOATS, boat("ark", mast="oak"))
    watcher = cluster.watch(BOATS)
    watcher.events()
    redefine(cluster, version("v1", sail=TEXT | {"default": "white"}, mast=TEXT))
    read = cluster.get(f"{BOATS}/ark").json
    assert fields_of(read) == {"sail": "white", "mast": "oak"}
    assert read["metadata"] == made["metadata"]
    assert cluster.get(BOATS)["items"] == [read]
    assert cluster.watch(BOATS).events()[0]["object"] == read
    redefine(cluster, version("v1", sail=TEXT))
    assert fields_of(cluster.get(f"{BOATS}/ark").json) == {}
    redefine(cluster, version("v1", sail=TEXT | {"default": "red"}))
    cluster.delete(f"{BOATS}/ark")
    assert fields_of(watcher.events()[-1]["object"]) == {"sail": "red"}


def test_a_default_stays_once_the_object_is_written(cluster: Cluster) -> None:
    define(cluster, version("v1", sail=TEXT))
    cluster.create(BOATS, boat("ark"))
    redefine(cluster, version("v1", sail=TEXT | {"default": "white"}))
    read = cluster.get(f"{BOATS}/ark").json
    written = cluster.put(f"{BOATS}/ark", read).json
    assert written["metadata"]["resourceVersion"] != read["metadata"]["resourceVersion"]
    assert written["metadata"]["generation"] == 1
    assert cluster.put(f"{BOATS}/ark", written).json == written
    redefine(cluster, version("v1", sail=TEXT))
    assert fields_of(cluster.get(f"{BOATS}/ark").json) == {"sail": "white"}


def test_objects_are_kept_in_the_storage_version(cluster: Cluster) -> None:
    define(cluster, version("v1", sail=TEXT), version("v2", sail=TEXT, flag=TEXT))
    made = cluster.create(NEWER_BOATS, boat("ark", "example.com/v2", sail="red", flag="blue"))
    assert (made["apiVersion"], fields_of(made)) == ("example.com/v2", {"sail": "red"})
    read = cluster.get(f"{BOATS}/ark").json
    assert (read["apiVersion"], fields_of(read)) == ("example.com/v1", {"sail": "red"})
    older = version("v1", sail=TEXT, mast=TEXT | {"default": "oak"})
    redefine(cluster, older, version("v2", sail=TEXT, mast=TEXT, flag=TEXT | {"default": "blue"}))
    assert fields_of(cluster.get(f"{NEWER_BOATS}/ark").json) == {"sail": "red", "mast": "oak"}


def test_defaults_are_there_after_a_restart(tmp_path: Path) -> None:
    first = Cluster(Settings(data_dir=tmp_path))
    define(first, version("v1", sail=TEXT))
    first.create(BOATS, boat("ark"))
    redefine(first, version("v1", selectable=(".sail",), sail=TEXT | {"default": "white"}))
    first.close()
    second = Cluster(Settings(data_dir=tmp_path))
    assert [fields_of(each) for each in second.get(BOATS, fieldSelector="sail=white")["items"]] == [
        {"sail": "white"}
    ]
    second.close()


def test_selectors_see_defaults_and_know_the_fields_of_their_version(cluster: Cluster) -> None:
    newer = version("v2", selectable=(".flag",), flag=TEXT)
    define(cluster, version("v1", selectable=(".sail",), sail=TEXT), newer)
    cluster.create(BOATS, boat("ark"))
    redefine(cluster, version("v1", selectable=(".sail",), sail=TEXT | {"default": "white"}), newer)
    cluster.create(BOATS, boat("raft", sail="red"))

    def selected(path: str, selector: str) -> list[str]:
        return [each["metadata"]["name"] for each in cluster.get(path, fieldSelector=selector)["items"]]

    assert selected(BOATS, "sail=white") == ["ark"]
    assert selected(BOATS, "sail!=white,metadata.name=raft") == ["raft"]
    assert selected(NEWER_BOATS, "flag=") == ["ark", "raft"]


@pytest.mark.parametrize(
    ("path", "field"), [(BOATS, "flag"), (NEWER_BOATS, "sail"), (BOATS, "metadata.namespace")]
)
def test_fields_that_a_version_does_not_name(cluster: Cluster, path: str, field: str) -> None:
    define(
        cluster,
        version("v1", selectable=(".sail",), sail=TEXT),
        version("v2", selectable=(".flag",), flag=TEXT),
    )
    answer = cluster.get(path, fieldSelector=f"{field}=x")
    assert (answer.code, answer.message) == (400, f"field label not supported: {field}")
