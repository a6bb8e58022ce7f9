"""Objects in the types of the scheduler's rules."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.api.storage import PersistentVolume
from moorage.client.informer import EventType, Index, Key, Listener
from moorage_cluster.controllers.decoded_objects import DecodedObjects
from tests.controllers.infrastructure.objects import volume


class Source:
    """An informer's objects and listeners, changed by hand."""

    def __init__(self, *objects: Manifest) -> None:
        self.objects: dict[Key, Manifest] = {("", each["metadata"]["name"]): each for each in objects}
        self.listeners: list[Listener[Manifest]] = []

    def tell(self, type: EventType, obj: Manifest) -> None:
        for listener in self.listeners:
            listener(type, obj, None)


def test_objects_follow_the_informer_and_leave_out_what_cannot_be_decoded() -> None:
    source = Source(volume("old"))
    decoded = DecodedObjects(source, PersistentVolume)
    by_size = Index(decoded, lambda each: [f"{each.spec.capacity['storage'].value >> 30}Gi"])
    source.tell("ADDED", volume("new", "2Gi"))
    source.tell("MODIFIED", volume("new", "3Gi"))
    source.tell("ADDED", volume("bad", "much"))
    assert {
        key[1]: f"{each.spec.capacity['storage'].value >> 30}Gi" for key, each in decoded.objects.items()
    } == {
        "old": "1Gi",
        "new": "3Gi",
    }
    assert [len(by_size.get(size)) for size in ("1Gi", "2Gi", "3Gi")] == [1, 0, 1]
    source.tell("MODIFIED", volume("new", "-1"))
    source.tell("DELETED", volume("old"))
    assert decoded.objects == {}
    assert by_size.get("1Gi") == by_size.get("3Gi") == []
