"""TLS of the scheduler's own server: the certificate for each name, and accepted parameters."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import tempfile
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from moorage.http.certificates import load_or_make
from moorage.http.server import ServingError, listen
from moorage.services.server_tls import NamedCertificate, ServerTls, TlsOptions, named_certificate
from moorage.services.tls_names import openssl_ciphers
from tests.services.authorities import Authority, trusting_all

AUTHORITY = Authority("an authority")


def written(folder: Path, file: str, *names: str) -> Path:
    path = folder / file
    path.write_text(AUTHORITY.server(*names))
    return path


def handshake(tls: ServerTls, client: ssl.SSLContext, name: str | None) -> tuple[str, str]:
    """The name in the certificate that is shown, and the version of TLS that is spoken."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = tls.context.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(4):
        for side in (theirs, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    encoded = theirs.getpeercert(binary_form=True)
    assert encoded is not None
    shown = x509.load_der_x509_certificate(encoded).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(shown[0].value), str(theirs.version())


SHOWN = {
    None: "default.example",
    "other.example": "default.example",
    "a.example": "a.example",
    "x.b.example": "b.example",
    "y.x.b.example": "default.example",
    "named.example": "c.example",
    "c.example": "default.example",
    "both.example": "d.example",
}


def test_the_certificate_for_the_name_that_is_asked_for(tmp_path: Path) -> None:
    default = written(tmp_path, "default", "default.example")
    by_name = [
        NamedCertificate(path, path, patterns)
        for path, patterns in (
            (written(tmp_path, "a", "a.example", "both.example"), ()),
            (written(tmp_path, "b", "b.example", "*.b.example"), ()),
            (written(tmp_path, "c", "c.example"), ("named.example",)),
            (written(tmp_path, "d", "d.example"), ("both.example",)),
        )
    ]
    tls = ServerTls(TlsOptions(default, default, by_name=by_name), "127.0.0.1")
    client = trusting_all(tmp_path)
    assert {name: handshake(tls, client, name)[0] for name in SHOWN} == SHOWN


def test_a_certificate_whose_file_changes_is_shown_as_it_is_now(tmp_path: Path) -> None:
    path = written(tmp_path, "one", "before.example")
    tls = ServerTls(TlsOptions(path, path), "127.0.0.1")
    client = trusting_all(tmp_path)
    assert handshake(tls, client, None)[0] == "before.example"
    written(tmp_path, "one", "after.example")
    assert handshake(tls, client, None)[0] == "after.example"
    path.write_text("nonsense")
    assert handshake(tls, client, None)[0] == "after.example"
    path.unlink()
    assert handshake(tls, client, None)[0] == "after.example"


def test_a_handshake_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = ServerTls(TlsOptions(), "127.0.0.1")
    tls.trust([AUTHORITY.pem])
    client = trusting_all(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    assert handshake(tls, client, "any.example")[1] == "TLSv1.3"


def test_a_certificate_that_is_made_is_kept_where_it_is_to_be_kept(tmp_path: Path) -> None:
    options = TlsOptions(directory=tmp_path / "certificates")
    ServerTls(options, "127.0.0.1")
    kept = {path.name: path.read_text() for path in (tmp_path / "certificates").iterdir()}
    assert kept.keys() == {"kube-scheduler.crt", "kube-scheduler.key"}
    assert (tmp_path / "certificates" / "kube-scheduler.key").stat().st_mode & 0o077 == 0
    ServerTls(options, "127.0.0.1")
    assert {path.name: path.read_text() for path in (tmp_path / "certificates").iterdir()} == kept
    (tmp_path / "certificates" / "kube-scheduler.key").unlink()
    with pytest.raises(ServingError, match=r"kube-scheduler\.crt exists without its counterpart"):
        ServerTls(options, "127.0.0.1")


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ServingError, match="cannot be written"):
        ServerTls(TlsOptions(directory=file / "below"), "127.0.0.1")


def test_the_oldest_version_that_is_supported(tmp_path: Path) -> None:
    old = trusting_all(tmp_path)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert handshake(ServerTls(TlsOptions(), "127.0.0.1"), old, None)[1] == "TLSv1.2"
    strict = ServerTls(TlsOptions(min_version="VersionTLS13"), "127.0.0.1")
    with pytest.raises(ssl.SSLError):
        handshake(strict, old, None)
    assert handshake(strict, trusting_all(tmp_path), None)[1] == "TLSv1.3"


@pytest.mark.parametrize(
    "context",
    [load_or_make(None).ssl_context(), ServerTls(TlsOptions(), "127.0.0.1").context],
    ids=["API", "own"],
)
def test_weak_ciphers_are_not_offered(context: ssl.SSLContext) -> None:
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    offered = {each["name"] for each in context.get_ciphers()}
    assert all(name.startswith(("TLS_", "ECDHE-")) for name in offered), offered
    assert all("GCM" in name or "CHACHA20" in name for name in offered), offered
    assert "ECDHE-ECDSA-AES128-GCM-SHA256" in offered


def test_cipher_suites_go_by_their_standard_names() -> None:
    names = (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_AES_128_GCM_SHA256",
        "TLS_RSA_WITH_AES_256_CBC_SHA",
    )
    assert openssl_ciphers(names) == "ECDHE-RSA-AES128-GCM-SHA256:AES256-SHA"
    suites = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305")
    tls = ServerTls(TlsOptions(cipher_suites=suites), "127.0.0.1")
    offered = {cipher["name"] for cipher in tls.context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert offered == {"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"}


def test_what_a_flag_says_of_a_certificate() -> None:
    assert named_certificate("a.crt,a.key") == NamedCertificate(Path("a.crt"), Path("a.key"))
    both = named_certificate("a.crt,a.key:*.x.example,x.example")
    assert both.patterns == ("*.x.example", "x.example")


def test_a_port_is_shared_by_servers_that_agree_to_it() -> None:
    first = listen("127.0.0.1", 0, shares_port=True)
    port = first.getsockname()[1]
    listen("127.0.0.1", port, shares_port=True).close()
    with pytest.raises(ServingError, match="address already in use"):
        listen("127.0.0.1", port)
    first.close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is only one kind of address")
@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])
def test_everywhere_is_on_both_kinds_of_addresses(everywhere: str) -> None:
    async def run() -> None:
        listener = listen(everywhere, 0)
        server = await asyncio.start_server(lambda reader, writer: writer.close(), sock=listener)
        for address in ("127.0.0.1", "::1"):
            _, writer = await asyncio.open_connection(address, listener.getsockname()[1])
            writer.close()
            await writer.wait_closed()
        server.close()
        await server.wait_closed()

    asyncio.run(run())
