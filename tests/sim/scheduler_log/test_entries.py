"""Entries of logs: klog's two formats, files of container runtimes, and entries that are cut off."""

from __future__ import annotations

import pytest

from moorage.klog import Logger, ObjectRef
from moorage.sim.scheduler_log.entries import Entry, EntryReader
from tests.logs import LogFormat, written

HEAD = "I1117 13:59:07.141838   30344 schedule_one.go:123] "
VALUES = {
    "text": 'a "quoted" text = with signs',
    "empty": "",
    "lines": "one\n\ttwo\n\nthree",
    "ended": "one line\n",
    "number": 3,
}


def read(text: str, *messages: str) -> tuple[list[Entry], int]:
    reader = EntryReader(messages or ("Said",))
    return list(reader.read(text.splitlines(keepends=True))), reader.cut_count


@pytest.mark.parametrize("format", ["text", "json"])
def test_what_klog_writes_is_read(format: LogFormat) -> None:
    with written(10, format) as stream:
        log = Logger("moorage.tests")
        log.info(10, "Said", pod=ObjectRef("web-1", "shop"), node=ObjectRef("n1"), **VALUES)
        log.info(10, "Not wanted", lines="a\nb")
        log.error("it is broken", "Said", pod=ObjectRef("web-2", "shop"))
        log.infof(10, "unstructured text")
    [first, second], cut_count = read(stream.getvalue())
    shown = {key: first.values[key].rstrip("\n") for key in VALUES}
    assert shown == {key: str(value).rstrip("\n") for key, value in VALUES.items()}
    assert (first.values["pod"], first.values["node"]) == ("shop/web-1", "n1")
    assert (second.values["pod"], second.values["err"]) == ("shop/web-2", "it is broken")
    assert cut_count == 0


def test_keys_with_spaces_and_values_without_quotes_are_read() -> None:
    text = f'{HEAD}"Said" pod="a/b" unschedulable plugins={{"NodeResourcesFit":{{}}}} hint=0 score=-1 last=\n'
    [entry], _ = read(text)
    assert entry.values["score"] == "-1"
    assert entry.values["unschedulable plugins"] == '{"NodeResourcesFit":{}}'
    assert entry.values["last"] == ""


def test_a_value_of_several_lines_may_be_followed_by_others() -> None:
    [entry], _ = read(f'{HEAD}"Said" body=<\n\tone\n\ttwo\n > pod="a/b" more=<\n\tthree\n >\n')
    assert entry.values == {"body": "one\ntwo", "pod": "a/b", "more": "three"}


def test_files_of_container_runtimes_are_read() -> None:
    stamp = "2026-11-17T13:59:07.141838123Z stderr"
    text = f'{stamp} F {HEAD}"Other"\n{stamp} P {HEAD}"Said" pod="a\n{stamp} F /b"\n{stamp} F \tnothing\n'
    [entry], cut_count = read(text)
    assert (entry.values, cut_count) == ({"pod": "a/b"}, 0)


CUT = {
    "within the message": f'{HEAD}"Sai',
    "within a value": f'{HEAD}"Said" pod="a/b\n',
    "after a key": f'{HEAD}"Said" pod\n',
    "at the end of a file, in a number": f'{HEAD}"Said" score=1',
    "within several lines": f'{HEAD}"Said" body=<\n\tone\n',
    "within several lines, by a new beginning": f'{HEAD}"Said" body=<\n\tone\n{HEAD}"Other"\n',
    "JSON within the message": '{"ts":1,"msg":"Sai',
    "JSON within a value": '{"ts":1,"msg":"Said","pod":{"name":"b","namespa',
    "JSON, continued by other text": '{"ts":1,"msg":"Said","pod":{"name":"b"}{"ts":2}\n',
    "a divided line": f'2026-11-17T13:59:07Z stderr P {HEAD}"Said" pod="a\n',
}


@pytest.mark.parametrize("text", CUT.values(), ids=CUT.keys())
def test_entries_that_are_cut_off_are_counted_and_left_out(text: str) -> None:
    assert read(text) == ([], 1)


def test_an_entry_after_one_that_is_cut_off_is_read() -> None:
    text = f'{HEAD}"Said" body=<\n\tone\n{HEAD}"Said" pod="a/b"\n'
    assert read(text) == ([Entry("Said", {"pod": "a/b"})], 1)


def test_lines_of_other_programs_are_left_out() -> None:
    assert read('\nnot a log\n{"level":"info"}\n[]\n\tindented\n >\n') == ([], 0)
