"""The server's address and credentials from kubeconfig files and pods."""

from __future__ import annotations

import asyncio
import json
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.client import credentials
from moorage.client.authenticated import AuthenticatedTransport
from moorage.client.connect import connected
from moorage.client.credentials import Access, find_access, from_kubeconfig, in_cluster
from moorage.client.exec_credentials import ExecCredentials
from moorage.client.kinds import NODE
from moorage.clock import VirtualClock
from moorage.http.client_transport import HttpTransport
from moorage.http.errors import ConnectionFailed, KubeconfigError, NoAccess, RequestError
from moorage.http.transport import Request
from tests.client.pki import Authority, data
from tests.http.sockets import Asked, SocketServer, Writer, answer, proxying, serving

LIST = b'{"kind":"NodeList","items":[]}'


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("right")


def written(folder: Path, cluster: Mapping[str, Any], user: Mapping[str, Any], name: str = "config") -> Path:
    content = {
        "clusters": [{"name": "c", "cluster": dict(cluster)}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return path


async def _good(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(answer(LIST))


def _asked_as(folder: Path, user: Mapping[str, Any], *, over_http: bool = True) -> Asked:
    """What a server gets to see of a user."""

    async def run() -> Asked:
        async with serving(_good) as server:
            path = written(folder, {"server": server.url}, user)
            access = from_kubeconfig([path], credentials_over_http=over_http)
            async with connected(access) as client:
                await client.list(NODE)
            return server.asked[-1]

    return asyncio.run(run())


# -- what cannot be

GOOD = {"server": "http://127.0.0.1:1"}
WRONG: dict[str, tuple[Any, str]] = {
    "not YAML": ("a: [", "is not YAML: line 2: "),
    "a list": ("[]", "is not a kubeconfig"),
    "nothing": ("", "has no current context"),
    "no such context": ({"current-context": "y"}, "has no context 'y'"),
    "no such cluster": (
        {"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c"}}]},
        "names cluster 'c', which does not exist",
    ),
    "no such user": (
        {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": GOOD}],
        },
        "names user 'u', which does not exist",
    ),
    "clusters that have no names": ({"clusters": [{"cluster": GOOD}]}, "clusters is not a list of named"),
    "clusters that are no list": ({"clusters": 5}, "clusters is not a list of named"),
}


@pytest.mark.parametrize(("content", "message"), WRONG.values(), ids=WRONG)
def test_a_file_that_makes_no_sense_is_reported_in_a_line(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    with pytest.raises(KubeconfigError) as caught:
        from_kubeconfig([path])
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


UNUSABLE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no server": ({}, {}, "'' is not the address of a server"),
    "a strange server": ({"server": "ftp://x"}, {}, "'ftp://x' is not the address"),
    "a strange port": ({"server": "https://x:y"}, {}, "is not the address"),
    "no CA file": ({"server": "https://x", "certificate-authority": "no"}, {}, "no: no such file"),
    "CA data that is not base64": (
        {"server": "https://x", "certificate-authority-data": "%"},
        {},
        "certificate-authority-data is not base64",
    ),
    "CA data that is no certificate": (
        {"server": "https://x", "certificate-authority-data": data(b"no")},
        {},
        "is not a PEM certificate",
    ),
    "a certificate without key": (
        {"server": "https://x"},
        {"client-certificate-data": data(b"x")},
        "must be set together",
    ),
    "no token file": ({"server": "https://x"}, {"tokenFile": "no"}, "no: no such file"),
    "a token in two lines": ({"server": "https://x"}, {"token": "a\nb"}, "contains invalid characters"),
    "a proxy of another kind": ({**GOOD, "proxy-url": "socks5://x"}, {}, "only http:// proxies"),
}


@pytest.mark.parametrize(("cluster", "user", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_used_is_reported_in_a_line(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    with pytest.raises(KubeconfigError) as caught:
        from_kubeconfig([written(tmp_path, cluster, user)])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"there is no kubeconfig at .*nowhere"):
        find_access(tmp_path / "nowhere")


# -- which server


def test_of_several_files_the_first_that_says_something_counts(tmp_path: Path) -> None:
    first = written(tmp_path, {"server": "http://first:1"}, {}, "first")
    second = written(tmp_path, {"server": "http://second:2"}, {}, "second")
    names = f"{tmp_path / 'missing'}:{first}:{second}"
    assert find_access(environ={"KUBECONFIG": names}).endpoint.url == "http://first:1"


def test_without_a_word_the_home_directory_is_looked_in(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube", {"server": "http://home:1"}, {})
    assert find_access(environ={"HOME": str(tmp_path)}).endpoint.url == "http://home:1"


def test_another_context_can_be_named(tmp_path: Path) -> None:
    content = {
        "clusters": [{"name": n, "cluster": {"server": f"http://{n}:1"}} for n in ("a", "b")],
        "contexts": [{"name": n, "context": {"cluster": n}} for n in ("a", "b")],
        "current-context": "a",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(content))
    assert from_kubeconfig([tmp_path / "config"]).endpoint.url == "http://a:1"
    assert from_kubeconfig([tmp_path / "config"], "b").endpoint.url == "http://b:1"


def test_master_overrides_the_address_and_keeps_the_credentials(tmp_path: Path) -> None:
    path = written(tmp_path, {"server": "http://a:1"}, {"token": "t"})
    access = find_access(path, "https://b:2")
    assert (access.endpoint.url, access.credentials.headers) == (
        "https://b:2",
        {"authorization": "Bearer t"},
    )
    assert find_access(master="b:3").endpoint.url == "http://b:3"


# -- credentials

USERS: dict[str, tuple[dict[str, Any], dict[str, list[str]]]] = {
    "nobody": ({}, {"authorization": []}),
    "a token": ({"token": "t"}, {"authorization": ["Bearer t"]}),
    "a name and a password": (
        {"username": "me", "password": "secret"},
        {"authorization": ["Basic bWU6c2VjcmV0"]},
    ),
    "somebody else": (
        {
            "token": "t",
            "as": "jane",
            "as-uid": "7",
            "as-groups": ["a", "b"],
            "as-user-extra": {"Reason/x": ["why"]},
        },
        {
            "authorization": ["Bearer t"],
            "impersonate-user": ["jane"],
            "impersonate-uid": ["7"],
            "impersonate-group": ["a", "b"],
            "impersonate-extra-reason%2fx": ["why"],
        },
    ),
    "an OpenID token": (
        {
            "auth-provider": {
                "name": "oidc",
                "config": {"id-token": f"e30.{urlsafe_b64encode(b'{}').decode()}.x"},
            }
        },
        {"authorization": ["Bearer e30.e30=.x"]},
    ),
}


@pytest.mark.parametrize(("user", "headers"), USERS.values(), ids=USERS)
def test_users_say_who_they_are(tmp_path: Path, user: dict[str, Any], headers: dict[str, list[str]]) -> None:
    asked = _asked_as(tmp_path, user)
    assert {name: asked.header(name) for name in headers} == headers


SECRETS: dict[str, dict[str, Any]] = {
    "a token": {"token": "t"},
    "a token file": {"tokenFile": "token"},
    "a password": {"username": "me", "password": "secret"},
    "an exec plugin": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}},
    "a provider": {"auth-provider": {"name": "oidc", "config": {"id-token": "e30.e30=.x"}}},
}


@pytest.mark.parametrize("user", SECRETS.values(), ids=SECRETS)
def test_credentials_are_not_sent_without_tls(
    tmp_path: Path, user: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text("t")
    credentials._warn_of_plain_http.cache_clear()  # Ports are used again.
    asked = _asked_as(tmp_path, user, over_http=False)
    assert asked.header("authorization") == []
    assert caplog.text.count('"Credentials are not sent to a server without TLS" server="http:') == 1


def test_a_redirect_does_not_take_a_token_to_another_server(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(_good) as other:

            async def redirect(server: SocketServer, asked: Asked, writer: Writer) -> None:
                writer.write(answer(b"", "307 Temporary Redirect", location=f"{other.url}/api/v1/nodes"))

            async with serving(redirect) as server:
                path = written(tmp_path, {"server": server.url}, {"token": "t"})
                async with connected(from_kubeconfig([path], credentials_over_http=True)) as client:
                    with pytest.raises(RequestError) as caught:
                        await client.list(NODE)
            assert caught.value.code == 307
            assert (len(server.asked), other.asked) == (1, [])

    asyncio.run(run())


def test_a_proxy_sees_no_token(tmp_path: Path, authority: Authority) -> None:
    tls = authority.server_context(tmp_path, "127.0.0.1")

    async def run() -> None:
        async with proxying() as (address, asked), serving(_good, tls) as server:
            cluster = {
                "server": server.url,
                "proxy-url": f"http://{address}",
                "certificate-authority-data": data(authority.pem),
            }
            async with connected(from_kubeconfig([written(tmp_path, cluster, {"token": "t"})])) as client:
                await client.list(NODE)
            assert server.asked[0].header("authorization") == ["Bearer t"]
            [connect] = asked
            assert connect.header("authorization") == []

    asyncio.run(run())


def test_a_token_file_is_named_relative_to_the_kubeconfig_and_read_again_as_it_rotates(
    tmp_path: Path,
) -> None:
    (tmp_path / "token").write_text("first\n")

    async def run() -> None:
        clock = VirtualClock()
        async with serving(_good) as server:
            path = written(tmp_path, {"server": server.url}, {"tokenFile": "token"})
            async with connected(from_kubeconfig([path], clock=clock, credentials_over_http=True)) as client:
                await client.list(NODE)
                (tmp_path / "token").write_text("second")
                await client.list(NODE)
                clock.advance(61)
                await client.list(NODE)
                (tmp_path / "token").unlink()
                clock.advance(61)
                await client.list(NODE)
        seen = [asked.header("authorization")[0] for asked in server.asked]
        assert seen == ["Bearer first", "Bearer first", "Bearer second", "Bearer second"]

    asyncio.run(run())


def test_a_token_that_is_refused_is_read_again_at_once(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")

    async def behaviour(server: SocketServer, asked: Asked, writer: Writer) -> None:
        good = asked.header("authorization") == ["Bearer new"]
        writer.write(answer(LIST) if good else answer(b"{}", "401 Unauthorized"))

    async def run() -> None:
        async with serving(behaviour) as server:
            path = written(tmp_path, {"server": server.url}, {"tokenFile": "token"})
            async with connected(from_kubeconfig([path], credentials_over_http=True)) as client:
                with pytest.raises(RequestError) as caught:
                    await client.list(NODE)
                assert caught.value.code == 401
                (tmp_path / "token").write_text("new")
                await client.list(NODE)

    asyncio.run(run())


# -- in a pod


def test_a_pod_finds_its_cluster_and_follows_its_token(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "token").write_text("first")

    async def run() -> None:
        clock = VirtualClock()
        async with serving(_good, authority.server_context(tmp_path, "127.0.0.1")) as server:
            port = server.url.rpartition(":")[2]
            environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
            access = find_access(environ=environ, mount=tmp_path, clock=clock)
            async with connected(access) as client:
                await client.list(NODE)
                (tmp_path / "token").write_text("second")
                clock.advance(61)
                await client.list(NODE)
        seen = [asked.header("authorization")[0] for asked in server.asked]
        assert seen == ["Bearer first", "Bearer second"]

    asyncio.run(run())


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
NOT_IN_A_POD: dict[str, tuple[dict[str, str], list[str], str]] = {
    "no environment": ({}, ["ca.crt", "token"], "not in a pod"),
    "no authority": (POD, ["token"], "ca.crt: no such file"),
    "no token": (POD, ["ca.crt"], "token: no such file"),
}


@pytest.mark.parametrize(("environ", "files", "message"), NOT_IN_A_POD.values(), ids=NOT_IN_A_POD)
def test_what_a_pod_lacks_is_reported(
    tmp_path: Path, authority: Authority, environ: dict[str, str], files: list[str], message: str
) -> None:
    for name in files:
        (tmp_path / name).write_bytes(authority.pem)
    with pytest.raises(KubeconfigError, match=message):
        in_cluster(tmp_path, environ)


def test_a_pod_of_an_ipv6_cluster(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "token").write_text("t")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert in_cluster(tmp_path, environ).endpoint.url == "https://[fd00::1]:443"


def test_the_environment_may_say_where_the_account_is(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "token").write_text("t")
    environ = {**POD, "MOORAGE_SERVICE_ACCOUNT_DIR": str(tmp_path)}
    assert find_access(environ=environ).endpoint.url == "https://10.0.0.1:443"


# -- TLS


def _listed(access: Access) -> None:
    async def run() -> None:
        async with connected(access) as client:
            await client.list(NODE)

    asyncio.run(run())


def _listed_over_tls(
    tls: ssl.SSLContext, folder: Path, cluster: Mapping[str, Any], user: Mapping[str, Any]
) -> SocketServer:
    async def run() -> SocketServer:
        async with serving(_good, tls) as server:
            access = from_kubeconfig([written(folder, {"server": server.url, **cluster}, user)])
            async with connected(access) as client:
                await client.list(NODE)
            return server

    return asyncio.run(run())


def test_the_server_must_be_signed_by_the_right_authority(tmp_path: Path, authority: Authority) -> None:
    tls = authority.server_context(tmp_path, "127.0.0.1")
    _listed_over_tls(tls, tmp_path, {"certificate-authority-data": data(authority.pem)}, {})
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    _listed_over_tls(tls, tmp_path, {"certificate-authority": "ca.pem"}, {})
    _listed_over_tls(tls, tmp_path, {"insecure-skip-tls-verify": True}, {})
    wrong = {"certificate-authority-data": data(Authority("wrong").pem)}
    with pytest.raises(NoAccess, match="its certificate is not trusted"):
        _listed_over_tls(tls, tmp_path, wrong, {})


def test_the_server_must_have_the_right_name(tmp_path: Path, authority: Authority) -> None:
    tls = authority.server_context(tmp_path, "kubernetes.example")
    cluster = {"certificate-authority-data": data(authority.pem)}
    with pytest.raises(NoAccess, match="its certificate is not trusted: IP address mismatch"):
        _listed_over_tls(tls, tmp_path, cluster, {})
    _listed_over_tls(tls, tmp_path, {**cluster, "tls-server-name": "kubernetes.example"}, {})


def test_a_client_certificate_is_shown(tmp_path: Path, authority: Authority) -> None:
    tls = authority.server_context(tmp_path, "127.0.0.1", asks_for_clients=True)
    cluster = {"certificate-authority-data": data(authority.pem)}
    certificate, key = authority.pair("me")
    (tmp_path / "me.pem").write_bytes(certificate)
    (tmp_path / "me.key").write_bytes(key)
    by_data = {"client-certificate-data": data(certificate), "client-key-data": data(key)}
    _listed_over_tls(tls, tmp_path, cluster, by_data)
    _listed_over_tls(tls, tmp_path, cluster, {"client-certificate": "me.pem", "client-key": "me.key"})
    with pytest.raises(ConnectionFailed):
        _listed_over_tls(tls, tmp_path, cluster, {})
    _, other_key = authority.pair("me")
    with pytest.raises(KubeconfigError, match="do not make a pair"):
        _listed_over_tls(tls, tmp_path, cluster, {**by_data, "client-key-data": data(other_key)})


# -- exec plugins


def _plugin(folder: Path, status: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A plugin that says what is in a file, and counts how often it is asked."""
    _says(folder, status)
    script = folder / "plugin"
    script.write_text(f"#!/bin/sh\necho once >>{folder}/runs\ncat {folder}/says\n")
    script.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", **more}}


def _says(folder: Path, status: Mapping[str, Any]) -> None:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (folder / "says").write_text(json.dumps(credential))


def _runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def test_a_plugin_is_asked_once_and_again_when_what_it_gave_expires(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    clock = VirtualClock(epoch=start)
    expiry = (start + timedelta(minutes=10)).isoformat().replace("+00:00", "Z")
    config = _plugin(tmp_path, {"token": "first", "expirationTimestamp": expiry})["exec"]
    config["command"] = str(tmp_path / "plugin")

    async def run() -> None:
        credentials = ExecCredentials(config, None, clock)
        async with serving(_good) as server:
            endpoint = find_access(master=server.url).endpoint
            async with HttpTransport(endpoint) as transport:
                authenticated = AuthenticatedTransport(transport, credentials)
                request = Request("GET", "/api/v1/nodes")
                await asyncio.gather(*(authenticated.handle(request) for _ in range(5)))
                assert _runs(tmp_path) == 1
                _says(tmp_path, {"token": "second"})
                clock.advance(9 * 60)
                await authenticated.handle(request)
                assert _runs(tmp_path) == 1
                clock.advance(60)
                await authenticated.handle(request)
                clock.advance(24 * 3600)
                await authenticated.handle(request)
                assert _runs(tmp_path) == 2
        seen = [asked.header("authorization")[0] for asked in server.asked]
        assert seen == ["Bearer first"] * 6 + ["Bearer second"] * 2

    asyncio.run(run())


def test_a_plugin_may_give_a_certificate(tmp_path: Path, authority: Authority) -> None:
    tls = authority.server_context(tmp_path, "127.0.0.1", asks_for_clients=True)
    certificate, key = authority.pair("me")
    status = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
    cluster = {"certificate-authority-data": data(authority.pem)}
    server = _listed_over_tls(tls, tmp_path, cluster, _plugin(tmp_path, status))
    assert server.asked[0].header("authorization") == []


PLUGIN_TROUBLE: dict[str, tuple[str, str]] = {
    "it fails": ("echo no luck >&2; exit 3", "failed: process returned 3. no luck Install it."),
    "it says nothing": ("true", "failed: failed to decode process output"),
    "it says something else": ('echo "{}"', "failed: malformed response"),
    "it gives nothing": (
        """echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{}}'""",
        "gave neither a token nor a certificate",
    ),
}


@pytest.mark.parametrize(("script", "message"), PLUGIN_TROUBLE.values(), ids=PLUGIN_TROUBLE)
def test_trouble_with_a_plugin_is_reported_in_a_line(tmp_path: Path, script: str, message: str) -> None:
    user = _plugin(tmp_path, {}, installHint="Install it.\n")
    (tmp_path / "plugin").write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(NoAccess) as caught:
        _listed(from_kubeconfig([written(tmp_path, GOOD, user)], credentials_over_http=True))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_plugin_that_is_not_installed_is_reported_with_its_hint(tmp_path: Path) -> None:
    user = _plugin(tmp_path, {}, installHint="Install it.")
    (tmp_path / "plugin").unlink()
    with pytest.raises(NoAccess, match=r"exec plugin .*plugin' failed: .*Install it\."):
        _listed(from_kubeconfig([written(tmp_path, GOOD, user)], credentials_over_http=True))
