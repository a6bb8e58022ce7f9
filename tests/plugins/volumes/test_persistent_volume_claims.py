"""What the volume plugins share of a pod's claims."""

from __future__ import annotations

from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.plugins.volumes.persistent_volume_claims import find_claims
from tests.builders import make_framework, make_node
from tests.plugins.volumes.volume_objects import (
    EPHEMERAL,
    claim,
    csi,
    csi_node,
    pod_with,
    pod_with_sources,
    volume,
)


def test_all_plugins_together_look_up_each_object_once(lookups: list[str]) -> None:
    plugins = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
    objects = [csi_node("n", {"csi.example.com": 9}), volume("v", csi=csi("h")), claim("c", volume="v")]
    cache, framework = Cache([make_node("n"), *objects]), make_framework(*plugins)
    snapshot = cache.snapshot()
    lookups.clear()
    assert Engine(seed=0).decide(framework, pod_with("c"), snapshot).node == "n"
    assert sorted(lookups) == ["c", "csi.example.com", "v"]


def test_what_exists_of_claims_and_their_volumes() -> None:
    held, unbound, lost = claim("held", volume="v"), claim("unbound"), claim("lost", volume="gone")
    own, bound = claim("pod-v0", volume="v"), volume("v")
    objects = Cache([held, unbound, lost, own, bound]).snapshot().objects
    found = find_claims(CycleState(), pod_with("held", "unbound", "lost", "missing"), objects)
    assert found == [
        ("held", False, held, bound),
        ("unbound", False, unbound, None),
        ("lost", False, lost, None),
        ("missing", False, None, None),
    ]
    assert find_claims(CycleState(), pod_with_sources(EPHEMERAL), objects) == [("pod-v0", True, own, bound)]
