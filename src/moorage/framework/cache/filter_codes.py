"""Which nodes filters reject, and why: a code for each row.

Filters that read neither the pods on a node nor all of the pod (`DependsOn.reads`) are evaluated once for all
equivalence classes of which they read the same: the first decision for a class begins with their codes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.cache.plugin_answers import PluginAnswers
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Refusal
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.runtime.plugin_call import PluginCall

_MAX_ROWS: Final = 1_000_000
"""Maximum number of rows of all shared codes together; at 10 bytes a row, 10 MB."""
_MAX_SHARED: Final = 64
"""Maximum number of shared codes: each keeps the parts of a pod that its filters read."""
_MIN_SHARED: Final = 4
"""Number of shared codes that are kept for any number of rows."""
_NEVER: Final = -1

Codes = NDArray[np.int16]
"""For each row 0, or why it was rejected: 1 + index into a list of refusals."""


class FilterCodes:
    """The results of filters for all rows. A copy shares the codes until one of them is written."""

    __slots__ = ("_counts", "_is_passing_known", "_is_shared", "_known", "_passing", "codes", "refusals")

    def __init__(self, rows: int = 0) -> None:
        self.codes: Codes = np.zeros(rows, np.int16)
        self.refusals: list[Refusal] = []
        self._known: dict[Refusal, int] = {}
        self._passing: NDArray[np.intp] | None = None
        self._is_passing_known = True
        self._counts: list[int] | None = None
        self._is_shared = False

    def copy(self) -> FilterCodes:
        """A copy that can be written."""
        twin = FilterCodes.__new__(FilterCodes)
        twin.codes, twin.refusals, twin._known = self.codes, list(self.refusals), dict(self._known)
        twin._passing, twin._is_passing_known, twin._counts = self.passing(), True, None
        self._is_shared = twin._is_shared = True
        return twin

    def passing(self) -> NDArray[np.intp] | None:
        """The rows that no filter rejected; None: all of them."""
        if not self._is_passing_known:
            passing = (self.codes == 0).nonzero()[0]
            self._passing = None if len(passing) == len(self.codes) else passing
            self._is_passing_known = True
        return self._passing

    def counts(self) -> list[int]:
        """The number of rows with each code, in a new list; they are counted only after many were written."""
        if self._counts is None:
            self._counts = np.bincount(self.codes, minlength=1).tolist()
        return self._counts.copy()

    def lend(self) -> Codes:
        """The codes as they are now; they are copied before the next write."""
        self._is_shared = True
        return self.codes

    def write(self, rows: int | NDArray[np.intp], codes: int | Codes) -> None:
        """Set the codes of rows."""
        if self._is_shared:
            self.codes, self._is_shared = self.codes.copy(), False
        self.codes[rows] = codes
        self._is_passing_known = False
        self._counts = None

    def write_row(self, row: int, code: int) -> None:
        """Set the code of one row; the rows that pass stay known unless this one passes now, or did."""
        before, counts = self.codes.item(row), self._counts
        is_passing_known = self._is_passing_known and bool(before) == bool(code)
        self.write(row, code)
        self._is_passing_known = is_passing_known
        if counts is not None:
            counts += [0] * (code + 1 - len(counts))
            counts[before] -= 1
            counts[code] += 1
            self._counts = counts

    def add(self, plugin: str, result: FilterResult) -> None:
        """Add a filter's result for all rows: the first rejection of a row counts."""
        if result.codes is None or not result.codes.any():
            return
        found = self.table(plugin, result).take(result.codes)
        if self.passing() is not None:
            found *= self.codes == 0
            found += self.codes
        self.codes = found
        self._is_shared = self._is_passing_known = False
        self._counts = None

    def table(self, plugin: str, result: FilterResult) -> Codes:
        """The codes here of a filter's reasons, by its own codes."""
        return np.array([0, *(self.code(plugin, each) for each in result.reasons)], np.int16)

    def code(self, plugin: str, reason: Reason) -> int:
        """The code of a filter's reason."""
        refusal = Refusal(plugin, reason)
        code = self._known.get(refusal)
        if code is None:
            self.refusals.append(refusal)
            code = self._known[refusal] = len(self.refusals)
        return code


class SharedFilterCodes:
    """The most recently used codes of filters whose results are shared between equivalence classes."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[PluginAnswers, ...], tuple[int, FilterCodes]] = OrderedDict()

    def of(
        self,
        calls: Sequence[PluginCall],
        shared: Mapping[str, PluginAnswers],
        cycle: CycleState,
        pod: Pod,
        snapshot: Snapshot,
    ) -> tuple[FilterCodes, Sequence[PluginCall]]:
        """The codes of the first filters, as a copy, and the filters from the first that is not shared on."""
        answers = []
        for call in calls:
            if (each := shared.get(call.plugin)) is None:
                break
            answers.append(each)
        return self._of(tuple(answers), calls, cycle, pod, snapshot).copy(), calls[len(answers) :]

    def _of(
        self,
        answers: tuple[PluginAnswers, ...],
        calls: Sequence[PluginCall],
        cycle: CycleState,
        pod: Pod,
        snapshot: Snapshot,
    ) -> FilterCodes:
        """The codes of some filters: often only the last of them reads something else than before."""
        position = snapshot.node_changes.position
        seen, codes = self._known.get(answers, (_NEVER, None))
        if codes is not None and seen == position:
            self._known.move_to_end(answers)
            return codes
        if answers:
            codes, last = self._of(answers[:-1], calls, cycle, pod, snapshot).copy(), calls[len(answers) - 1]
            codes.add(last.plugin, answers[-1].filter(last, cycle, pod))
        else:
            codes = FilterCodes(len(snapshot))
        self._known[answers] = (position, codes)
        while len(self._known) > min(max(_MAX_ROWS // (len(snapshot) or 1), _MIN_SHARED), _MAX_SHARED):
            self._known.popitem(last=False)
        return codes
