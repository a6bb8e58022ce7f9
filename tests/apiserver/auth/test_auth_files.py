from __future__ import annotations

import asyncio
import base64
import os
import ssl
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from moorage.http.certificates import CertificateError, ServerCertificate, load_or_make
from moorage.http.private_files import load_or_make_private, write_private
from moorage_cluster.apiserver.kubeconfig import kubeconfig, write_kubeconfig


@pytest.fixture(autouse=True)
def careless_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def handshake(certificate: ServerCertificate, ca_pem: str, host: str) -> None:
    """A client that trusts one CA meets a server that shows one certificate; in memory."""
    client_context = ssl.create_default_context(cadata=ca_pem)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = certificate.ssl_context().wrap_bio(to_server, to_client, server_side=True)
    done: set[object] = set()
    while len(done) < 2:
        for side in (client, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue


@pytest.mark.parametrize(
    ("host", "extra"),
    [
        ("127.0.0.1", ()),
        ("::1", ()),
        ("localhost", ()),
        ("kubernetes.default.svc", ()),
        ("10.1.2.3", ("10.1.2.3",)),
        ("box.example", ("box.example", "box.example")),
    ],
)
def test_clients_that_know_the_authority_trust_the_server(host: str, extra: tuple[str, ...]) -> None:
    certificate = load_or_make(None, extra)
    handshake(certificate, certificate.ca_pem, host)


def test_other_names_and_other_authorities_are_not_trusted() -> None:
    certificate = load_or_make(None)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(certificate, certificate.ca_pem, "10.1.2.3")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(certificate, load_or_make(None).ca_pem, "localhost")


def test_a_real_connection_is_trusted() -> None:
    certificate = load_or_make(None)

    async def connect() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=certificate.ssl_context())
        async with server:
            port = server.sockets[0].getsockname()[1]
            trusting = ssl.create_default_context(cadata=certificate.ca_pem)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            response = await reader.read()
            writer.close()
            return response

    assert asyncio.run(connect()) == b"hello"


def test_a_directory_keeps_them(tmp_path: Path) -> None:
    directory = tmp_path / "data" / "certificates"
    first = load_or_make(directory)
    assert load_or_make(directory) == first
    assert sorted(file.name for file in directory.iterdir()) == [
        "ca.crt",
        "ca.key",
        "server.crt",
        "server.key",
    ]
    assert mode(directory / "ca.key") == mode(directory / "server.key") == 0o600


@pytest.mark.parametrize(
    ("names", "later", "same_authority", "same_server"),
    [
        ((), timedelta(days=300), True, True),
        ((), timedelta(days=340), True, False),
        ((), timedelta(days=3630), False, False),
        (("box.example",), timedelta(), True, False),
    ],
)
def test_they_are_renewed_when_needed(
    tmp_path: Path, names: tuple[str, ...], later: timedelta, same_authority: bool, same_server: bool
) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    first = load_or_make(tmp_path, now=start)
    second = load_or_make(tmp_path, names, now=start + later)
    assert (first.ca_pem == second.ca_pem) is same_authority
    assert (first.certificate_pem == second.certificate_pem) is same_server
    assert load_or_make(tmp_path, names, now=start + later) == second


def test_a_server_certificate_of_another_authority_is_renewed(tmp_path: Path) -> None:
    first = load_or_make(tmp_path)
    (tmp_path / "ca.crt").unlink()
    second = load_or_make(tmp_path)
    assert second.ca_pem != first.ca_pem
    handshake(second, second.ca_pem, "localhost")


@pytest.mark.parametrize("name", ["ca.crt", "ca.key"])
def test_what_cannot_be_used_is_reported(tmp_path: Path, name: str) -> None:
    load_or_make(tmp_path)
    (tmp_path / name).write_text("nonsense")
    with pytest.raises(CertificateError, match=r"ca\.key cannot be used .* remove both"):
        load_or_make(tmp_path)


def test_a_key_that_is_not_the_certificates_is_reported(tmp_path: Path) -> None:
    load_or_make(tmp_path)
    (tmp_path / "ca.key").write_bytes((tmp_path / "server.key").read_bytes())
    with pytest.raises(CertificateError, match="the key is not the certificate's"):
        load_or_make(tmp_path)


@pytest.mark.parametrize("name", ["", "bücher.example"])
def test_names_that_cannot_be_named(name: str) -> None:
    with pytest.raises(CertificateError, match="cannot be a name"):
        load_or_make(None, [name])


def test_a_kubeconfig_leads_to_the_server(tmp_path: Path) -> None:
    ca = load_or_make(None).ca_pem
    path = tmp_path / "a" / "b" / "config"
    write_kubeconfig(path, "https://127.0.0.1:6443", "secret", ca)
    assert mode(path) == 0o600
    content = yaml.safe_load(path.read_text())
    assert content["current-context"] == "moorage"
    assert content["contexts"] == [{"name": "moorage", "context": {"cluster": "moorage", "user": "moorage"}}]
    [cluster] = content["clusters"]
    assert cluster["cluster"]["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode() == ca
    assert content["users"] == [{"name": "moorage", "user": {"token": "secret"}}]


def test_plain_http_needs_no_authority() -> None:
    [cluster] = yaml.safe_load(kubeconfig("http://127.0.0.1:80", "t", None))["clusters"]
    assert cluster["cluster"] == {"server": "http://127.0.0.1:80"}


def test_a_file_is_replaced_at_once_and_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    path.chmod(0o644)
    link = tmp_path / "link"
    link.symlink_to(path)
    with path.open() as still_open:
        write_private(link, b"new")
        assert still_open.read() == "old"
    assert (path.read_bytes(), mode(path), link.is_symlink()) == (b"new", 0o600, True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config", "link"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    with pytest.raises(IsADirectoryError):
        write_kubeconfig(tmp_path / "config", "https://x", "t", None)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        write_kubeconfig(tmp_path / "file" / "config", "https://x", "t", None)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config", "file"]


def test_secrets_are_made_once(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "signing.key"
    assert load_or_make_private(path, lambda: b"one") == b"one"
    assert load_or_make_private(path, lambda: b"two") == b"one"
    assert mode(path) == 0o600
