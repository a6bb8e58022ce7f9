"""Whether topology managers admit a pod: the rules of `alignment`, for many nodes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import ALL, Code, FilterResult, Nodes, Reason
from moorage.optional_plugins.numa.alignment import (
    CANNOT_ALIGN_CONTAINER,
    CANNOT_ALIGN_POD,
    is_memory,
)
from moorage.optional_plugins.numa.combinations import masks_of
from moorage.optional_plugins.numa.requests import Amounts, PodRequests
from moorage.optional_plugins.numa.topology import NOT_LISTED, POLICIES, RESTRICTED, SINGLE
from moorage.optional_plugins.numa.zone_rows import ResourceColumns, ZoneRows

Mask = NDArray[np.bool_]
Column = NDArray[np.int64]

INVALID_DATA: Final = "invalid node topology data"
_SINGLE: Final = POLICIES.index(SINGLE)
_RESTRICTED: Final = POLICIES.index(RESTRICTED)
_IMPOSSIBLE: Final = -1


def free_zones(known: ZoneRows, nodes: Nodes, names: Iterable[str]) -> dict[str, Column]:
    """What is left of resources that some zone lists, with hypothetical pods. Shape (zones, nodes)."""
    free: dict[str, Column] = {}
    for name in names:
        if (columns := known.resource(name)) is not None:
            available = nodes.pick(columns.available)
            taken = nodes.pick(columns.held)
            free[name] = np.where(available <= 0, available, np.maximum(available - taken, 0))
    hypothetical = nodes.hypothetical_pods
    if hypothetical is None or not free:
        return free
    rows = nodes.row_numbers()
    for index in hypothetical.indices():
        number = int(rows[index])
        if (row := known.rows[number]) is not None:
            here = nodes.snapshot.pods_of(number).infos
            added, removed = hypothetical.added_on(index), hypothetical.removed_on(index)
            for name, amounts in row.free_with(free, here, added, removed).items():
                free[name][: len(amounts), index] = amounts
    return free


def reserved(known: ZoneRows, nodes: Nodes) -> Mask:
    """Where pods may hold what the node's object does not account for. Shape (nodes,)."""
    is_reserved = np.array(nodes.pick(known.is_reserved))
    hypothetical = nodes.hypothetical_pods
    if hypothetical is not None:
        rows = nodes.row_numbers()
        for index in hypothetical.indices():
            number = int(rows[index])
            if (row := known.rows[number]) is not None:
                here = nodes.snapshot.pods_of(number).infos
                added, removed = hypothetical.added_on(index), hypothetical.removed_on(index)
                is_reserved[index] = row.is_reserved_with(here, added, removed)
    return is_reserved


class Refusals:
    """The reason for each node, as a filter's answer."""

    def __init__(self, count: int) -> None:
        self._codes = np.zeros(count, np.int16)
        self._reasons: dict[Reason, int] = {}

    def add(self, places: NDArray[np.intp], text: str, *, resolvable: bool) -> None:
        """Refuse the nodes at some places, unless they are refused already."""
        if len(places):
            reason = Reason((text,), Code.UNSCHEDULABLE if resolvable else Code.UNRESOLVABLE)
            code = self._reasons.setdefault(reason, len(self._reasons) + 1)
            self._codes[places] = np.where(self._codes[places], self._codes[places], code)

    def result(self) -> FilterResult:
        """The answer."""
        return FilterResult(self._codes, tuple(self._reasons)) if self._reasons else ALL


def add_refusals(known: ZoneRows, nodes: Nodes, requests: PodRequests, refusals: Refusals) -> None:
    """Refuse the nodes that cannot align a pod; for good those that could not even if nothing else ran."""
    policy, is_by_pod = nodes.pick(known.policy), nodes.pick(known.is_by_pod)
    if not (policy >= _RESTRICTED).any():
        return
    free = free_zones(known, nodes, requests.pinned)
    rows = nodes.row_numbers()
    for code in (_SINGLE, _RESTRICTED):
        for by_pod in (True, False):
            places = np.flatnonzero((policy == code) & (is_by_pod == by_pod))
            if len(places):
                zones = Zones(known, rows[places], {name: each[:, places] for name, each in free.items()})
                _add_of(zones, places, code, list(_steps(requests, by_pod)), refusals)


def _add_of(
    zones: Zones, places: NDArray[np.intp], policy: int, steps: Sequence[Step], refusals: Refusals
) -> None:
    """The same for nodes with one policy and scope, at some places of the view."""
    refused = _first_refusing(zones, policy, steps)
    some = np.flatnonzero(refused)
    if not len(some):
        return
    is_hopeless = _first_refusing(zones.emptied(some), policy, steps) != 0
    for number, step in enumerate(steps, 1):
        here = refused[some] == number
        refusals.add(places[some[here & is_hopeless]], step.message, resolvable=False)
        refusals.add(places[some[here & ~is_hopeless]], step.message, resolvable=True)


class Step(NamedTuple):
    """What is aligned at once: the message if it cannot be, and whether it stays beside what comes next."""

    message: str
    needs: Amounts
    stays: bool


def _steps(requests: PodRequests, by_pod: bool) -> Iterator[Step]:
    """What is aligned, one after another: the pod, or each container."""
    if by_pod:
        yield Step(CANNOT_ALIGN_POD, requests.pinned, stays=False)
        return
    for each in requests.containers:
        yield Step(CANNOT_ALIGN_CONTAINER.format(each.kind), each.pinned, each.stays)


def _first_refusing(zones: Zones, policy: int, steps: Sequence[Step]) -> Column:
    """The number of the step, from 1, at which each node refuses; 0 if at none."""
    first = np.zeros(len(zones), np.int64)
    fitting = zones.single if policy == _SINGLE else zones.restricted
    for number, step in enumerate(steps, 1):
        fits, chosen = fitting(step.needs)
        first[~fits & (first == 0)] = number
        if step.stays and number < len(steps):
            zones.take(step.needs, chosen)
    return first


class Zones:
    """The zones of some rows, and what is left in them. Arrays have shape (zones, rows)."""

    def __init__(self, known: ZoneRows, rows: NDArray[np.intp], free: Mapping[str, Column]) -> None:
        self._known = known
        self._rows = rows
        self.free = {name: each.copy() for name, each in free.items()}
        self.count = known.zone_count[rows]
        self._listed = {name: (each != NOT_LISTED).any(axis=0) for name, each in self.free.items()}

    def __len__(self) -> int:
        return len(self._rows)

    def emptied(self, places: NDArray[np.intp]) -> Zones:
        """Some of the rows, as they would be if nothing ran there."""
        rows = self._rows[places]
        return Zones(
            self._known, rows, {name: self._columns(name).allocatable[:, rows] for name in self.free}
        )

    def wanted(self, needs: Amounts) -> list[tuple[str, int, Mask]]:
        """Requests of resources that a zone lists, with the rows where one does."""
        return [(name, needs[name], self._listed[name]) for name in needs if name in self.free]

    def single(self, needs: Amounts) -> tuple[Mask, Mask]:
        """Which rows have a zone with room, and the first such zone of each."""
        wanted = self.wanted(needs)
        fits = np.arange(self._known.width)[:, None] < self.count
        is_constrained = np.zeros(len(self), bool)
        for name, amount, listed in wanted:
            fits &= (self.free[name] >= amount) | ~listed
            is_constrained |= listed
        chosen = np.zeros_like(fits)
        places = np.flatnonzero(is_constrained & fits.any(axis=0))
        chosen[fits[:, places].argmax(axis=0), places] = True
        return fits.any(axis=0) | ~is_constrained, chosen

    def restricted(self, needs: Amounts) -> tuple[Mask, Mask]:
        """Which rows have a set of zones of the smallest size with room, and the first such set of each."""
        wanted = self.wanted(needs)
        size, fits = self._sizes(wanted)
        chosen = np.zeros((self._known.width, len(self)), bool)
        for count, number, places in self._by_size(size, fits & (size > 0)):
            masks = masks_of(count, number)
            if masks is None:
                continue
            has = self._has(masks, wanted, places)
            fits[places] = has.any(axis=0)
            found = places[fits[places]]
            chosen[:count, found] = masks[has[:, fits[places]].argmax(axis=0)].T != 0
        return fits, chosen

    def _by_size(self, size: Column, mask: Mask) -> Iterator[tuple[int, int, NDArray[np.intp]]]:
        """The rows of a mask by their number of zones and a size."""
        for count, number in sorted({*zip(self.count[mask].tolist(), size[mask].tolist(), strict=True)}):
            yield count, number, np.flatnonzero(mask & (self.count == count) & (size == number))

    def _has(self, masks: Column, wanted: list[tuple[str, int, Mask]], places: NDArray[np.intp]) -> Mask:
        """Which sets of zones list all that is wanted, and have enough of it. Shape (sets, places)."""
        has = np.ones((len(masks), len(places)), bool)
        for name, amount, listed in wanted:
            free = self.free[name][: masks.shape[1], places]
            lacks = masks @ (free == NOT_LISTED)
            has &= ((masks @ np.maximum(free, 0) >= amount) & (lacks == 0)) | ~listed[places]
        return has

    def _sizes(self, wanted: list[tuple[str, int, Mask]]) -> tuple[Column, Mask]:
        """The smallest number of zones for all that is wanted (0: any), and where there is one."""
        groups = [[each] for each in wanted if not is_memory(each[0])]
        if memory := [each for each in wanted if is_memory(each[0])]:
            groups.append(memory)
        size, fits = np.zeros(len(self), np.int64), np.ones(len(self), bool)
        for group in groups:
            own = self._smallest(group)
            fits &= (own == 0) | ((own != _IMPOSSIBLE) & ((size == 0) | (size == own)))
            size = np.maximum(size, own)
        return size, fits

    def _smallest(self, group: list[tuple[str, int, Mask]]) -> Column:
        """The smallest number of zones of an empty node that serves a group of requests."""
        totals = [(self._totals(name), amount, listed) for name, amount, listed in group]
        size = np.full(len(self), _IMPOSSIBLE, np.int64)
        size[~np.logical_or.reduce([listed for _, _, listed in totals])] = 0
        largest = [np.sort(total, axis=0)[::-1].cumsum(axis=0) for total, _, _ in totals]
        for number in range(1, self._known.width + 1):
            reaches = (size == _IMPOSSIBLE) & (number <= self.count)
            for sums, (_, amount, listed) in zip(largest, totals, strict=True):
                reaches &= (sums[number - 1] >= amount) | ~listed
            if len(totals) > 1:
                reaches &= self._reach_together(totals, number, reaches)
            size[reaches] = number
        return size

    def _reach_together(self, totals: list[tuple[Column, int, Mask]], number: int, mask: Mask) -> Mask:
        """Where one set of zones has enough of everything on an empty node."""
        reaches = np.ones(len(self), bool)
        for count, _, places in self._by_size(np.full(len(self), number), mask):
            masks = masks_of(count, number)
            if masks is not None:
                has = np.ones((len(masks), len(places)), bool)
                for total, amount, listed in totals:
                    has &= (masks @ total[:count, places] >= amount) | ~listed[places]
                is_alone = sum(listed[places].astype(int) for _, _, listed in totals) == 1
                reaches[places] = has.any(axis=0) | is_alone
        return reaches

    def _totals(self, name: str) -> Column:
        """What zones have when nothing runs on the node."""
        columns = self._columns(name)
        return np.maximum((columns.allocatable if is_memory(name) else columns.capacity)[:, self._rows], 0)

    def _columns(self, name: str) -> ResourceColumns:
        columns = self._known.resource(name)
        assert columns is not None
        return columns

    def take(self, needs: Amounts, chosen: Mask) -> None:
        """Take requests from the chosen zones, from the first one as much as there is."""
        for name, amount, _ in self.wanted(needs):
            left, rest = self.free[name], np.full(len(self), amount)
            for zone in range(len(left)):
                taken = np.minimum(np.maximum(left[zone], 0), rest) * chosen[zone]
                left[zone] -= taken
                rest -= taken
