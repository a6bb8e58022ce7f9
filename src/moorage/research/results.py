"""What a cluster answers: decisions, explanations and simulations as typed objects with tables."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any, Final

from msgspec.structs import asdict
from rich.console import Console

from moorage.config.duration import Duration
from moorage.explain.document import Document, as_document
from moorage.explain.explanation import Explanation
from moorage.explain.help.search import Suggestion
from moorage.explain.report import NodeReport, Report
from moorage.explain.text import print_explanation
from moorage.research.frames import Row, Tabular
from moorage.simulation.records import Outcome
from moorage.simulation.results import SimulationResult
from moorage.simulation.run import SimulationRun

_WIDTH: Final = 100
"""Width of explanations, in characters."""


@dataclass(frozen=True, slots=True, repr=False)
class PodDecision(Report, Tabular):
    """Where a pod goes, and why: every node with its scores, or with the plugin that rejects it and why."""

    @property
    def scores(self) -> dict[str, dict[str, int]]:
        """Each plugin's weighted score, by feasible node; empty if there was nothing to compare."""
        return {each.node: each.scores for each in self.nodes if each.scores is not None}

    @property
    def feasible(self) -> list[str]:
        """The nodes that pass all filters, the best first."""
        return [each.node for each in self.nodes if not each.refused_by]

    @property
    def reasons(self) -> dict[str, str]:
        """Why each of the other nodes is rejected."""
        return {
            each.node: f"{each.refused_by}: {', '.join(each.reasons)}"
            for each in self.nodes
            if each.refused_by
        }

    def tables(self) -> Mapping[str, Sequence[Row]]:
        """One table: the nodes, the best first."""
        plugins = list(dict.fromkeys(name for scores in self.scores.values() for name in scores))
        return {"nodes": [_row(each, plugins) for each in self.nodes]}

    def __repr__(self) -> str:
        found = f"{len(self.feasible)} of {len(self.nodes)} nodes feasible"
        if self.node is not None:
            return f"{self.pod} goes to {self.node} ({found})"
        evicting = f"; evicting {', '.join(self.victims)} would make room on {self.nominated}"
        return f"{self.pod} goes nowhere: {self.message}{evicting if self.nominated else ''}"


def pod_decision(made: Report) -> PodDecision:
    """A report as a result."""
    return PodDecision(**{each.name: getattr(made, each.name) for each in fields(made)})


def _row(node: NodeReport, plugins: Sequence[str]) -> Row:
    scores = node.scores or {}
    return {
        "node": node.node,
        "chosen": node.chosen,
        "total": node.total,
        "rejected_by": node.refused_by,
        "reasons": ", ".join(node.reasons),
        **{plugin: scores.get(plugin) for plugin in plugins},
    }


@dataclass(frozen=True, slots=True, repr=False)
class PodExplanation(Tabular):
    """Why a pod is where it is, or nowhere; as text when it is shown."""

    pod: str
    verdict: str
    """One sentence that says it all."""
    node: str | None
    """The node that the pod would be placed on today."""
    help: tuple[Suggestion, ...]
    """What would make an unschedulable pod schedulable."""
    document: Document
    """Everything, in the format of `moorage explain -o json`."""
    text: str

    def tables(self) -> Mapping[str, Sequence[Row]]:
        """What would help, every filter's rejections, and the scores of feasible nodes."""
        return {
            "help": [{"change": str(each), "opens": ", ".join(each.nodes)} for each in self.help],
            "rejected": [_rejection(each) for each in self.document.get("allRejections", ())],
            "feasible": [_scored(each) for each in self.document.get("feasible", ())],
        }

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def pod_explanation(explanation: Explanation) -> PodExplanation:
    """An explanation as a result; everything is computed now, before the cluster changes."""
    decision = explanation.decision
    text = io.StringIO()
    console = Console(file=text, width=_WIDTH, color_system=None, markup=False, force_jupyter=False)
    print_explanation(explanation, console)
    return PodExplanation(
        explanation.pod.key,
        explanation.verdict,
        None if decision is None else decision.node,
        tuple(explanation.help),
        as_document(explanation),
        "\n".join(line.rstrip() for line in text.getvalue().splitlines()),
    )


def _rejection(entry: Document) -> Row:
    nodes = "all" if entry.get("allNodes") else ", ".join(entry["nodes"])
    return {"plugin": entry["plugin"], "reasons": ", ".join(entry["reasons"]), "nodes": nodes}


def _scored(entry: Document) -> Row:
    scores: Document = entry.get("scores", {})
    weighted = {plugin: parts["weighted"] for plugin, parts in scores.items()}
    return {"node": entry["node"], "chosen": entry["chosen"], "total": entry.get("total"), **weighted}


class SimulatedWorkload(SimulationResult, Tabular, kw_only=True):
    """What became of a workload: all that `moorage simulate -o json` has."""

    def tables(self) -> Mapping[str, Sequence[Row]]:
        """The pods with their times and nodes, the course over time, why pods are pending, and the nodes."""
        return {
            "placements": [
                {**asdict(each), "outcome": str(each.outcome), "waiting_seconds": each.waiting_seconds}
                for each in self.placements
            ],
            "course": [asdict(each) for each in self.course],
            "pending": [asdict(each) for each in self.pending],
            "nodes": [asdict(each) for each in self.nodes],
        }

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.pods[name]:,} {name.lower()}" for name in Outcome if self.pods[name])
        waited = self.waiting_seconds
        mean = "" if waited is None else f"; they waited {waited.mean:,.1f} s on average"
        partial = "" if self.complete else " (not complete)"
        return f"{Duration(self.seconds)} simulated{partial}: {self.pods['Created']:,} pods, {counts}{mean}"


def simulated_workload(run: SimulationRun) -> SimulatedWorkload:
    """A simulation as a result."""
    values: dict[str, Any] = asdict(run.result)
    return SimulatedWorkload(**values)
