"""Structured log lines: how values are written, and what a verbosity lets through."""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from moorage import klog
from moorage.klog import Logger, ObjectRef, quoted
from tests.logs import restored, without_heads, written

log = Logger("moorage.test_klog")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    with restored():
        yield


class Unprintable:
    """Must not be formatted."""

    def __str__(self) -> str:
        raise AssertionError("formatted in vain")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("value", "text", "in_json"),
    [
        pytest.param("plain", '"plain"', "plain", id="string"),
        pytest.param('say "hi"\\', r'"say \"hi\"\\"', 'say "hi"\\', id="quotes"),
        pytest.param("tab\tbell\a nul\x00 é\u200b", r'"tab\tbell\a nul\x00 é\u200b"', None, id="escapes"),
        pytest.param("\U000e0001", r'"\U000e0001"', None, id="a rare character"),
        pytest.param(7, "7", 7, id="number"),
        pytest.param(0.5, "0.5", 0.5, id="fraction"),
        pytest.param(True, "true", True, id="switch"),
        pytest.param(None, "null", None, id="nothing"),
        pytest.param(
            ObjectRef("web-1", "default"),
            '"default/web-1"',
            {"name": "web-1", "namespace": "default"},
            id="object",
        ),
        pytest.param(ObjectRef("node-1"), '"node-1"', {"name": "node-1"}, id="object without namespace"),
        pytest.param(ValueError("no good"), '"no good"', "no good", id="error"),
        pytest.param(TimeoutError(), '"TimeoutError"', "TimeoutError", id="error without text"),
        pytest.param({"b", "a"}, '{"a":{},"b":{}}', {"a": {}, "b": {}}, id="set"),
        pytest.param([1, "<a&b>"], '[1,"\\u003ca\\u0026b\\u003e"]', [1, "<a&b>"], id="list"),
        pytest.param({"Resource": "Node"}, '{"Resource":"Node"}', {"Resource": "Node"}, id="mapping"),
    ],
)
def test_values(value: object, text: str, in_json: object) -> None:
    with written(0) as stream:
        log.info(0, "Said", key=value)
    assert without_heads(stream.getvalue()) == [f'I "Said" key={text}']
    with written(0, "json") as stream:
        log.info(0, "Said", key=value)
    logged = json.loads(stream.getvalue())["key"]
    assert logged == (value if in_json is None and isinstance(value, str) else in_json)


def test_a_value_of_several_lines() -> None:
    with written(0) as stream:
        log.info(0, "Using component config", config="a: 1\nb: 2\n", more=1)
    logged = without_heads(stream.getvalue())
    assert logged == ['I "Using component config" config=<', "\ta: 1", "\tb: 2", " > more=1"]


def test_an_error_in_text_and_json() -> None:
    with written(0) as stream:
        log.error(ValueError("bad"), "Plugin failed", logger="Bind", plugin="A")
    assert without_heads(stream.getvalue()) == ['E "Plugin failed" err="bad" plugin="A"']
    with written(4) as stream:
        log.error(ValueError("bad"), "Plugin failed", logger="Bind", plugin="A")
    assert without_heads(stream.getvalue()) == ['E "Plugin failed" err="bad" logger="Bind" plugin="A"']
    with written(4, "json") as stream:
        log.error(ValueError("bad"), "Plugin failed", logger="Bind", plugin="A")
    line = json.loads(stream.getvalue())
    assert [*line] == ["ts", "logger", "caller", "msg", "plugin", "err"]
    assert line["caller"].startswith("tests/test_klog.py:")


def test_an_error_that_should_not_have_occurred_says_where() -> None:
    def fails() -> None:
        raise ValueError("bad")

    for format in ("text", "json"):
        with written(0, format) as stream:
            try:
                fails()
            except ValueError as error:
                log.exception(error, "Background task failed")
        logged = stream.getvalue()
        assert "Background task failed" in logged
        assert "in fails" in logged


def test_the_head_of_a_line_names_the_caller() -> None:
    with written(0) as stream:
        log.info(0, "Here")
        log.infof(0, 'FLAG: --v="0" 100%')
    first, second = stream.getvalue().splitlines()
    assert " test_klog.py:" in first
    assert second.endswith('] FLAG: --v="0" 100%')


@pytest.mark.parametrize("verbosity", range(12))
def test_each_verbosity_lets_through_what_is_not_above_it(verbosity: int) -> None:
    with written(verbosity, "json") as stream:
        for level in range(11):
            log.info(level, "Line")
    logged = [json.loads(line)["v"] for line in stream.getvalue().splitlines()]
    assert logged == list(range(min(verbosity, 10) + 1))


@pytest.mark.parametrize(
    ("level", "verbosity"),
    [(logging.ERROR, 0), (logging.INFO, 0), (logging.INFO - 1, 1), (logging.DEBUG, 4), (1, 10)],
)
def test_levels_of_the_standard_library(level: int, verbosity: int) -> None:
    assert klog.verbosity_of(level) == verbosity


def test_what_plugins_log_follows_the_verbosity() -> None:
    plugin = logging.getLogger("moorage.berth")
    for verbosity, logged in ((3, ["I info"]), (4, ["I info", "I debug 1"])):
        with written(verbosity) as stream:
            plugin.info("info")
            plugin.debug("debug %d", 1)
        assert without_heads(stream.getvalue()) == logged


def test_verbosity_by_file() -> None:
    other = Logger("moorage.elsewhere")
    with written(1) as stream:
        klog.set_verbosity(1, [("test_kl*", 5), ("*where", 2)])
        assert (log.v, other.v, Logger("moorage.later").v) == (5, 2, 1)
        log.info(5, "Here")
        other.info(5, "There")
        other.info(2, "There, too")
    assert without_heads(stream.getvalue()) == ['I "Here"', 'I "There, too"']


def test_what_is_off_is_not_formatted() -> None:
    with written(4) as stream:
        log.info(5, "Line", value=Unprintable())
    assert stream.getvalue() == ""
    log.info(0, "Line", value=Unprintable())  # No handler wants it.


def test_other_formatters_see_keys_and_values(caplog: pytest.LogCaptureFixture) -> None:
    log.warning("Slow", plugin="A")
    assert caplog.messages == ['"Slow" plugin="A"']


def test_quoted_is_one_line() -> None:
    values: dict[str, Any] = {"a\nb": '"a\\nb"', "": '""', "ü": '"ü"'}
    assert {text: quoted(text) for text in values} == values


def test_a_logger_goes_with_its_module() -> None:
    short_lived = Logger("moorage.test_klog_plugin")
    klog.set_verbosity(5)
    assert short_lived.v == 5
    gone = weakref.ref(short_lived)
    del short_lived
    assert gone() is None
