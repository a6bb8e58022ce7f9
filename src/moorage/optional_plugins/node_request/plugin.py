"""NodeRequest: asks for a node when nothing fits, and remembers what it has asked for.

Pods that no plugin makes room for are gathered for a short time, packed into the nodes that are on their way,
and into new ones of the catalogue's shapes. These are asked for from a web service; simulations, and clusters
whose nodes are simulated, get them through the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage import (
    CycleState,
    Diagnosis,
    GroupDryRun,
    Handle,
    HypotheticalNodes,
    Nodes,
    Permission,
    Pod,
    PodGroupInfo,
    PodGroupPostFilterResult,
    Status,
    WebService,
    kinds,
    offers_of,
    unschedulable,
)
from moorage.optional_plugins.node_request.allowance import Allowance
from moorage.optional_plugins.node_request.arguments import NodeRequestArgs, WebhookArgs
from moorage.optional_plugins.node_request.creation import Creation
from moorage.optional_plugins.node_request.demands import Demand
from moorage.optional_plugins.node_request.packing import Packing
from moorage.optional_plugins.node_request.provisioning import Provisioner
from moorage.optional_plugins.node_request.requester import Requester
from moorage.optional_plugins.node_request.telling import PREFIX, refused
from moorage.optional_plugins.node_request.webhook import Webhook

_CREATES: Final = {
    point: Permission.on(kinds.NODE, "create") for point in ("post_filter", "pod_group_post_filter")
}


class NodeRequest:
    """Asks for nodes of a catalogue."""

    name = "NodeRequest"
    watched_kinds = ()
    write_permissions: Mapping[str, tuple[Permission, ...]]

    def __init__(self, args: NodeRequestArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self.write_permissions = _CREATES if args.webhook is None else {}
        self._requester = Requester(args, handle, self.new_provisioner())
        self._paper: HypotheticalNodes | None = None

    def new_provisioner(self) -> Provisioner:
        """What makes nodes: the web service, if there is one and time is real; else the API server."""
        args, handle = self._args, self._handle
        creation = Creation(handle, args.provisioning_delay)
        if args.webhook is None:
            return creation
        webhook = Webhook(_service(args.webhook), handle)
        return creation if handle.clock.is_virtual else webhook

    def post_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis) -> Status:
        """Ask for a node; the pod stays unschedulable until one comes."""
        is_local = self._handle.single_node_filters(cycle) is not None
        return self._answer(Demand(pod.uid, (pod,), is_local, diagnosis.message()), nodes)

    def pod_group_post_filter(
        self, cycle: CycleState, group: PodGroupInfo, dry_run: GroupDryRun
    ) -> PodGroupPostFilterResult:
        """Ask for what the members of a group need together.

        It has to run before DefaultPreemption, after whose refusal no plugin is asked for groups.
        """
        pods = tuple(group.all_pods())
        scheduled = 0 if group.is_composite else self._handle.pod_groups.scheduled_count(group.key)
        quorum = len(pods) if group.is_composite else max(group.group.quorum - scheduled, 1)
        message = f"the group {group.key} does not fit"
        demand = Demand(group.key, pods, False, message, group, quorum)
        return PodGroupPostFilterResult(self._answer(demand, dry_run.nodes()))

    def _answer(self, demand: Demand, nodes: Nodes) -> Status:
        if self._handle.is_acting:
            return unschedulable(self._requester.note(demand))
        return unschedulable(self._advice(demand, nodes))

    def _advice(self, demand: Demand, nodes: Nodes) -> str:
        """What would be asked for, where nothing is carried out."""
        if self._paper is None:
            self._paper = self._handle.hypothetical_nodes()
        args, allowance = self._args, Allowance(self._args, nodes, ())
        offers = offers_of(args.shapes)
        packing = Packing(self._paper, nodes, offers, args.choice, allowance, lambda offer: "")
        for _ in packing.run([demand]):
            pass
        for pod in demand.pods:
            self._paper.forget(pod)
        for new in packing.packed.new:
            self._paper.remove(new.node.name)
        if (reason := packing.packed.reasons.get(demand.key)) is not None:
            return refused(reason)
        return f"{PREFIX}would ask for {', '.join(new.node.name for new in packing.packed.new)}."


def _service(args: WebhookArgs) -> WebService:
    """The web service; ValueError if its URL cannot be used."""
    try:
        return WebService(args.url, ca_file=args.ca_file, timeout_seconds=args.timeout)
    except ValueError as error:
        raise ValueError(f"args.webhook: {error}") from None
