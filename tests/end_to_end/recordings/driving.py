"""The steps of a recording, one after another, through the API; a scheduler in another process decides.

After each pod the cluster is what it was in the recording: a pod that went to another of the best nodes is
replaced by one where the recording has it, a pod that found no node is deleted. Nobody plays the kubelet: the
recorded pods have no grace period, so that victims are gone as soon as they are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moorage.api.labels import HOSTNAME
from moorage.api.manifests import Manifest, copy
from moorage.client.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM
from moorage.sim.recording import Expectation
from tests.end_to_end.recordings.cluster import Found, RecordedCluster, key_of
from tests.end_to_end.recordings.loading import ChangeStep, PodStep, Recording
from tests.end_to_end.recordings.probing import probe_claims, probe_nodes
from tests.end_to_end.recordings.reading import holds_devices, node_of, refusal_of


class Drive:
    """One recording in one cluster; whatever differs from what was recorded is an AssertionError."""

    def __init__(self, recording: Recording, cluster: RecordedCluster) -> None:
        self._recording = recording
        self._cluster = cluster

    async def run(self) -> None:
        """Take all steps."""
        for step in self._recording.steps:
            if isinstance(step, ChangeStep):
                await self._change(step)
            else:
                await self._schedule(step)

    # -- changes

    async def _change(self, step: ChangeStep) -> None:
        for obj in step.create:
            await self._cluster.store(obj)
        for obj in step.replace:
            await self._cluster.replace(obj)
        for obj in step.delete:
            assert obj["kind"] == "Pod", "only pods are known to be deleted"
            await self._cluster.delete_pod(key_of(obj))
        nodes = [key_of(obj) for obj in (*step.create, *step.replace) if obj["kind"] == "Node"]
        if nodes:
            await probe_nodes(self._cluster, nodes[-1])

    # -- pods

    async def _schedule(self, step: PodStep) -> None:
        expect, before = step.expect, set(self._cluster.pods)
        pod = await self._cluster.store(step.pod)
        first = await self._first(pod, f"{_name(pod)} is decided about", _is_decided)
        if expect.seen_waiting:
            self._check("message", pod, expect.message, refusal_of(first) or None)
        if expect.node is None:
            self._check("node", pod, None, first["spec"].get("nodeName"))
        else:
            bound = await self._first(pod, f"{_name(pod)} is bound", node_of)
            self._check_node(pod, expect, node_of(bound))
        if self._recording.preempts:
            self._check_preemption(pod, expect, before)
        if expect.node is None:
            await self._cluster.delete_pod(key_of(pod))
        elif node_of(bound) != expect.node:
            await self._replace(step, pod)

    async def _first(self, pod: Manifest, what: str, is_so: Callable[[Manifest], object]) -> Manifest:
        """The first state of a pod of which something is true."""
        states = self._cluster.states(pod)
        await self._cluster.until(what, lambda: any(map(is_so, states)))
        return next(filter(is_so, states))

    def _check_node(self, pod: Manifest, expect: Expectation, node: str) -> None:
        if expect.scores is None:
            self._check("node", pod, expect.node, node)
            return
        totals = {each: sum(scores.values()) for each, scores in expect.scores.items()}
        best = {each for each, total in totals.items() if total == max(totals.values())}
        assert node in best, f"{self._recording.name} {_name(pod)}: bound to {node}, best are {best}"

    def _check_preemption(self, pod: Manifest, expect: Expectation, before: set[Found]) -> None:
        gone = sorted(f"{namespace}/{name}" for namespace, name in before - self._cluster.pods.keys())
        self._check("victims", pod, sorted(expect.victims or ()), gone)
        named = [state["status"].get("nominatedNodeName") for state in self._cluster.states(pod)]
        nominated = next(filter(None, named), None)
        if expect.seen_waiting or nominated:
            self._check("nominated", pod, expect.nomination, nominated)

    def _check(self, what: str, pod: Manifest, recorded: object, ours: object) -> None:
        assert ours == recorded, (
            f"{self._recording.name} {_name(pod)}: {what}:\n  recorded {recorded}\n  ours     {ours}"
        )

    # -- putting a pod where the recording has it

    async def _replace(self, step: PodStep, pod: Manifest) -> None:
        assert step.expect.node is not None
        await self._cluster.delete_pod(key_of(pod))
        placed = copy(step.pod)
        if self._recording.kinds & {"PersistentVolumeClaim", "DeviceClass"}:
            # With the node goes what the scheduler arranges for it, so that it has to choose the node.
            await self._renew_claims(step.pod)
            placed["spec"].setdefault("nodeSelector", {})[HOSTNAME] = step.expect.node
        else:
            placed["spec"]["nodeName"] = step.expect.node
        stored = await self._cluster.create(placed)
        bound = await self._first(stored, f"{_name(pod)} is bound where it was", node_of)
        self._check("node", pod, step.expect.node, node_of(bound))
        if "DeviceClass" in self._recording.kinds:
            await self._until_released(pod)

    async def _until_released(self, pod: Manifest) -> None:
        """Returns once the devices of a pod that is gone are free, and the scheduler knows it."""
        uid = pod["metadata"]["uid"]

        def is_free() -> bool:
            return not any(holds_devices(claim, uid) for claim in self._cluster.claims.values())

        await self._cluster.until(f"the devices of {_name(pod)} are free", is_free, RESOURCE_CLAIM)
        await probe_claims(self._cluster)

    async def _renew_claims(self, pod: Manifest) -> None:
        """Make a pod's claims for storage, and the volumes that they took, what they were."""
        names = {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["spec"].get("volumes") or ()
            if "persistentVolumeClaim" in volume
        }
        for recorded in self._recorded("PersistentVolumeClaim", names):
            claim = await self._cluster.client.get(PERSISTENT_VOLUME_CLAIM, *key_of(recorded))
            taken = claim["spec"].get("volumeName")
            if taken == recorded["spec"].get("volumeName"):
                continue
            await self._cluster.delete(PERSISTENT_VOLUME_CLAIM, key_of(recorded))
            await self._cluster.delete(PERSISTENT_VOLUME, ("", taken))
            for volume in self._recorded("PersistentVolume", {taken}):
                await self._cluster.store(volume)
            await self._cluster.store(recorded)

    def _recorded(self, kind: str, names: set[str]) -> Iterable[Manifest]:
        return [
            obj for obj in self._recording.objects if obj["kind"] == kind and obj["metadata"]["name"] in names
        ]


def _name(pod: Manifest) -> str:
    return "/".join(key_of(pod))


def _is_decided(pod: Manifest) -> bool:
    return bool(node_of(pod) or refusal_of(pod))
