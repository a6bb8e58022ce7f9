"""One node's kubelet: admits the pods that are bound to it, runs them, and reports their statuses.

Everything is done in response to an event or a timer, without waiting; writes go to the outbox. A
disconnected kubelet keeps its pods running but neither receives nor writes anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from moorage.api.decode import InputError, convert
from moorage.api.manifests import Manifest, annotations_of
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.kinds import POD
from moorage.clock import Timer
from moorage_cluster.nodes.addresses import PodAddresses
from moorage_cluster.nodes.admission import (
    AdmissionRejection,
    NodeAllocations,
    pod_resources,
    refusal,
    shortage,
)
from moorage_cluster.nodes.container_events import ContainerEvents
from moorage_cluster.nodes.containers import ContainerRun, Role, Running
from moorage_cluster.nodes.context import NodeContext
from moorage_cluster.nodes.images import Images
from moorage_cluster.nodes.outbox import Write
from moorage_cluster.nodes.podrun import FINISHED, PodOutcome, PodRun
from moorage_cluster.nodes.podstatus import READY, pod_status, ready_status
from moorage_cluster.nodes.pressure import Pressure
from moorage_cluster.nodes.restore import restore, was_running
from moorage_cluster.nodes.simulated_program import Program, program_of
from moorage_cluster.nodes.simulated_workload import SimulatedWorkload
from moorage_cluster.nodes.workload import Host, Sandbox, Workload

_REJECTED = "Pod was rejected: "


class Kubelet:
    """The kubelet of a node that has an address and a network for its pods."""

    def __init__(self, context: NodeContext, node: Manifest, host: str, network: str) -> None:
        self.context = context
        self.node = node
        self.host = host
        self.network = network
        self.pods: dict[str, PodRun] = {}
        self.room = NodeAllocations()
        self.images = Images((node.get("status") or {}).get("images") or ())
        self.pressure = Pressure(context.thresholds, context.settings.pressure_transition_seconds)
        self.has_changes = True
        """Whether something has changed since the node was last checked for pressure."""
        self.is_cut_off = False
        self._addresses = PodAddresses(network)
        self._timers: dict[str, Timer] = {}
        self._unwritten: set[str] = set()
        self._held: dict[Hashable, Write] = {}
        self._announcer = ContainerEvents()
        self._decoded: tuple[Manifest, Node] | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        name: str = self.node["metadata"]["name"]
        return name

    @property
    def decoded_node(self) -> Node:
        """The node, as scheduling reads it."""
        if self._decoded is None or self._decoded[0] is not self.node:
            self._decoded = (self.node, convert(self.node, Node))
        return self._decoded[1]

    # -- disconnection

    def cut_off(self) -> None:
        """Neither receive nor write anything from now on."""
        self.is_cut_off = True

    def reconnect(self, pods: Iterable[Manifest]) -> None:
        """Receive and write again: these pods are on the node."""
        self.is_cut_off = False
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid in [uid for uid in self.pods if uid not in there]:
            self.forget(uid)
        held, self._held = self._held, {}
        for key, write in held.items():
            self.context.outbox.put(key, write)
        for pod in there.values():
            self.sync_pod(pod)

    def send(self, key: Hashable, write: Write) -> None:
        """Enqueue a write, now or once the node is connected again."""
        if self.is_cut_off:
            self._held[key] = write
        else:
            self.context.outbox.put(key, write)

    def record_event(self, about: Manifest, type: str, reason: str, message: str) -> None:
        """Record an event, unless the node is disconnected."""
        if not self.is_cut_off:
            self.context.record_event(about, type, reason, message)

    def close(self) -> None:
        """Stop everything."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for run in self.pods.values():
            if run.sandbox is not None:
                run.sandbox.close()

    # -- watch events

    def sync_pod(self, pod: Manifest) -> None:
        """Handle a pod that was bound to this node, or has changed."""
        if self.is_cut_off:
            return
        run = self.pods.get(pod["metadata"]["uid"])
        if run is None:
            run = self._take(pod)
            self.pods[run.uid] = run
        else:
            self._update(run, pod)
        now = self.context.clock.now()
        if run.is_being_deleted:
            self._delete(run, now)
        self._step(run, now)

    def forget(self, uid: str) -> None:
        """Handle a deleted pod."""
        run = None if self.is_cut_off else self.pods.pop(uid, None)
        if run is None:
            return
        self._cancel(uid)
        if run.sandbox is not None:
            run.sandbox.close()
        self._free(run)
        self._unwritten.discard(uid)
        self._announcer.forget(run)

    def _take(self, pod: Manifest) -> PodRun:
        """Admit a pod, reject it, or continue it from the state that another kubelet left."""
        now = self.context.clock.now()
        if was_running(pod):
            run = self._new_run(pod)
            restore(run, self.context.seconds_of, now)
            run.has_volumes = run.sandbox is None
            if not run.is_finished:
                run.claims = pod_resources(convert(pod, Pod))
                self.room.take(run.uid, run.claims)
                if run.ip:
                    self._addresses.keep(run.uid, run.ip)
            return run
        if "deletionTimestamp" in pod["metadata"]:
            run = self._new_run(pod)
            run.stop(now)
        else:
            run = self._admit(pod)
        run.started_at = now
        self._changed(run)
        return run

    def _admit(self, pod: Manifest) -> PodRun:
        try:
            decoded = convert(pod, Pod)
            claims = pod_resources(decoded)
            qos_class = (pod.get("status") or {}).get("qosClass", "")
            refused = refusal(
                decoded, qos_class, self.decoded_node, self.room, self.pressure.conditions, claims
            )
        except InputError as error:
            refused = AdmissionRejection("UnexpectedAdmissionError", str(error))
        if refused is not None:
            run = PodRun(pod, (), self._starts_at)
            run.outcome = PodOutcome("Failed", refused.reason, _REJECTED + refused.message)
            self.record_event(pod, "Warning", refused.reason, refused.message)
            return run
        run = self._new_run(pod)
        run.claims = claims
        self.room.take(run.uid, claims)
        return run

    def _new_run(self, pod: Manifest) -> PodRun:
        meta, spec = pod["metadata"], pod["spec"]
        described = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
        containers = []
        for container in spec.get("initContainers") or ():
            role = Role.SIDECAR if container.get("restartPolicy") == "Always" else Role.INIT
            containers.append((container, role))
        containers += [(container, Role.MAIN) for container in spec["containers"]]
        sandbox = self._sandbox(pod)
        runs = [
            ContainerRun(
                container,
                role,
                self._workload(pod, container, role, sandbox),
                spec.get("restartPolicy") or "Always",
                described,
                self.context.container_id,
            )
            for container, role in containers
        ]
        run = PodRun(pod, runs, self._starts_at)
        run.sandbox = sandbox
        return run

    def _sandbox(self, pod: Manifest) -> Sandbox | None:
        if self.context.runtime is None:
            return None
        uid = pod["metadata"]["uid"]
        allocatable = (self.node.get("status") or {}).get("allocatable") or {}
        return self.context.runtime.sandbox(
            pod,
            Host(self.name, self.host, allocatable),
            lambda: self._wake(uid),
            lambda type, reason, message: self.record_event(pod, type, reason, message),
        )

    def _workload(self, pod: Manifest, container: Manifest, role: Role, sandbox: Sandbox | None) -> Workload:
        program, has_readiness = self._program(pod, container, role), role is not Role.INIT
        if sandbox is not None:
            real = sandbox.workload(container, program, has_readiness=has_readiness)
            if real is not None:
                return real
        stop_seconds = self.context.settings.stop_seconds
        return SimulatedWorkload(
            program, has_readiness=has_readiness, stop_seconds=lambda: self.context.latency(stop_seconds)
        )

    def _program(self, pod: Manifest, container: Manifest, role: Role) -> Program:
        settings, roles = self.context.settings, (role is Role.INIT, role is Role.SIDECAR)
        try:
            return program_of(pod, container, settings, is_init=roles[0], is_sidecar=roles[1])
        except ValueError as error:
            self.record_event(pod, "Warning", "InvalidAnnotation", str(error))
            return program_of({}, container, settings, is_init=roles[0], is_sidecar=roles[1])

    def _starts_at(self, run: PodRun, containers: Sequence[ContainerRun], now: float) -> float:
        settings, at = self.context.settings, now
        simulated = [each for each in containers if each.workload.is_simulated]
        if not simulated:
            return now
        for container in simulated:
            image = container.spec["image"]
            seconds = self.context.latency(settings.pull_seconds)
            if not self.images.has(image):
                self.record_event(run.manifest, *self._announcer.pulling(image, seconds))
            at = max(at, self.images.need(image, now, seconds))
        return at + self.context.latency(settings.start_seconds)

    def _update(self, run: PodRun, pod: Manifest) -> None:
        before, run.manifest = run.manifest, pod
        if run.is_finished:
            return
        if run.sandbox is not None:
            run.sandbox.update(pod)
        status = pod.get("status") or {}
        if status.get("phase") in FINISHED:
            # Another client has written a final phase.
            outcome = PodOutcome(status["phase"], status.get("reason") or "", status.get("message") or "")
            run.kill(self.context.clock.now(), outcome)
            self._changed(run)
            return
        if before["spec"] != pod["spec"] or annotations_of(before) != annotations_of(pod):
            self._reconsider(run)
            if before["metadata"].get("generation") != pod["metadata"].get("generation"):
                self._changed(run)  # The status contains the observed generation.
        wanted = ready_status(run)
        known = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        if known.get(READY) != wanted and not self.context.outbox.holds(("pod", run.uid)):
            # Another client wrote the condition while the node was away, or a readiness gate has passed.
            self._changed(run)

    def _reconsider(self, run: PodRun) -> None:
        """Apply changed programs and resources of containers, if the node has enough of them."""
        pending, wanted = run.pending_resize, pod_resources(convert(run.manifest, Pod))
        if wanted != run.claims:
            self.room.free(run.uid)
            short = shortage(self.decoded_node, self.room, wanted)
            run.pending_resize = short.message if short is not None else ""
            run.claims = wanted if short is None else run.claims
            assert run.claims is not None
            self.room.take(run.uid, run.claims)
        else:
            run.pending_resize = ""
        spec, is_resized = run.manifest["spec"], run.pending_resize != pending
        specs = {each["name"]: each for each in (*(spec.get("initContainers") or ()), *spec["containers"])}
        for container in run.containers:
            if not run.pending_resize:
                is_resized |= container.spec.get("resources") != specs[container.name].get("resources")
                container.spec = specs[container.name]
            container.workload.program = self._program(run.manifest, container.spec, container.role)
        self.has_changes = True
        if is_resized:
            self._changed(run)

    def _delete(self, run: PodRun, now: float) -> None:
        if not run.is_stopping and not run.is_finished:
            for container in run.containers:
                if isinstance(container.state, Running):
                    self.record_event(
                        run.manifest, "Normal", "Killing", f"Stopping container {container.name}"
                    )
        run.deletion_wanted(now)
        if run.is_finished:
            self.send(("pod", run.uid), lambda: self._write(run))

    # -- time

    def _step(self, run: PodRun, now: float) -> None:
        """Do what is due for a pod, and set the timer for the next change."""
        if not run.has_volumes and not run.is_finished:
            run.has_volumes = self._has_volumes(run)
        if run.step(now):
            self._changed(run)
        self._cancel(run.uid)
        due = run.due
        if due is not None:
            # The timer may fire slightly before the moment; it counts as the moment itself.
            self._timers[run.uid] = self.context.clock.call_later(
                due - now, lambda: self._step(run, max(due, self.context.clock.now()))
            )

    def _has_volumes(self, run: PodRun) -> bool:
        if not self.context.claims.ready(run.manifest, lambda: self._retry(run)):
            return False
        if run.sandbox is None:
            return True
        run.sandbox.prepare()
        return run.sandbox.is_ready

    def _wake(self, uid: str) -> None:
        """A container has something to report."""
        run = self.pods.get(uid)
        if run is not None:
            self._step(run, self.context.clock.now())

    def _retry(self, run: PodRun) -> None:
        if self.pods.get(run.uid) is run and not self.is_cut_off:
            self._step(run, self.context.clock.now())

    def _cancel(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def evict(self, run: PodRun, message: str, *, is_disrupted: bool, grace_seconds: float) -> None:
        """Kill a pod because of node pressure."""
        now = self.context.clock.now()
        self.record_event(run.manifest, "Warning", "Evicted", message)
        run.is_disrupted = is_disrupted
        run.kill(now, PodOutcome("Failed", "Evicted", message), grace_seconds)
        self._changed(run)
        self._step(run, now)

    def _changed(self, run: PodRun) -> None:
        if run.has_sandbox and not run.ip:
            run.ip = self._address(run)
        if run.is_finished:
            self._free(run)
        for new_events in self._announcer.new_events(run):
            self.record_event(run.manifest, *new_events)
        self.has_changes = True
        self._unwritten.add(run.uid)
        self.send(("pod", run.uid), lambda: self._write(run))

    def _address(self, run: PodRun) -> str:
        if run.manifest["spec"].get("hostNetwork"):
            return self.host
        return self._addresses.take(run.uid) if run.sandbox is None else run.sandbox.address

    def _free(self, run: PodRun) -> None:
        """Free the resources of a pod, and retry the pending resizes of others."""
        self.has_changes = True
        self.room.free(run.uid)
        self._addresses.release(run.uid)
        for other in list(self.pods.values()):
            if other.pending_resize and not other.is_finished:
                self._reconsider(other)
                self._retry(other)

    # -- writes

    async def _write(self, run: PodRun) -> None:
        if self.pods.get(run.uid) is not run:
            return
        client = self.context.cluster.client
        if run.uid in self._unwritten:
            self._unwritten.discard(run.uid)
            now = self.context.clock.now()
            patch = {
                "metadata": {"uid": run.uid},
                "status": pod_status(run, self.host, now, self.context.timestamp),
            }
            try:
                await client.patch(POD, run.namespace, run.name, patch, "strategic", "status")
            except Exception:
                self._unwritten.add(run.uid)
                raise
        if run.is_being_deleted and run.is_finished and run.grace_seconds:
            await client.delete(POD, run.namespace, run.name, grace_seconds=0, uid=run.uid)
