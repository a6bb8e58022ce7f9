"""Requests to other servers: what is sent, credentials, limits and failures."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from moorage import WebService, WebServiceError
from moorage.http.certificates import load_or_make
from tests.http.sockets import CHUNKED, Asked, Behaviour, SocketServer, Writer, answer, chunk, serving


async def _good(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(answer(b"[1]"))


def test_what_is_read(tmp_path: Path) -> None:
    token = tmp_path / "token"

    async def scenario() -> None:
        async with serving(_good) as server:
            service = WebService(f"{server.url}/base/?tenant=a", token_file=str(token))
            for text in ("one", "two\n"):
                token.write_text(text)
                assert await service.get("/values", {"at": "a b&c"}) == [1]
        line = "GET /base/values?tenant=a&at=a+b%26c HTTP/1.1"
        assert [each.line for each in server.asked] == [line] * 2
        assert [each.header("authorization") for each in server.asked] == [["Bearer one"], ["Bearer two"]]

    asyncio.run(scenario())


def test_what_is_posted() -> None:
    async def scenario() -> None:
        async with serving(_good) as server:
            assert await WebService(f"{server.url}/base/?a=b").post({"x": 1}) == [1]
            assert await WebService(server.url).post({"x": 1}) == [1]
            assert await WebService(f"{server.url}/base/").post({"x": 1}, "/nodes") == [1]
        lines = [each.line.removesuffix(" HTTP/1.1") for each in server.asked]
        assert lines == ["POST /base/?a=b", "POST /", "POST /base/nodes"]
        assert [each.header("content-type") for each in server.asked] == [["application/json"]] * 3

    asyncio.run(scenario())


@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_answer_may_be_as_large_as_allowed_and_no_larger(is_chunked: bool) -> None:
    async def body(server: SocketServer, asked: Asked, writer: Writer) -> None:
        size = int(asked.line.partition("size=")[2].partition(" ")[0])
        whole = CHUNKED + chunk(b"1" * 10) + chunk(b"1" * (size - 10)) + chunk(b"")
        writer.write(whole if is_chunked else answer(b"1" * size))

    async def scenario() -> None:
        async with serving(body) as server:
            service = WebService(server.url, max_answer_bytes=18)
            assert await service.get("/", {"size": "18"}) == 111_111_111_111_111_111
            with pytest.raises(WebServiceError, match=r"^the answer is larger than 18 bytes$"):
                await service.get("/", {"size": "19"})

    asyncio.run(scenario())


async def _silent(server: SocketServer, asked: Asked, writer: Writer) -> None:
    await server.released.wait()


def _answering(data: bytes) -> Behaviour:
    async def behave(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(data)

    return behave


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        pytest.param(_answering(answer(b"no entry", "403 Forbidden")), "status 403: 'no entry'", id="status"),
        pytest.param(_answering(answer(b"", "302 Found", location="/")), "status 302", id="redirection"),
        pytest.param(_answering(answer(b"<html>")), "the answer is not JSON: '<html>'", id="no JSON"),
        pytest.param(_answering(answer(b"")), "the answer is not JSON", id="nothing"),
        pytest.param(_answering(answer(b"[" * 100_000)), "the answer is not JSON: '[[[", id="deep JSON"),
        pytest.param(_answering(b"hello\r\n\r\n"), "the server does not speak HTTP", id="no HTTP"),
        pytest.param(_silent, "no answer within 0.05s", id="timeout"),
    ],
)
def test_what_is_no_answer(behaviour: Behaviour, reason: str) -> None:
    async def scenario() -> None:
        async with serving(behaviour) as server:
            seconds = 0.05 if behaviour is _silent else 60.0
            with pytest.raises(WebServiceError) as caught:
                await WebService(server.url, timeout_seconds=seconds).get("/a")
        assert str(caught.value).startswith(reason)

    asyncio.run(scenario())


def test_a_server_that_is_not_there() -> None:
    async def scenario() -> None:
        async with serving(_good) as server:
            url = server.url
        with pytest.raises(WebServiceError, match="cannot be reached"):
            await WebService(url).post({})

    asyncio.run(scenario())


def test_a_server_is_trusted_by_its_authority_only(tmp_path: Path) -> None:
    certificate, other = load_or_make(None), load_or_make(None)
    trusted, wrong, empty = (tmp_path / name for name in ("ca", "wrong", "empty"))
    trusted.write_text(certificate.ca_pem)
    wrong.write_text(other.ca_pem)
    empty.write_text("nothing")

    async def scenario() -> None:
        async with serving(_good, certificate.ssl_context()) as server:
            assert await WebService(server.url, ca_file=str(trusted)).post({}) == [1]
            for file, reason in (
                (wrong, "its certificate is not trusted"),
                (empty, "the certificate authority is not a PEM certificate"),
                (tmp_path / "none", "none: No such file or directory"),
            ):
                with pytest.raises(WebServiceError, match=reason):
                    await WebService(server.url, ca_file=str(file)).get()

    asyncio.run(scenario())


def test_a_token_that_is_not_there_or_no_token_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\r\ntwo")

    async def scenario() -> None:
        async with serving(_good) as server:
            for file, reason in (("none", "No such file"), ("lines", "a line break in a header")):
                with pytest.raises(WebServiceError, match=reason):
                    await WebService(server.url, token_file=str(tmp_path / file)).get("/")
            assert server.asked == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "url",
    ["", "prometheus:9090", "ftp://a", "http://", "https://a#b", "http://a:b/", "http://a:0/", "http://[a"],
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="is not a URL such as https://"):
        WebService(url)


def test_an_authority_without_tls_is_refused() -> None:
    with pytest.raises(ValueError, match="of no use for a URL with http"):
        WebService("http://nodes.example", ca_file="ca.pem")
