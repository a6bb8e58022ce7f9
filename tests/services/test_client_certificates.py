"""Users of client certificates, over real connections; authorities come from files or a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from moorage.api.manifests import utc_now
from moorage.client.client import Client
from moorage.client.kinds import CONFIG_MAP
from moorage.http.client_transport import Endpoint, HttpTransport
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.server import ServingError
from moorage.http.transport import Request, Response
from moorage.services import responses
from moorage.services.client_certificates import (
    NAME,
    NAMESPACE,
    CertificateOptions,
    ClientCertificates,
    HeaderNames,
)
from moorage.services.delegation import Authentication, Authorization
from moorage.services.metrics import Metrics
from moorage.services.requesting_user import Unauthenticated, User
from moorage.services.serving import Endpoints, SecureServer, ServingOptions
from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import settled
from tests.services.authorities import Authority, trusting_all
from tests.services.faults import ServerHarness

CLIENTS, PROXIES, STRANGERS = Authority("clients"), Authority("proxies"), Authority("strangers")


class Scene:
    """A server that returns its user, in a cluster that may have authorities."""

    def __init__(self, folder: Path, options: CertificateOptions) -> None:
        self.folder = folder
        self.harness = ServerHarness(Settings())
        self.metrics = Metrics()
        self.certificates = ClientCertificates(options, self.metrics.client_certificate_seconds)
        self.client = self.harness.client()
        clock, random = self.harness.clock, Random(1)
        self._endpoints = Endpoints(
            {"/me": _no_user},
            Authentication(None, clock, random, self.metrics, self.certificates),
            Authorization(None, clock, random, self.metrics, ["/me"]),
        )

    @contextmanager
    def asking_is_seen(self) -> Iterator[list[User]]:
        """The users of requests within the context."""
        seen: list[User] = []
        decide = self._endpoints._authorization.decide

        async def noted(user: User, verb: str, path: str) -> object:
            seen.append(user)
            return await decide(user, verb, path)

        self._endpoints._authorization.decide = noted  # type: ignore[method-assign, assignment]
        yield seen

    async def serve(self, test: Callable[[SecureServer], Awaitable[None]]) -> None:
        server = SecureServer(self._endpoints, ServingOptions(port=0))
        server.tls.trust(self.certificates.authorities)
        self.certificates.on_change = server.tls.trust
        serving = asyncio.ensure_future(server.serve())
        await server.listens()
        try:
            await test(server)
        finally:
            server.stop()
            await serving
            self.harness.server.close()

    async def ask(self, server: SecureServer, pem: str = "", **headers: str) -> Response:
        """The response to a client with a certificate."""
        tls = trusting_all(self.folder, pem)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with HttpTransport(Endpoint(f"https://127.0.0.1:{server.port}", tls)) as transport:
            return await transport.handle(Request("GET", "/me", headers=named))


async def _no_user(request: Request) -> Response:
    return responses.text("ok")


def from_files(folder: Path, **more: object) -> CertificateOptions:
    for name, authority in (("clients", CLIENTS), ("proxies", PROXIES)):
        (folder / name).write_text(authority.pem)
    return CertificateOptions(folder / "clients", folder / "proxies", **more)  # type: ignore[arg-type]


ALICE = CLIENTS.client("alice", "admins", "people")[1]
FRONT = PROXIES.client("front")[1]
REMOTE = {"x_remote_user": "bob", "x_remote_group": "people", "x_remote_extra_a%2fb": "c"}

USER: dict[str, tuple[str, dict[str, str], str, tuple[str, ...]]] = {
    "nobody": ("", {}, "system:anonymous", ("system:unauthenticated",)),
    "nobody, whatever headers say": ("", REMOTE, "system:anonymous", ("system:unauthenticated",)),
    "a certificate's owner": (ALICE, {}, "alice", ("admins", "people", "system:authenticated")),
    "an owner, whatever headers say": (ALICE, REMOTE, "alice", ("admins", "people", "system:authenticated")),
    "whom a proxy speaks for": (FRONT, REMOTE, "bob", ("people", "system:authenticated")),
}


@pytest.mark.parametrize("case", USER)
def test_the_requesting_user(case: str, tmp_path: Path) -> None:
    pem, headers, name, groups = USER[case]

    async def run() -> None:
        scene = Scene(tmp_path, from_files(tmp_path))

        async def test(server: SecureServer) -> None:
            with scene.asking_is_seen() as seen:
                assert (await scene.ask(server, pem, **headers)).status == 200
            [user] = seen
            assert (user.name, user.groups) == (name, groups)
            if pem == ALICE:
                [credential] = user.extra["authentication.kubernetes.io/credential-id"]
                assert credential.startswith("X509SHA256=")
            if name == "bob":
                assert user.extra == {"a/b": ["c"]}
            assert sum(scene.metrics.client_certificate_seconds.counts) == (1 if pem else 0)

        await scene.serve(test)

    asyncio.run(run())


REFUSED: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "a proxy that speaks for nobody": (FRONT, {}, ()),
    "a proxy that may not speak": (FRONT, REMOTE, ("other",)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rejected_certificates(case: str, tmp_path: Path) -> None:
    pem, headers, allowed = REFUSED[case]

    async def run() -> None:
        scene = Scene(tmp_path, from_files(tmp_path, headers=HeaderNames(allowed=allowed)))

        async def test(server: SecureServer) -> None:
            assert (await scene.ask(server, pem, **headers)).status == 401
            assert scene.metrics.authentication_attempts.labels("error").value == 1

        await scene.serve(test)

    asyncio.run(run())


def test_a_certificate_of_an_unknown_authority_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    async def run() -> None:
        scene = Scene(tmp_path, from_files(tmp_path))

        async def test(server: SecureServer) -> None:
            with pytest.raises(ConnectionFailed):
                await scene.ask(server, STRANGERS.client("mallory", "system:masters")[1])

        await scene.serve(test)

    asyncio.run(run())


def test_without_authorities_certificates_say_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        scene = Scene(tmp_path, CertificateOptions(skips_lookup=True))

        async def test(server: SecureServer) -> None:
            await scene.certificates.load_authorities(scene.client)
            with scene.asking_is_seen() as seen:
                await scene.ask(server, ALICE)
            assert [user.name for user in seen] == ["system:anonymous"]

        await scene.serve(test)

    asyncio.run(run())


def test_files_that_change_are_read_again(tmp_path: Path) -> None:
    async def run() -> None:
        scene = Scene(tmp_path, from_files(tmp_path))
        newcomer = STRANGERS.client("newcomer")[1]

        async def test(server: SecureServer) -> None:
            following = asyncio.ensure_future(
                scene.certificates.keep_updated(scene.client, scene.harness.clock)
            )
            await settled()
            (tmp_path / "clients").write_text(STRANGERS.pem)
            await scene.harness.pass_time(61)
            with scene.asking_is_seen() as seen:
                await scene.ask(server, newcomer)
            assert [user.name for user in seen] == ["newcomer"]
            with pytest.raises(ConnectionFailed):
                await scene.ask(server, ALICE)
            following.cancel()

        await scene.serve(test)

    asyncio.run(run())


async def write_authorities(client: Client, **data: str) -> None:
    """Let the cluster tell of authorities."""
    named = {key.replace("_", "-"): value for key, value in data.items()}
    try:
        found = await client.get(CONFIG_MAP, NAMESPACE, NAME)
        await client.update(CONFIG_MAP, {**found, "data": named})
    except RequestError:
        meta = {"name": NAME, "namespace": NAMESPACE}
        created = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": named}
        await client.create(CONFIG_MAP, NAMESPACE, created)


def test_the_cluster_tells_of_authorities_and_headers(tmp_path: Path) -> None:
    async def run() -> None:
        scene = Scene(tmp_path, CertificateOptions())

        async def test(server: SecureServer) -> None:
            await write_authorities(
                scene.client,
                client_ca_file=CLIENTS.pem,
                requestheader_client_ca_file=PROXIES.pem,
                requestheader_username_headers=json.dumps(["X-Who"]),
                requestheader_allowed_names=json.dumps(["front"]),
            )
            await scene.certificates.load_authorities(scene.client)
            with scene.asking_is_seen() as seen:
                await scene.ask(server, ALICE)
                await scene.ask(server, FRONT, x_who="carol", x_remote_group="ignored")
            assert [(user.name, user.groups[:1]) for user in seen] == [
                ("alice", ("admins",)),
                ("carol", ("system:authenticated",)),
            ]

        await scene.serve(test)

    asyncio.run(run())


@pytest.mark.parametrize("tolerates", [True, False])
def test_a_cluster_that_does_not_tell(tmp_path: Path, tolerates: bool) -> None:
    async def run() -> None:
        scene = Scene(tmp_path, CertificateOptions(tolerates_failure=tolerates))
        stranger = Client(scene.harness.server.api, "nobody's token")
        if tolerates:
            await scene.certificates.load_authorities(stranger)
            assert scene.certificates.authorities == []
        else:
            with pytest.raises(ServingError, match="unable to load configmap based"):
                await scene.certificates.load_authorities(stranger)
        scene.harness.server.close()

    asyncio.run(run())


def test_a_certificate_that_has_expired_since_the_client_connected(tmp_path: Path) -> None:
    later = utc_now() + timedelta(days=2)
    certificates = ClientCertificates(
        from_files(tmp_path), Metrics().client_certificate_seconds, lambda: later
    )
    encoded = CLIENTS.client("alice")[0].public_bytes(Encoding.DER)
    with pytest.raises(Unauthenticated, match="expired"):
        certificates.user(encoded, Request("GET", "/"))
