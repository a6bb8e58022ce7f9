"""Requests to the page's server, without a socket."""

from __future__ import annotations

import asyncio
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

import pytest

from moorage.api.decode import InputError
from moorage.http.transport import Request, Response
from moorage.services.responses import document
from moorage.ui.application import Application
from moorage.ui.session import Session
from moorage.ui.static_files import StaticFiles
from tests.ui.serving import TableSource, example_nodes, example_pods, waiting_pod

TOKEN = "right-token"
HOST = {"host": "127.0.0.1:6480"}
ALLOWED = {**HOST, "authorization": f"Bearer {TOKEN}"}
STATIC = Path(str(files("moorage.ui") / "static"))
IMPORT = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*)["']([^"']+)["']""")


async def _refuse(request: Request) -> Response:
    raise InputError("pod.yaml", "no such field")


async def _echo(request: Request) -> Response:
    return document(request.path)


def application() -> Application:
    source = TableSource(example_nodes(2), {**example_pods(2, 1), "default/waiting": waiting_pod(2)})
    return Application(source, Session(6480, TOKEN), {"refused": _refuse, "echo": _echo, "below/": _echo})


def asked(
    path: str, query: str = "", headers: dict[str, str] = ALLOWED, method: str = "GET", body: bytes = b""
) -> Response:
    return asyncio.run(application().handle(Request(method, path, query, headers, body)))


def content(response: Response) -> Any:
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


def test_the_documents() -> None:
    info = content(asked("/api/v1/source"))
    assert (info["kind"], info["live"], info["features"]) == ("cluster", True, ["history", "queue"])
    cluster = content(asked("/api/v1/cluster"))
    assert (cluster["revision"], [*cluster["nodes"]]) == (1, ["node-0", "node-1"])
    assert cluster["pods"]["default/web-1"]["node"] == "node-1"
    history = content(asked("/api/v1/history"))
    assert history["base"]["revision"] == 0
    assert [each["revision"] for each in history["changes"]] == [1]
    [entry] = content(asked("/api/v1/queue"))["items"]
    assert (entry["pod"], entry["place"]) == ("default/waiting", "unschedulable")


@pytest.mark.parametrize(
    ("path", "headers", "method", "body", "status"),
    [
        ("/", HOST, "GET", b"", 200),
        ("/vendor/preact.js", HOST, "GET", b"", 200),
        ("/api/v1/cluster", ALLOWED, "GET", b"", 200),
        ("/api/v1/cluster", HOST, "GET", b"", 401),
        ("/api/v1/nothing", HOST, "GET", b"", 401),
        ("/api/v1/nothing", ALLOWED, "GET", b"", 404),
        ("/api/v1/changes", ALLOWED, "GET", b"", 200),
        ("/nothing", HOST, "GET", b"", 404),
        ("/../application.py", HOST, "GET", b"", 404),
        ("/%2e%2e/application.py", HOST, "GET", b"", 404),
        ("/", HOST, "POST", b"", 405),
        ("/api/v1/refused", ALLOWED, "GET", b"", 422),
        ("/api/v1/echo", ALLOWED, "POST", b"{}", 415),
        ("/api/v1/echo", {**ALLOWED, "content-type": "text/plain"}, "POST", b"{}", 415),
        ("/api/v1/echo", {**ALLOWED, "content-type": "application/json; charset=utf-8"}, "POST", b"{}", 200),
        # A name that somebody pointed to 127.0.0.1, and pages of other sites.
        ("/", {"host": "attacker.example"}, "GET", b"", 403),
        ("/api/v1/cluster", {**ALLOWED, "host": "attacker.example:6480"}, "GET", b"", 403),
        ("/api/v1/cluster", {**ALLOWED, "host": "192.0.2.1"}, "GET", b"", 403),
        ("/api/v1/cluster", {**ALLOWED, "origin": "https://attacker.example"}, "GET", b"", 403),
        ("/api/v1/cluster", {**ALLOWED, "origin": "null"}, "GET", b"", 403),
        ("/api/v1/cluster", {**ALLOWED, "origin": "http://127.0.0.1:6480"}, "GET", b"", 200),
        ("/api/v1/cluster", {key: ALLOWED[key] for key in ("authorization",)}, "GET", b"", 403),
    ],
)
def test_every_answer_has_its_status_and_the_policy(
    path: str, headers: dict[str, str], method: str, body: bytes, status: int
) -> None:
    response = asked(path, headers=headers, method=method, body=body)

    assert response.status == status
    policy = dict(
        each.strip().split(" ", 1) for each in response.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["Cache-Control"] == "no-store"
    assert not any(name.lower().startswith("access-control-") for name in response.headers)


def test_bad_input_is_one_line() -> None:
    assert content(asked("/api/v1/refused")) == {"message": str(InputError("pod.yaml", "no such field"))}


def test_a_route_with_a_slash_has_all_paths_below_it() -> None:
    assert content(asked("/api/v1/below/a/b")) == "/api/v1/below/a/b"
    assert asked("/api/v1/below").status == 404


@pytest.mark.parametrize("since", ["-1", "x", "1.5", "²"])
def test_what_is_no_revision_is_refused(since: str) -> None:
    assert asked("/api/v1/changes", f"since={since}").status == 400


class _Inline(HTMLParser):
    """What a policy without inline scripts and styles refuses, and all that is loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.found += [name for name in given if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.found.append(tag)
        self.links += [str(given[name]) for name in ("src", "href") if name in given]


def test_the_index_has_nothing_inline_and_loads_files_that_exist() -> None:
    parser = _Inline()
    parser.feed((STATIC / "index.html").read_text())

    assert parser.found == []
    assert parser.links != []
    assert [link for link in parser.links if StaticFiles().response(link).status != 200] == []


def test_every_module_that_is_imported_exists() -> None:
    modules = {str(path.relative_to(STATIC)): path.read_text() for path in STATIC.rglob("*.js")}
    own = {name: text for name, text in modules.items() if not name.startswith("vendor/")}
    wanted = {
        normpath(join(dirname(name), target)) for name, text in own.items() for target in IMPORT.findall(text)
    }

    assert len(wanted) > 10
    assert wanted - modules.keys() == set()
    assert own.keys() - wanted == {"main.js"}


def test_own_modules_make_no_markup_of_strings() -> None:
    unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
    for path in STATIC.rglob("*.js"):
        if "vendor" not in path.parts:
            assert not unsafe.search(path.read_text()), path
