"""One extender over HTTP: what it is asked, what its answers come to, and how it fails."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.as_sent import NodeAsSent, PodAsSent, keep
from moorage.api.decode import InputError, convert
from moorage.clock import Clock, LoopClock, VirtualClock
from moorage.config.load import parse_config
from moorage.framework.extenders.extenders import ChosenVictims, ExtenderError, Filtered, NodeVictims
from moorage.http.errors import AnswerLost, ConnectionFailed
from moorage.http.server import HttpServer, listen
from moorage.http.transport import Request, Response
from moorage.services.extender_client import HttpExtender, http_extenders
from tests import builders
from tests.builders import make_node, make_pod
from tests.extenders.extender_responses import URL, Service, configuration_with, keeping, scoring
from tests.services.authorities import Authority

POD = make_pod("p", uid="u")
NODES = [make_node("a"), make_node("b")]
ALL_VERBS = {
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "preemptVerb": "preempt",
    "bindVerb": "bind",
    "weight": 1,
}


def configured(url: str = URL, **fields: Any) -> Any:
    entry = {"urlPrefix": url, **ALL_VERBS, **fields}
    return parse_config(configuration_with({"extenders": [entry]}), "test").extenders[0]


def made(service: Service, clock: Clock | None = None, url: str = URL, **fields: Any) -> HttpExtender:
    return HttpExtender(configured(url, **fields), clock or VirtualClock(), service.connect)


def asked(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def complaint(work: Callable[[], Coroutine[Any, Any, Any]]) -> str:
    """What is said when something fails."""
    with pytest.raises(ExtenderError) as caught:
        asyncio.run(work())
    return str(caught.value)


def test_names_are_sent_to_cache_capable_extenders_and_whole_nodes_to_others() -> None:
    service = Service(filter=keeping("a"))
    passed = Filtered(["a"], {"b": "not wanted"})
    assert asked(made(service, nodeCacheCapable=True).filter(POD, NODES)) == passed
    assert asked(made(service).filter(POD, NODES)) == passed
    by_name, whole = service.questions("filter")
    assert (by_name["Nodes"], by_name["NodeNames"]) == (None, ["a", "b"])
    assert whole["NodeNames"] is None
    assert [node["metadata"]["name"] for node in whole["Nodes"]["items"]] == ["a", "b"]
    assert service.asked[0].url == f"{URL}/filter"


def test_pods_and_nodes_are_sent_as_the_api_server_sent_them() -> None:
    def as_sent(kind: Any, manifest: Any) -> Any:
        return keep(convert(manifest, kind), msgspec.json.encode(manifest))

    pod, node = builders.pod("p"), builders.node("a")
    pod["spec"]["unheardOf"] = node["status"]["unheardOf"] = {"deep": [1, None]}
    pod["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    service = Service(filter=keeping("a"))
    asked(made(service).filter(as_sent(PodAsSent, pod), [as_sent(NodeAsSent, node)]))
    (question,) = service.questions("filter")
    del pod["metadata"]["managedFields"]
    assert question["Pod"] == pod
    assert question["Nodes"]["items"] == [node]


def test_a_pod_that_is_on_its_way_to_a_node_is_sent_with_the_node() -> None:
    manifest = builders.pod("v")
    waiting = keep(convert(manifest, PodAsSent), msgspec.json.encode(manifest))
    bound = msgspec.structs.replace(waiting, spec=msgspec.structs.replace(waiting.spec, node_name="a"))
    service = Service(preempt=lambda question: {})
    asked(made(service).preempt(POD, {"a": NodeVictims((bound,), 0)}))
    (question,) = service.questions("preempt")
    expected = {**manifest, "spec": {**manifest["spec"], "nodeName": "a"}}
    assert question["NodeNameToVictims"] == {"a": {"Pods": [expected], "NumPDBViolations": 0}}


PASSED = {
    "names count where names were asked for": ({"NodeNames": ["a"], "Nodes": {"items": []}}, True, ["a"]),
    "nodes count where there are no names": (
        {"Nodes": {"items": [{"metadata": {"name": "b"}}]}},
        True,
        ["b"],
    ),
    "names do not count where nodes were asked for": ({"NodeNames": ["a"]}, False, []),
    "neither": ({}, True, []),
}


@pytest.mark.parametrize(("answer", "by_name", "passed"), PASSED.values(), ids=PASSED)
def test_which_form_of_an_answer_counts(answer: Any, by_name: bool, passed: list[str]) -> None:
    extender = made(Service(filter=lambda question: answer), nodeCacheCapable=by_name)
    assert list(asked(extender.filter(POD, NODES)).passed) == passed


def test_of_two_reasons_the_worse_counts() -> None:
    answer = {"FailedNodes": {"a": "x", "b": "y"}, "FailedAndUnresolvableNodes": {"a": "z"}}
    extender = made(Service(filter=lambda question: answer))
    assert asked(extender.filter(POD, NODES)) == Filtered([], {"b": "y"}, {"a": "z"})


def test_scores_victims_and_bindings() -> None:
    service = Service(
        prioritize=scoring(a=3, b=10),
        preempt=lambda question: {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "v"}]}}},
        bind=lambda question: {},
    )
    extender = made(service, nodeCacheCapable=True)
    victim = make_pod("v", uid="v")
    assert asked(extender.prioritize(POD, NODES)) == [("a", 3), ("b", 10)]
    assert asked(extender.preempt(POD, {"a": NodeVictims((victim,), 2)})) == {"a": ChosenVictims(("v",), 0)}
    asked(extender.bind(POD, "a"))
    meta = {"a": {"Pods": [{"UID": "v"}], "NumPDBViolations": 2}}
    assert service.questions("preempt")[0]["NodeNameToMetaVictims"] == meta
    assert service.questions("bind") == [
        {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
    ]


INTEREST = {
    "a request": ({"requests": {"example.com/gpu": "1"}}, "containers", True),
    "a limit": ({"limits": {"example.com/gpu": "1"}}, "containers", True),
    "of an init container": ({"requests": {"example.com/gpu": "1"}}, "initContainers", True),
    "another resource": ({"requests": {"example.com/other": "1", "cpu": "1"}}, "containers", False),
    "none": ({}, "containers", False),
}


@pytest.mark.parametrize(("resources", "where", "is_interested"), INTEREST.values(), ids=INTEREST)
def test_an_extender_that_manages_resources_is_asked_only_about_pods_that_want_one(
    resources: Any, where: str, is_interested: bool
) -> None:
    manifest = builders.pod("p")
    manifest["spec"][where] = [{"name": "main", "resources": resources}]
    pod = convert(manifest, type(POD))
    managing = made(Service(), managedResources=[{"name": "example.com/gpu"}])
    assert managing.is_interested(pod) is is_interested
    assert made(Service()).is_interested(pod)


FAILURES: dict[str, tuple[Any, str]] = {
    "a refusal in the answer": ({"Error": "the extender is confused"}, "the extender is confused"),
    "another status": (Response(500, b"oops"), f"failed filter with extender at URL {URL}/filter, code 500"),
    "a redirection": (Response(301, b""), f"failed filter with extender at URL {URL}/filter, code 301"),
    "no JSON": (b"<html>", "invalid character '<' looking for beginning of value"),
    "a broken connection": (AnswerLost("the connection broke"), f'Post "{URL}/filter": EOF'),
    "another failure": (ConnectionFailed("no way"), f'Post "{URL}/filter": no way'),
}


@pytest.mark.parametrize(("answer", "message"), FAILURES.values(), ids=FAILURES)
def test_failures(answer: Any, message: str) -> None:
    extender = made(Service(filter=lambda question: answer))
    assert complaint(lambda: extender.filter(POD, NODES)) == message


def test_a_binding_that_is_refused() -> None:
    extender = made(Service(bind=lambda question: {"Error": "no"}))
    assert complaint(lambda: extender.bind(POD, "a")) == "no"


UNREACHABLE = {
    "ftp://x": 'Post "ftp://x/filter": unsupported protocol scheme "ftp"',
    "x/y": 'Post "x/y/filter": unsupported protocol scheme ""',
    "http:///y/": 'Post "http:///y/filter": http: no Host in request URL',
}


@pytest.mark.parametrize(("url", "message"), UNREACHABLE.items(), ids=UNREACHABLE)
def test_addresses_that_are_none_fail_when_they_are_asked(url: str, message: str) -> None:
    extender = made(Service(), url=url)
    assert complaint(lambda: extender.filter(POD, NODES)) == message


def test_an_extender_that_does_not_listen() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        extender = HttpExtender(configured(f"http://{address}/x/"), LoopClock())
        message = f'Post "http://{address}/x/filter": dial tcp {address}: connect: connection refused'
        assert complaint(lambda: extender.filter(POD, NODES)) == message


@pytest.mark.parametrize(("fields", "seconds"), [({}, 5.0), ({"httpTimeout": "300ms"}, 0.3)])
def test_an_answer_that_does_not_come_in_time(fields: dict[str, Any], seconds: float) -> None:
    async def scenario() -> str:
        clock = VirtualClock()
        service = Service(filter=keeping())
        service.may_answer.clear()
        asking = asyncio.ensure_future(made(service, clock, **fields).filter(POD, NODES))
        while not service.asked:
            await asyncio.sleep(0)
        clock.advance(seconds - 0.01)
        await asyncio.sleep(0)
        assert not asking.done()
        clock.advance(0.01)
        with pytest.raises(ExtenderError) as caught:
            await asking
        return str(caught.value)

    late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert asyncio.run(scenario()) == f'Post "{URL}/filter": {late}'


# TLS


AUTHORITY = Authority("extenders")
STRANGER = Authority("somebody else")


class _Answering:
    async def handle(self, request: Request) -> Response:
        return Response(200, b'{"NodeNames":["a"]}')


@contextmanager
def secure_extender(folder: Path) -> Iterator[str]:
    """An extender with a certificate of the authority, in a thread of its own."""
    pem = folder / "server.pem"
    pem.write_text(AUTHORITY.server("extender.example"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    ready = threading.Event()
    stop: list[Callable[[], object]] = []

    with listen("127.0.0.1", 0) as listener:

        async def serve() -> None:
            server = HttpServer(_Answering(), context)
            loop = asyncio.get_running_loop()
            stop.append(lambda: loop.call_soon_threadsafe(server.stop))
            ready.set()
            await server.serve(listener)

        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        ready.wait()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop[0]()
            thread.join()


def test_trusted_authorities(tmp_path: Path) -> None:
    trusted, foreign = tmp_path / "ca", tmp_path / "other"
    trusted.write_text(AUTHORITY.pem)
    foreign.write_text(STRANGER.pem)
    named = {"serverName": "extender.example"}

    def outcome(**fields: Any) -> str:
        async def ask() -> list[str]:
            extender = HttpExtender(configured(url, nodeCacheCapable=True, **fields), LoopClock())
            try:
                return list((await extender.filter(POD, NODES)).passed)
            finally:
                await extender.close()

        try:
            return str(asyncio.run(ask()))
        except ExtenderError as error:
            return "not trusted" if "certificate" in str(error) else str(error)

    with secure_extender(tmp_path) as url:
        good = str(["a"])
        assert outcome(tlsConfig={"caFile": str(trusted), **named}) == good
        assert outcome(enableHTTPS=True, tlsConfig={"caFile": str(trusted), **named}) == good
        assert outcome(tlsConfig={"caFile": str(foreign), **named}) == "not trusted"
        assert outcome(tlsConfig={"caFile": str(trusted)}) == "not trusted"  # It is called otherwise.
        assert outcome(tlsConfig=named) == "not trusted"  # The machine does not know the authority.
        assert outcome() == "not trusted"
        assert outcome(tlsConfig={"insecure": True}) == good
        assert outcome(enableHTTPS=True) == good  # Without an authority, kube-scheduler trusts everybody.
        assert outcome(enableHTTPS=True, tlsConfig={"caFile": str(foreign)}) == "not trusted"


WRONG_TLS: dict[str, tuple[dict[str, Any], str]] = {
    "trusting all and one": (
        {"insecure": True, "caData": "eA=="},
        "extenders[0].tlsConfig: specifying a root certificates file with the insecure flag is not allowed",
    ),
    "no such file": (
        {"caFile": "/nowhere/ca"},
        "extenders[0].tlsConfig.caFile: /nowhere/ca: No such file or directory",
    ),
    "no certificate": (
        {"caData": "eA=="},
        "extenders[0].tlsConfig: the certificate authority is not a PEM certificate",
    ),
    "no pair": (
        {"certData": "eA==", "keyData": "eA=="},
        "extenders[0].tlsConfig: the client certificate and its key do not make a pair",
    ),
}


@pytest.mark.parametrize(("settings", "message"), WRONG_TLS.values(), ids=WRONG_TLS)
def test_tls_settings_that_cannot_be_used_are_complained_of_at_the_start(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        http_extenders([configured("https://x", tlsConfig=settings)], VirtualClock())
    assert str(caught.value) == message
