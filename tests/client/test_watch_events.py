"""Decoding of watch events, in any formatting and any chunks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.client.watch_events import EventLines, PlainDecoder, is_newer, read_event
from moorage.http.errors import ConnectionFailed, RequestError

OBJECT = b'{"kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"7"}}'
NESTED_METADATA = (
    b'{"metadata":{"name":"p","annotations":{"a":"\\",\\"object\\":{}}","object":"b"}},"object":{}}'
)
NAMELESS = b'{"kind":"Pod"}'

DECODER: PlainDecoder[Any] = PlainDecoder(msgspec.json.decode)

LINES = {
    "as servers write it": (b'{"type":"ADDED","object":' + OBJECT + b"}", "ADDED", OBJECT),
    "deleted": (b'{"type":"DELETED","object":' + OBJECT + b"}", "DELETED", OBJECT),
    "with spaces": (b'{ "type": "MODIFIED", "object": ' + OBJECT + b"}", "MODIFIED", OBJECT),
    "with a space at its end": (b'{"type":"ADDED","object":' + OBJECT + b"} ", "ADDED", OBJECT),
    "the object first": (b'{"object":' + OBJECT + b',"type":"ADDED"}', "ADDED", OBJECT),
    "with more behind the object": (b'{"type":"ADDED","object":' + OBJECT + b',"more":{}}', "ADDED", OBJECT),
    "an object that has an object": (
        b'{"type":"ADDED","object":' + NESTED_METADATA + b"}",
        "ADDED",
        NESTED_METADATA,
    ),
    "of a type that nobody knows": (b'{"type":"MOVED","object":' + OBJECT + b"}", "MOVED", OBJECT),
    "an object without metadata": (b'{"type":"ADDED","object":' + NAMELESS + b"}", "ADDED", NAMELESS),
}


@pytest.mark.parametrize("case", LINES)
def test_an_event_is_its_type_and_its_object(case: str) -> None:
    line, type, raw = LINES[case]
    assert list(EventLines(DECODER).read(line + b"\n")) == [read_event(DECODER, type, raw)]


@pytest.mark.parametrize("case", LINES)
def test_events_may_come_in_any_pieces(case: str) -> None:
    line, type, raw = LINES[case]
    lines = EventLines(DECODER)
    pieces = [bytes([each]) for each in line + b"\n\n" + line + b"\n"]
    assert [event for piece in pieces for event in lines.read(piece)] == 2 * [read_event(DECODER, type, raw)]
    lines.check_end()


def test_the_metadata_of_an_object_is_read() -> None:
    [event] = EventLines(DECODER).read(LINES["as servers write it"][0] + b"\n")
    assert event.head is not None
    meta = event.head.metadata
    assert (meta.name, meta.namespace, meta.uid, meta.resource_version) == ("p", "n", "u", "7")


BROKEN = {
    "an object that is not whole": b'{"type":"ADDED","object":{"metadata":{"name":"p"}',
    "an object that is none": b'{"type":"ADDED","object":}',
    "no event": b'{"kind":"Status"}',
    "no JSON": b"<html>",
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_event_ends_the_watch(case: str) -> None:
    with pytest.raises(ConnectionFailed, match="cannot decode a watch event"):
        list(EventLines(DECODER).read(BROKEN[case] + b"\n"))


def test_an_error_says_why_the_watch_ends() -> None:
    status = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}'
    with pytest.raises(RequestError, match="too old") as raised:
        list(EventLines(DECODER).read(b'{"type":"ERROR","object":' + status + b"}\n"))
    assert raised.value.is_expired


VERSIONS = {
    "a later number": ("10", "9", True),
    "the same number": ("9", "9", False),
    "an earlier number": ("9", "10", False),
    "the first one": ("9", "", True),
    "another word": ("b", "a", True),
    "the same word": ("a", "a", False),
    "a number after a word": ("1", "a", True),
}


@pytest.mark.parametrize("case", VERSIONS)
def test_versions_are_compared_as_numbers_where_they_are(case: str) -> None:
    version, than, expected = VERSIONS[case]
    assert is_newer(version, than) is expected
