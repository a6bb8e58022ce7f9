"""A plugin as an extender: questions as kube-scheduler's Go types encode them, and the answers to them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import BindPod, Effect
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import Status, pending, unresolvable, unschedulable
from moorage.framework.runtime.framework import Framework
from moorage.http.transport import Request, Response
from moorage.plugins import default_registry
from moorage.scheduler.extender_server import ExtenderServer, Guarded
from tests.builders import make_node, make_pod, make_profile

DATA = Path(__file__).parent / "data"
POD = (DATA / "pod.json").read_text().strip()


def node(name: str, color: str) -> str:
    """A node as Go encodes it."""
    return (DATA / "node.json").read_text().strip().replace("NAME", name).replace("COLOR", color)


BLUE, RED, GREY = node("b", "blue"), node("r", "red"), node("g", "grey")
BY_NAME = f'{{"Pod":{POD},"Nodes":null,"NodeNames":["b","r","g"]}}'
WHOLE = f'{{"Pod":{POD},"Nodes":{{"metadata":{{}},"items":[{BLUE},{RED},{GREY}]}},"NodeNames":null}}'


class Colours:
    """Lets pods run on blue nodes; of the others, red ones may become blue."""

    name = "Colours"

    def __init__(self) -> None:
        self.refusal: Status | set[str] | None = None

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | set[str] | None:
        return self.refusal

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Status | None:
        colour = node.labels.get("color")
        if colour == "blue":
            return None
        return unschedulable("is red", "not blue") if colour == "red" else unresolvable(f"is {colour}")


class Grades:
    """Scores nodes by their labels."""

    name = "Grades"

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        return {"blue": 100, "red": 44, "grey": 45}[node.labels["color"]]


class Alone:
    """Lets pods run where nobody else is."""

    name = "Alone"

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> str | None:
        return "somebody is there" if node.pods else None


class Broken:
    """Fails at everything."""

    name = "Broken"

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> None:
        raise KeyError("oops")

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        raise KeyError("oops")


CLUSTER = [make_node("b", labels={"color": "blue"}), make_node("r", labels={"color": "red"})]


def framework_of(plugin: Any) -> Framework:
    """A profile with a plugin as `moorage extender` makes it: nobody else looks at nodes, or binds before."""
    registry = default_registry()
    registry.register(plugin.name, lambda: plugin)
    return Framework(make_profile(plugin.name), registry)


def server(plugin: Any, *objects: Any, **more: Any) -> ExtenderServer:
    """An extender; with objects, one that follows a cluster in which they are."""
    return ExtenderServer(framework_of(plugin), plugin.name, Cache(objects) if objects else None, **more)


def answer(made: ExtenderServer, path: str, question: str, method: str = "POST") -> Response:
    return asyncio.run(made.handle(Request(method, path, body=question.encode())))


def result(made: ExtenderServer, path: str, question: str) -> Any:
    response = answer(made, path, question)
    assert (response.status, response.content_type) == (200, "application/json"), response.body
    assert isinstance(response.body, bytes)
    return msgspec.json.decode(response.body)


def test_nodes_that_come_whole_go_back_whole() -> None:
    assert result(server(Colours()), "/filter", WHOLE) == {
        "Nodes": {"metadata": {}, "items": [msgspec.json.decode(BLUE)]},
        "NodeNames": None,
        "FailedNodes": {"r": "is red, not blue"},
        "FailedAndUnresolvableNodes": {"g": "is grey"},
        "Error": "",
    }


def test_nodes_that_are_followed_are_known_by_name() -> None:
    assert result(server(Colours(), *CLUSTER), "/filter", BY_NAME) == {
        "Nodes": None,
        "NodeNames": ["b"],
        "FailedNodes": {"r": "is red, not blue", "g": "node(s) unknown to the extender"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_what_is_followed_counts_also_where_nodes_come_whole() -> None:
    occupied = server(Alone(), *CLUSTER, make_pod("x", uid="x", on="b"))
    assert result(occupied, "/filter", WHOLE)["FailedNodes"]["b"] == "somebody is there"
    assert "b" not in result(server(Alone()), "/filter", WHOLE)["FailedNodes"]


def test_names_in_any_case() -> None:
    question = f'{{"pod":{POD},"nodenames":["b","r"]}}'
    assert result(server(Colours(), *CLUSTER), "/filter", question)["NodeNames"] == ["b"]


REFUSED: dict[str, tuple[Any, str, dict[str, str]]] = {
    "for now": (unschedulable("closed"), "FailedNodes", {"b": "closed", "r": "closed", "g": "closed"}),
    "for good": (
        unresolvable("gone"),
        "FailedAndUnresolvableNodes",
        {"b": "gone", "r": "gone", "g": "gone"},
    ),
    "until later": (pending("wait"), "FailedNodes", {}),
    "but one": (
        {"r"},
        "FailedAndUnresolvableNodes",
        dict.fromkeys("bg", "node(s) didn't satisfy plugin(s) [Colours]"),
    ),
}


@pytest.mark.parametrize(("refusal", "where", "expected"), REFUSED.values(), ids=REFUSED)
def test_pods_that_are_refused_before_nodes_are_looked_at(
    refusal: Any, where: str, expected: dict[str, str]
) -> None:
    plugin = Colours()
    plugin.refusal = refusal
    answered = result(server(plugin), "/filter", WHOLE)
    if isinstance(refusal, Status) and refusal.code.value == "Pending":
        assert answered["Error"] == 'running PreFilter plugin "Colours": wait'
        return
    assert answered[where] == expected
    assert answered["Nodes"] == {"metadata": {}, "items": []}


def test_scores_from_0_to_100_become_scores_from_0_to_10() -> None:
    expected = [{"Host": "b", "Score": 10}, {"Host": "r", "Score": 4}, {"Host": "g", "Score": 5}]
    assert result(server(Grades()), "/prioritize", WHOLE) == expected
    unknown = [{"Host": "b", "Score": 10}, {"Host": "r", "Score": 4}, {"Host": "g", "Score": 0}]
    assert result(server(Grades(), *CLUSTER), "/prioritize", BY_NAME) == unknown


def preemption(form: str) -> str:
    victims: dict[str, Any] = {
        "NodeNameToMetaVictims": {
            "b": {"Pods": [{"UID": "x"}], "NumPDBViolations": 1},
            "r": {"Pods": [{"UID": "z"}], "NumPDBViolations": 0},
        },
        "NodeNameToVictims": {
            "b": {"Pods": [{"metadata": {"name": "x", "uid": "x"}}], "NumPDBViolations": 1},
            "r": {"Pods": [{"metadata": {"name": "z", "uid": "z"}}], "NumPDBViolations": 0},
        },
    }
    question = {"Pod": msgspec.Raw(POD.encode()), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
    return msgspec.json.encode({**question, form: victims[form]}).decode()


FORMS = ("NodeNameToMetaVictims", "NodeNameToVictims")


@pytest.mark.parametrize("form", FORMS)
def test_victims_are_passed_on_where_nothing_is_known(form: str) -> None:
    assert result(server(Alone()), "/preempt", preemption(form)) == {
        "NodeNameToMetaVictims": {
            "b": {"Pods": [{"UID": "x"}], "NumPDBViolations": 1},
            "r": {"Pods": [{"UID": "z"}], "NumPDBViolations": 0},
        }
    }


@pytest.mark.parametrize("form", FORMS)
def test_nodes_where_evicting_would_not_help_are_taken_out(form: str) -> None:
    occupied = [make_pod(name, uid=name, on=where) for name, where in (("x", "b"), ("y", "r"), ("z", "r"))]
    answered = result(server(Alone(), *CLUSTER, *occupied), "/preempt", preemption(form))
    assert answered == {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "x"}], "NumPDBViolations": 1}}}


class _Written:
    def __init__(self) -> None:
        self.effects: list[Effect] = []

    async def perform(self, effect: Effect) -> None:
        self.effects.append(effect)


class Binds:
    """Binds pods, but not to one node."""

    name = "Binds"

    async def bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        if node_name == "r":
            return unschedulable("not there")
        await self.written.perform(BindPod(pod, node_name))
        return None

    def __init__(self) -> None:
        self.written = _Written()


def test_bindings() -> None:
    plugin, pod = Binds(), make_pod("p", uid="u")
    offering = server(plugin, *CLUSTER, find_pod=lambda namespace, name: pod if name == "p" else None)

    def bound(name: str, uid: str, node_name: str) -> Any:
        question = {"PodName": name, "PodNamespace": "default", "PodUID": uid, "Node": node_name}
        return result(offering, "/bind", msgspec.json.encode(question).decode())["Error"]

    assert bound("p", "u", "b") == ""
    assert plugin.written.effects == [BindPod(pod, "b")]
    assert bound("p", "u", "r") == "not there"
    assert bound("p", "another", "b") == bound("p", "x", "r") == 'pod "default/p" is not known'
    assert bound("q", "u", "b") == 'pod "default/q" is not known'
    assert len(plugin.written.effects) == 1


OFFERED = {
    "a filter": (server(Colours()), ["filter", "preempt"]),
    "scores": (server(Grades()), ["prioritize"]),
    "both": (server(Broken()), ["filter", "preempt", "prioritize"]),
    "a binder that knows no pods": (server(Binds()), []),
    "a binder": (server(Binds(), *CLUSTER, find_pod=lambda namespace, name: None), ["bind"]),
}


@pytest.mark.parametrize(("made", "verbs"), OFFERED.values(), ids=OFFERED)
def test_what_the_plugin_does_not_do_is_not_offered(made: ExtenderServer, verbs: list[str]) -> None:
    assert made.verbs == verbs
    for verb in ("filter", "prioritize", "preempt", "bind"):
        assert (answer(made, f"/{verb}", "{").status == 404) is (verb not in verbs)


BAD: dict[str, tuple[str, str, str, int, str]] = {
    "no JSON": ("POST", "/filter", "<", 400, "invalid character '<' looking for beginning of value\n"),
    "no pod": ("POST", "/filter", "{}", 400, "the request has no Pod\n"),
    "another method": ("GET", "/filter", "", 405, "ask with POST\n"),
    "a pod that is none": (
        "POST",
        "/prioritize",
        '{"Pod":{"spec":5},"NodeNames":[]}',
        400,
        "node names were sent",
    ),
    "nowhere": ("POST", "/x", "", 404, "404 page not found; there is /filter, /prioritize, /preempt\n"),
    "a plugin that fails at scores": ("POST", "/prioritize", WHOLE, 500, "running Score plugins: plugin "),
    "a probe": ("GET", "/healthz", "", 200, "ok"),
}


@pytest.mark.parametrize(("method", "path", "body", "status", "text"), BAD.values(), ids=BAD)
def test_questions_that_have_no_answer(method: str, path: str, body: str, status: int, text: str) -> None:
    response = answer(server(Broken()), path, body, method)
    assert isinstance(response.body, bytes)
    assert (response.status, response.body.decode()[: len(text)]) == (status, text)


CALLERS: dict[str, tuple[dict[str, str], int]] = {
    "a program": ({"host": "127.0.0.1:8888"}, 200),
    "a program that knows the name": ({"host": "localhost:8888"}, 200),
    "a program that knows the certificate": ({"host": "colours.example"}, 200),
    "a program that knows the domain": ({"host": "a.colours.example:8888"}, 200),
    "a program on another host": ({"host": "[2001:db8::1]:8888"}, 200),
    "a name that was made to point here": ({"host": "attacker.example:8888"}, 403),
    "a name below such a name": ({"host": "a.b.colours.example"}, 403),
    "no name": ({}, 403),
    "a page": ({"host": "127.0.0.1:8888", "origin": "https://attacker.example"}, 403),
    "a page of this host": ({"host": "127.0.0.1:8888", "origin": "http://127.0.0.1:8888"}, 403),
    "a page without a name": ({"host": "localhost", "origin": "null"}, 403),
}


@pytest.mark.parametrize(("headers", "status"), CALLERS.values(), ids=CALLERS)
def test_pages_and_rebound_names_are_refused(headers: dict[str, str], status: int) -> None:
    guarded = Guarded(server(Colours()), ["colours.example", "*.colours.example"])
    response = asyncio.run(guarded.handle(Request("POST", "/filter", headers=headers, body=WHOLE.encode())))
    assert response.status == status


def test_failures_at_filtering_are_reported_in_the_answer() -> None:
    error = result(server(Broken()), "/filter", WHOLE)["Error"]
    assert error.startswith("running \"Broken\" filter plugin: KeyError: 'oops'")
    without_nodes = result(server(Colours()), "/filter", BY_NAME)
    assert without_nodes["Error"].startswith(
        "node names were sent, and this extender does not know the nodes"
    )
