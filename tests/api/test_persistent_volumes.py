"""The rules for volumes and claims that the scheduler and the PersistentVolume controller share."""

from __future__ import annotations

import pytest

from moorage.api.persistent_volumes import BETA_STORAGE_CLASS, class_of, matching_volumes
from moorage.api.selectors import SelectorError
from moorage.api.storage import PersistentVolume
from moorage_cluster.controllers.volume_matching import best_match
from tests.plugins.volumes.volume_objects import claim, volume

RWX = ["ReadWriteOnce", "ReadWriteMany"]

MATCHES: dict[str, tuple[list[PersistentVolume], list[str], str]] = {
    "the smallest first, then by name": (
        [volume("c", "2Gi"), volume("b"), volume("a"), volume("small", "1Mi")],
        ["a", "b", "c"],
        "a",
    ),
    "a reserved one alone": ([volume("free"), volume("kept", "5Gi", claim="c")], ["kept"], "kept"),
    "the controller looks at few access modes first": (
        [volume("shared", "1Gi", accessModes=RWX), volume("plain", "2Gi")],
        ["shared", "plain"],
        "plain",
    ),
    "access modes of a reserved one matter to the controller only": (
        [volume("kept", claim="c", accessModes=["ReadOnlyMany"])],
        ["kept"],
        "",
    ),
    "none that is released, deleted, or reserved for another": (
        [volume("a", phase="Released"), volume("b", deleted=True), volume("c", claim="other")],
        [],
        "",
    ),
}


@pytest.mark.parametrize("case", MATCHES)
def test_volumes_for_a_claim(case: str) -> None:
    volumes, matching, of_controller = MATCHES[case]
    asking = claim("c", "1Gi")
    assert [each.name for each in matching_volumes(asking, volumes)] == matching
    found = best_match(asking, volumes)
    assert (found.name if found else "") == of_controller


def test_a_malformed_selector_names_its_claim() -> None:
    asking = claim("c", selector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    with pytest.raises(SelectorError, match="error creating internal label selector for claim: default/c: "):
        matching_volumes(asking, [])


@pytest.mark.parametrize(
    ("annotation", "field", "name"),
    [(None, None, None), (None, "", ""), (None, "f", "f"), ("a", "f", "a"), ("", "f", "")],
)
def test_the_annotated_class_comes_before_that_of_the_field(
    annotation: str | None, field: str | None, name: str | None
) -> None:
    annotations = {} if annotation is None else {BETA_STORAGE_CLASS: annotation}
    spec = {} if field is None else {"storageClassName": field}
    assert class_of({"metadata": {"annotations": annotations}, "spec": spec}) == name
