"""The drawings in docs/images: `python -m tools.diagrams` writes all of them again.

Each is a card with a background of its own, so it can be read on any page, and is dark where the reader's
system is. Texts are text, and CSS has the colours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Final

FOLDER: Final = Path(__file__).parent.parent / "docs" / "images"
_LINE_HEIGHT: Final = 17
"""Distance of lines of text, in pixels."""
_STYLE: Final = """
    .card { fill: #ffffff; stroke: #d0d7de; }
    .area { fill: #f3f6f9; stroke: #c3ccd5; stroke-dasharray: 5 4; }
    .box { fill: #e3eef7; stroke: #1f5f8b; }
    .kept { fill: #e6f2e6; stroke: #2f7a3d; }
    .end { fill: #f6ead9; stroke: #9a5b13; }
    .arrow { fill: none; stroke: #57606a; stroke-width: 1.6; }
    .tip { fill: #57606a; }
    text { fill: #1f2328; font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px; }
    .title { font-weight: 600; }
    .note { fill: #57606a; font-size: 12px; }
    .code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #161b22; stroke: #3d444d; }
      .area { fill: #1c2128; stroke: #4b535d; }
      .box { fill: #16324a; stroke: #6cb0e0; }
      .kept { fill: #17351f; stroke: #6fbf7f; }
      .end { fill: #3d2c14; stroke: #d9a05b; }
      .arrow { stroke: #9198a1; }
      .tip { fill: #9198a1; }
      text { fill: #e6edf3; }
      .note { fill: #9198a1; }
    }
"""

Point = tuple[float, float]


@dataclass
class Drawing:
    """Shapes on a card, each a line of SVG."""

    width: int
    height: int
    label: str
    """What is told to readers who do not see it."""
    lines: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, style: str = "", anchor: str = "start") -> None:
        """A line of text."""
        classes = f' class="{style}"' if style else ""
        middle = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.lines.append(f'<text x="{x:g}" y="{y:g}"{classes}{middle}>{escape(text)}</text>')

    def box(self, x: float, y: float, width: float, height: float, *texts: str, style: str = "box") -> None:
        """A box with a title and further lines, in its middle."""
        self.lines.append(
            f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7"/>'
        )
        first = y + height / 2 - (len(texts) - 1) * _LINE_HEIGHT / 2 + 4.5
        for index, text in enumerate(texts):
            self.text(
                x + width / 2, first + index * _LINE_HEIGHT, text, "note" if index else "title", "middle"
            )

    def area(self, x: float, y: float, width: float, height: float, title: str) -> None:
        """A part of the drawing, with its title at the top."""
        self.lines.append(
            f'<rect class="area" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="9"/>'
        )
        self.text(x + 12, y + 20, title, "note")

    def arrow(self, *points: Point, note: str = "", at: Point | None = None, anchor: str = "middle") -> None:
        """An arrow along points; its note is `at` a point, or above its middle."""
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        self.lines.append(f'<path class="arrow" d="M{path}" marker-end="url(#tip)"/>')
        if note:
            (x, y), (next_x, next_y) = points[0], points[-1]
            place = at or ((x + next_x) / 2, (y + next_y) / 2 - 6)
            self.text(*place, note, "note", anchor)

    def svg(self) -> str:
        """The file's content."""
        inside = "\n  ".join(self.lines)
        return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" \
width="{self.width}" height="{self.height}" role="img" aria-label="{escape(self.label)}">
  <title>{escape(self.label)}</title>
  <style>{_STYLE}  </style>
  <defs>
    <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
      <path class="tip" d="M0 0L8 4L0 8z"/>
    </marker>
  </defs>
  <rect class="card" x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="10"/>
  {inside}
</svg>
"""


def architecture() -> Drawing:
    """Processes, and the layers of the scheduler."""
    drawing = Drawing(860, 476, "The processes, and the layers of the scheduler")
    drawing.area(20, 16, 250, 206, "process: API server")
    drawing.box(40, 48, 210, 46, "kube-apiserver", "of a cluster")
    drawing.text(145, 112, "or", "note", "middle")
    drawing.box(40, 122, 210, 46, "moorage_cluster", "API server, controllers, nodes")
    drawing.text(145, 194, "moorage up, moorage apiserver", "code", "middle")
    drawing.area(20, 240, 250, 96, "process: page")
    drawing.box(40, 270, 210, 46, "ui", "moorage ui, in a browser")
    drawing.area(20, 354, 250, 104, "no cluster: files in, answers out")
    drawing.box(30, 386, 230, 56, "decide, explain, plan", "simulate, compare, sweep, replay")
    drawing.area(390, 16, 450, 442, "process: scheduler (moorage run)")
    layers = (
        ("cli", "flags, signals, files, exit status"),
        ("scheduler", "informers to cache, cycles, requests"),
        ("services, plugins", "leases, metrics, health; the rules"),
        ("engine", "one cycle: pod and snapshot in, decision out"),
        ("framework", "extension points, registry, result cache"),
        ("queue, cluster", "places of pods; cache, snapshot, columns"),
        ("client, http", "requests, watches, credentials"),
        ("config, api, clock", "types, quantities, selectors, time"),
    )
    for index, (title, note) in enumerate(layers):
        y = 46 + index * 49
        drawing.box(410, y, 410, 42, title, note)
    drawing.text(615, 449, "upper layers import lower ones, never the reverse", "note", "middle")
    drawing.arrow((270, 100), (390, 100), note="watches")
    drawing.arrow((390, 144), (270, 144), note="bindings, events")
    drawing.arrow((145, 240), (145, 222))
    drawing.arrow((270, 293), (390, 293), note="reads its port")
    drawing.arrow((270, 414), (390, 414), note="the same layers")
    return drawing


def scheduling_cycle() -> Drawing:
    """One scheduling cycle with its extension points."""
    drawing = Drawing(860, 420, "One scheduling cycle, and the binding cycle, with their extension points")
    drawing.box(14, 40, 150, 54, "queue", "PreEnqueue, QueueSort", style="kept")
    drawing.area(
        190, 14, 650, 226, "scheduling cycle: one pod after another, on a snapshot that nothing changes"
    )
    points = (("PreFilter", "once a pod"), ("Filter", "all nodes at once"), ("PreScore", "feasible nodes"))
    for index, (title, note) in enumerate(points):
        drawing.box(210 + index * 155, 46, 132, 46, title, note)
    drawing.box(675, 46, 145, 46, "Score", "normalised, weighted")
    drawing.arrow((164, 67), (210, 67))
    drawing.arrow((342, 67), (365, 67))
    drawing.arrow((497, 67), (520, 67))
    drawing.arrow((652, 67), (675, 67))
    drawing.box(365, 160, 132, 56, "PostFilter", "preemption", style="end")
    drawing.arrow((410, 92), (410, 160), note="no node", at=(402, 130), anchor="end")
    drawing.box(530, 160, 132, 56, "Reserve", "the pod is assumed")
    drawing.box(688, 160, 132, 56, "Permit", "may hold the pod")
    drawing.arrow((748, 92), (748, 126), (610, 126), (610, 160), note="the best node", at=(682, 120))
    drawing.arrow((470, 92), (470, 142), (566, 142), (566, 160), note="one node", at=(520, 136))
    drawing.arrow((662, 188), (688, 188))
    drawing.arrow((365, 188), (90, 188), (90, 94), note="back, nominated or not", at=(276, 182))
    drawing.area(190, 262, 650, 138, "binding cycle: waits for the cluster, beside further scheduling cycles")
    for index, (title, note) in enumerate(
        (("PostBind", "is notified"), ("Bind", "the request"), ("PreBind", "volumes, devices"))
    ):
        drawing.box(210 + index * 175, 300, 140, 52, title, note)
    drawing.box(735, 300, 90, 52, "wait", "for permits")
    drawing.arrow((780, 216), (780, 300))
    drawing.arrow((735, 326), (700, 326))
    drawing.arrow((560, 326), (525, 326))
    drawing.arrow((385, 326), (350, 326))
    drawing.arrow((210, 326), (90, 326), note="bound", at=(140, 320))
    drawing.text(515, 384, "any failure: Unreserve of all plugins, and the pod is put back", "note", "middle")
    return drawing


def columns() -> Drawing:
    """Columns and the result cache."""
    drawing = Drawing(860, 400, "Nodes as rows of columns, and the result cache of an equivalence class")
    drawing.area(20, 16, 470, 366, "snapshot: a node is a row, what plugins read is a column")
    heads = ("node", "zone", "taints", "free cpu", "pods")
    rows = (
        ("oslo-1", "0", "0", "3500", "12"),
        ("oslo-2", "0", "1", "8000", "3"),
        ("bergen-1", "1", "0", "250", "31"),
        ("bergen-2", "1", "0", "6100", "9"),
        ("cadiz-1", "2", "1", "7750", "4"),
    )
    for column, head in enumerate(heads):
        x = 40 + column * 88
        drawing.text(x + 38, 62, head, "title", "middle")
        style = "area" if column == 0 else "box"
        drawing.lines.append(f'<rect class="{style}" x="{x}" y="74" width="76" height="170" rx="7"/>')
        for index, row in enumerate(rows):
            drawing.text(x + 38, 96 + index * 32, row[column], "code", "middle")
    drawing.text(40, 276, "Codes stand for interned values: a zone, or a set of taints.", "note")
    drawing.box(
        40,
        296,
        428,
        66,
        "row log",
        "rows that were written, in order: oslo-2, bergen-2",
        "each reader has its own position in it",
        style="kept",
    )
    drawing.area(520, 16, 320, 366, "result cache of one equivalence class")
    for column, head in enumerate(("filter code", "sum of scores")):
        x = 548 + column * 140
        drawing.text(x + 58, 62, head, "title", "middle")
        drawing.lines.append(f'<rect class="kept" x="{x}" y="74" width="116" height="170" rx="7"/>')
    for index, (code, total) in enumerate((("0", "601"), ("2", ""), ("5", ""), ("?", "?"), ("2", ""))):
        drawing.text(606, 96 + index * 32, code, "code", "middle")
        drawing.text(746, 96 + index * 32, total, "code", "middle")
    drawing.text(540, 276, "0: fits; others index the reasons of refusals.", "note")
    drawing.text(540, 296, "? : the row is in the log since the last cycle;", "note")
    drawing.text(540, 313, "plugins are asked about these rows alone.", "note")
    drawing.text(540, 340, "Pods of one template share the class: for most", "note")
    drawing.text(540, 357, "of them, few rows have changed.", "note")
    drawing.arrow((468, 329), (504, 329), (504, 192), (548, 192))
    return drawing


def queue_places() -> Drawing:
    """The places of the queue, and what moves a pod between them."""
    drawing = Drawing(880, 404, "The places of the scheduling queue, and what moves a pod between them")
    drawing.box(30, 60, 170, 56, "gated", "PreEnqueue rejects it")
    drawing.box(300, 60, 180, 56, "active", "in the order of QueueSort", style="kept")
    drawing.box(660, 60, 170, 56, "in flight", "events are kept for it")
    drawing.box(300, 190, 180, 56, "backoff", "1 s, doubled, up to 10 s")
    drawing.box(660, 304, 170, 56, "unschedulable", "until an event may help")
    drawing.box(30, 304, 170, 56, "gone", "bound, or deleted", style="end")
    drawing.arrow((390, 20), (390, 60), note="a new pod", at=(400, 36), anchor="start")
    drawing.arrow((480, 76), (660, 76), note="pop")
    drawing.arrow((200, 78), (300, 78), note="an event")
    drawing.arrow((660, 100), (480, 100), note="a missed event may help", at=(570, 116))
    drawing.arrow((690, 116), (690, 218), (480, 218), note="the same in backoff; errors", at=(580, 212))
    drawing.arrow((390, 190), (390, 116), note="backoff is over", at=(398, 158), anchor="start")
    drawing.arrow((760, 116), (760, 304), note="no event helps", at=(752, 262), anchor="end")
    drawing.arrow((660, 322), (390, 322), (390, 246), note="an event may help", at=(525, 316))
    drawing.arrow(
        (660, 346), (250, 346), (250, 100), (300, 100), note="the same after backoff", at=(455, 340)
    )
    drawing.arrow((830, 88), (856, 88), (856, 386), (115, 386), (115, 360), note="bound", at=(480, 381))
    return drawing


def flow() -> Drawing:
    """From what a scheduler reads to a decision and its effects."""
    drawing = Drawing(860, 316, "From events to a decision: cache, snapshot, engine, framework")
    drawing.box(20, 24, 220, 54, "events", "nodes, pods, all other objects", style="end")
    drawing.box(300, 24, 220, 54, "assumed pods and objects", "decided, not confirmed yet", style="end")
    drawing.box(160, 120, 220, 54, "cluster.Cache", "plain entries; what changed", style="kept")
    drawing.box(160, 236, 220, 54, "cluster.Snapshot", "columns; nothing moves", style="kept")
    drawing.arrow((130, 78), (130, 147), (160, 147))
    drawing.arrow((410, 78), (410, 147), (380, 147))
    drawing.arrow(
        (270, 174), (270, 236), note="snapshot(): rows of changed nodes", at=(280, 210), anchor="start"
    )
    drawing.box(590, 236, 250, 54, "engine.Engine.decide", "framework, pod, snapshot")
    drawing.arrow((380, 263), (590, 263))
    drawing.box(590, 130, 250, 54, "engine.Decision", "node, every score, every refusal")
    drawing.arrow((715, 236), (715, 184))
    drawing.box(590, 24, 250, 54, "reserve, permit, bind", "writes are effects")
    drawing.arrow((715, 130), (715, 78))
    drawing.arrow((590, 51), (520, 51), note="assume", at=(555, 43))
    return drawing


def watch_to_binding() -> Drawing:
    """What happens between a watch and a binding in a running scheduler."""
    drawing = Drawing(860, 330, "From a watch to a binding, in a running scheduler")
    drawing.box(20, 30, 180, 54, "client.Informer", "one for each kind")
    drawing.box(260, 30, 190, 54, "event_handlers", "the cache first")
    drawing.box(
        520,
        24,
        320,
        66,
        "queue",
        "move_all(event), with hints:",
        "may this event help that pod?",
        style="kept",
    )
    drawing.arrow((200, 57), (260, 57))
    drawing.arrow((450, 57), (520, 57))
    drawing.box(520, 138, 320, 54, "decide", "a cycle from start to end, on a snapshot")
    drawing.arrow((720, 90), (720, 138), note="pop", at=(730, 118), anchor="start")
    drawing.box(260, 138, 190, 54, "assume, reserve, permit", "in the same turn")
    drawing.arrow((520, 165), (450, 165), note="a node", at=(485, 157))
    drawing.box(20, 138, 180, 54, "a worker", "wait, pre_bind, bind")
    drawing.arrow((260, 165), (200, 165))
    drawing.box(20, 250, 180, 54, "effects", "become requests", style="end")
    drawing.arrow((110, 192), (110, 250))
    drawing.box(260, 250, 190, 54, "failed", "unreserve, forget", style="end")
    drawing.arrow((170, 192), (170, 222), (355, 222), (355, 250))
    drawing.box(520, 250, 320, 54, "queue.put_back", "asks for the events that it missed", style="kept")
    drawing.arrow((450, 277), (520, 277))
    drawing.arrow((680, 192), (680, 250), note="no node", at=(690, 226), anchor="start")
    return drawing


def api_server_request() -> Drawing:
    """How the embedded API server answers a request."""
    drawing = Drawing(860, 290, "The way of a request through the embedded API server")
    steps = (
        ("guard", "Host, Origin, size"),
        ("auth", "who asks"),
        ("address", "what is asked"),
        ("rbac", "may they"),
    )
    drawing.text(20, 55, "request", "title")
    for index, (title, note) in enumerate(steps):
        x = 110 + index * 190
        drawing.box(x, 24, 150, 54, title, note)
        drawing.arrow((x - 40 + (10 if index == 0 else 0), 51), (x, 51))
    drawing.box(20, 120, 250, 66, "documents", "/version, /readyz, discovery,", "OpenAPI", style="end")
    drawing.box(
        330,
        120,
        510,
        66,
        "rest.dispatch",
        "create, update, patch, delete, get, list, watch",
        "and subresources",
    )
    drawing.arrow((755, 78), (755, 120))
    drawing.arrow((720, 78), (720, 99), (145, 99), (145, 120))
    drawing.text(20, 245, "a write", "title")
    words = ("decode", "default", "admission", "prepare", "validate", "store")
    for index, word in enumerate(words):
        x = 110 + index * 124
        drawing.box(x, 220, 104, 42, word, style="kept" if word == "store" else "box")
        if index:
            drawing.arrow((x - 20, 241), (x, 241))
    drawing.arrow((400, 186), (400, 203), (162, 203), (162, 220))
    return drawing


DRAWINGS: Final[Mapping[str, Callable[[], Drawing]]] = MappingProxyType(
    {
        "architecture": architecture,
        "flow": flow,
        "scheduling-cycle": scheduling_cycle,
        "columns": columns,
        "queue": queue_places,
        "watch-to-binding": watch_to_binding,
        "api-server-request": api_server_request,
    }
)
"""The drawings, by the names of their files."""


def files() -> Iterable[tuple[Path, str]]:
    """Every file with its content."""
    return [(FOLDER / f"{name}.svg", draw().svg()) for name, draw in DRAWINGS.items()]


def main() -> int:
    """Write the drawings."""
    for path, content in files():
        path.write_text(content, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
