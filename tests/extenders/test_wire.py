"""The wire format of extenders, from the scheduler's side: what is sent, and how answers are read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.framework.extenders.extenders import ChosenVictims
from moorage.services import extender_client_messages as wire
from moorage.services.go_json import GoJsonError

POD = b'{"metadata":{"name":"p","uid":"u"},"spec":{"x":1}}'
NODE = b'{"metadata":{"name":"n"},"status":{"zz":true}}'

SENT = {
    "filter or prioritize, by name": (
        wire.extender_args(POD, None, ["n", "m"]),
        '{"Pod":{"metadata":{"name":"p","uid":"u"},"spec":{"x":1}},"Nodes":null,"NodeNames":["n","m"]}',
    ),
    "filter or prioritize, whole nodes": (
        wire.extender_args(POD, [NODE], None),
        '{"Pod":{"metadata":{"name":"p","uid":"u"},"spec":{"x":1}},'
        '"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n"},"status":{"zz":true}}]},"NodeNames":null}',
    ),
    "preempt, by uid": (
        wire.preemption_args(POD, None, {"n": ChosenVictims(("v", "w"), 1)}),
        '{"Pod":{"metadata":{"name":"p","uid":"u"},"spec":{"x":1}},"NodeNameToVictims":null,'
        '"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"v"},{"UID":"w"}],"NumPDBViolations":1}}}',
    ),
    "preempt, whole pods": (
        wire.preemption_args(POD, {"n": wire.WholeVictims([POD], 0)}, None),
        '{"Pod":{"metadata":{"name":"p","uid":"u"},"spec":{"x":1}},'
        '"NodeNameToVictims":{"n":{"Pods":[{"metadata":{"name":"p","uid":"u"},"spec":{"x":1}}],'
        '"NumPDBViolations":0}},"NodeNameToMetaVictims":null}',
    ),
    "bind": (
        wire.binding_args("p", "default", "u", "n"),
        '{"PodName":"p","PodNamespace":"default","PodUID":"u","Node":"n"}',
    ),
}


@pytest.mark.parametrize(("sent", "expected"), SENT.values(), ids=SENT)
def test_what_is_sent(sent: bytes, expected: str) -> None:
    assert sent.decode() == expected


def result(**fields: Any) -> wire.ExtenderFilterResult:
    empty: dict[str, Any] = {"nodes": None, "node_names": None, "failed": {}, "unresolvable": {}, "error": ""}
    return wire.ExtenderFilterResult(**{**empty, **fields})


FILTERED = {
    "as Go writes it": (
        '{"Nodes":null,"NodeNames":["a"],"FailedNodes":{"b":"full"},'
        '"FailedAndUnresolvableNodes":{"c":"never"},"Error":""}',
        result(node_names=["a"], failed={"b": "full"}, unresolvable={"c": "never"}),
    ),
    "in any case": (
        '{"nodenames":["a"],"failednodes":{"b":"full"},"ERROR":"e","failedAndUnresolvableNodes":{"c":"d"}}',
        result(node_names=["a"], failed={"b": "full"}, unresolvable={"c": "d"}, error="e"),
    ),
    "whole nodes": (
        '{"nodes":{"items":[{"metadata":{"name":"a","labels":{}},"spec":{}},{"metadata":{"name":"b"}}]}}',
        result(nodes=["a", "b"]),
    ),
    "whole nodes in any case": ('{"Nodes":{"Items":[{"Metadata":{"Name":"a"}}]}}', result(nodes=["a"])),
    "a node without a name": ('{"Nodes":{"items":[{}]}}', result(nodes=[""])),
    "no nodes": ('{"Nodes":{"items":null},"NodeNames":[]}', result(nodes=[], node_names=[])),
    "nulls": ('{"FailedNodes":null,"NodeNames":null,"Error":null}', result()),
    "nothing": ("null", result()),
    "more than is known": ('{"Extra":[1,{"a":2}],"NodeNames":["a"]}', result(node_names=["a"])),
    "more after it": ('{"NodeNames":["a"]}\n{"NodeNames":["b"]}', result(node_names=["a"])),
    "a null among texts": (
        '{"NodeNames":["a",null],"FailedNodes":{"b":null}}',
        result(node_names=["a", ""], failed={"b": ""}),
    ),
}


@pytest.mark.parametrize(("raw", "expected"), FILTERED.values(), ids=FILTERED)
def test_filter_results(raw: str, expected: wire.ExtenderFilterResult) -> None:
    assert wire.read_filter_result(raw.encode()) == expected


FIELD = "json: cannot unmarshal {} into Go struct field ExtenderFilterResult.{} of type {}"
UNREADABLE = {
    "": "EOF",
    "<html>": "invalid character '<' looking for beginning of value",
    "[]": "json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult",
    '{"NodeNames":"a"}': FIELD.format("string", "NodeNames", "[]string"),
    '{"FailedNodes":["a"]}': FIELD.format("array", "FailedNodes", "v1.FailedNodesMap"),
    '{"Error":5}': FIELD.format("number 5", "Error", "string"),
    '{"error":true}': FIELD.format("bool", "Error", "string"),
    '{"Nodes":[]}': FIELD.format("array", "Nodes", "v1.NodeList"),
}


@pytest.mark.parametrize(("raw", "message"), UNREADABLE.items(), ids=range(len(UNREADABLE)))
def test_what_cannot_be_read_is_complained_of_in_go_s_words(raw: str, message: str) -> None:
    with pytest.raises(GoJsonError) as caught:
        wire.read_filter_result(raw.encode())
    assert str(caught.value) == message


def test_half_a_text_cannot_be_read() -> None:
    with pytest.raises(GoJsonError):
        wire.read_filter_result(b'{"NodeNames":["a"')


def test_priorities() -> None:
    raw = b'[{"Host":"a","Score":7},{"host":"b","score":-1},{"Host":"c"},null]'
    assert wire.read_priorities(raw) == [("a", 7), ("b", -1), ("c", 0), ("", 0)]
    assert wire.read_priorities(b"null") == []


BAD_PRIORITIES = {
    "{}": "json: cannot unmarshal object into Go value of type v1.HostPriorityList",
    '[{"Host":"a","Score":1.5}]': (
        "json: cannot unmarshal number 1.5 into Go struct field HostPriority.Score of type int64"
    ),
    '[{"Host":"a","Score":9223372036854775808}]': (
        "json: cannot unmarshal number 9223372036854775808 into Go struct field HostPriority.Score "
        "of type int64"
    ),
    '[{"Host":"a","Score":"5"}]': (
        "json: cannot unmarshal string into Go struct field HostPriority.Score of type int64"
    ),
}


@pytest.mark.parametrize(("raw", "message"), BAD_PRIORITIES.items(), ids=range(len(BAD_PRIORITIES)))
def test_priorities_that_are_none(raw: str, message: str) -> None:
    with pytest.raises(GoJsonError) as caught:
        wire.read_priorities(raw.encode())
    assert str(caught.value) == message


def test_victims() -> None:
    raw = msgspec.json.encode(
        {
            "nodeNameToMetaVictims": {
                "n": {"pods": [{"uid": "v"}, {"UID": "w"}, None], "numPDBViolations": 2},
                "m": {"Pods": None},
                "o": None,
            }
        }
    )
    assert wire.read_preemption_result(raw) == {
        "n": ChosenVictims(("v", "w"), 2),
        "m": ChosenVictims((), 0),
        "o": ChosenVictims((), 0),
    }


def test_bindings() -> None:
    assert wire.read_binding_result(b'{"error":"no"}') == "no"
    assert wire.read_binding_result(b"{}") == ""
