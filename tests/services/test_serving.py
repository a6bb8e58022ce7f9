"""The scheduler's own server: responses as authorized by the API server; and over a real socket."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from moorage import klog
from moorage.admission.users import User as ServerUser
from moorage.client.client import Client
from moorage.client.kinds import CORE_EVENT, EVENT, LEASE
from moorage.config.load import default_config
from moorage.config.types import Extender, PluginRef, Plugins, PluginSet
from moorage.emulation.kubernetes_version import V1_36, V1_37, KubernetesVersion
from moorage.http.certificates import load_or_make
from moorage.http.client_transport import Endpoint, HttpTransport
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.http.server import ServingError
from moorage.http.transport import Request, Response
from moorage.klog import Logger
from moorage.services import responses as answers
from moorage.services.configz import configz
from moorage.services.delegation import Authentication, Authorization, OpenPathError
from moorage.services.event_broadcaster import Broadcaster
from moorage.services.health import PING, endpoint_routes
from moorage.services.leader_election import LeaderElector
from moorage.services.metrics import Metrics
from moorage.services.private_reads import PrivateReads
from moorage.services.server_tls import TlsOptions
from moorage.services.serving import (
    Endpoints,
    SecureServer,
    ServingOptions,
    config_routes,
    metric_routes,
    verbosity_routes,
)
from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import settled
from tests.builders import make_pod
from tests.logs import written
from tests.services.faults import Link, ServerHarness

USERS = {
    "watcher-token": ServerUser("watcher", ("system:monitoring", "system:authenticated")),
    "nobody-token": ServerUser("nobody", ("system:authenticated",)),
    "admin-token": ServerUser("admin", ("system:masters", "system:authenticated")),
    "scheduler-token": ServerUser("system:kube-scheduler", ("system:authenticated",)),
}
RBAC = Settings(authorization="RBAC", static_users=USERS)


class Scene:
    """A cluster with roles, and a scheduler's endpoints that ask it as `system:kube-scheduler`."""

    def __init__(self, *, has_client: bool = True, open_paths: tuple[str, ...] | None = None) -> None:
        self.harness = ServerHarness(RBAC)
        self.link = Link(self.harness.server.api, self.harness.clock)
        self.metrics = Metrics()
        self.leads = True
        client = self.harness.client(self.link, "scheduler-token") if has_client else None
        random, clock = Random(1), self.harness.clock
        authorization = (
            Authorization(client, clock, random, self.metrics)
            if open_paths is None
            else Authorization(client, clock, random, self.metrics, open_paths)
        )
        self.endpoints = Endpoints(
            {
                **endpoint_routes("healthz", [PING], self.metrics),
                **metric_routes(self.metrics, lambda: [a_pod()], lambda: self.leads),
                **config_routes(default_config, V1_37),
                "/debug/queue": _show_path,
                "/debug/below/": _show_path,
                "/moorage/v1/queue": _show_path,
            },
            Authentication(client, clock, random, self.metrics),
            authorization,
            PrivateReads("page-token"),
        )

    async def ask(self, path: str, token: str = "", method: str = "GET") -> tuple[int, str]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        response = await self.endpoints.handle(Request(method, path, headers=headers))
        assert isinstance(response.body, bytes)
        assert response.headers["Cache-Control"] == "no-cache, private"
        return response.status, response.body.decode()

    def asked(self) -> list[str]:
        """What the API server was asked since the last call."""
        asked = [path.rpartition("/")[2] for _, path in self.link.requests]
        self.link.requests.clear()
        return asked


async def _show_path(request: Request) -> Response:
    return answers.text(request.path)


def a_pod() -> Any:
    return make_pod("web", requests={"cpu": "2"})


def on_scene(test: Callable[[Scene], Awaitable[None]], **options: Any) -> None:
    async def body() -> None:
        scene = Scene(**options)
        try:
            await test(scene)
        finally:
            scene.harness.server.close()

    asyncio.run(body())


ANONYMOUS = 'forbidden: User \\"system:anonymous\\" cannot'

CASES: dict[str, tuple[str, str, str, int, str]] = {
    "a probe": ("GET", "/healthz", "", 200, "ok"),
    "metrics for nobody in particular": ("GET", "/metrics", "", 403, f'{ANONYMOUS} get path \\"/metrics\\"'),
    "metrics for who has no role": ("GET", "/metrics", "nobody-token", 403, 'User \\"nobody\\" cannot get'),
    "metrics for monitoring": ("GET", "/metrics", "watcher-token", 200, "scheduler_pending_pods"),
    "metrics for the page": ("GET", "/metrics", "page-token", 200, "scheduler_pending_pods"),
    "the queue for the page": ("GET", "/moorage/v1/queue", "page-token", 200, "/moorage/v1/queue"),
    "nothing else for the page": ("GET", "/debug/queue", "page-token", 403, "the page may not do this"),
    "the page may not reset": ("DELETE", "/metrics", "page-token", 403, "the page may not do this"),
    "the page may not ask below": ("GET", "/metrics/slis", "page-token", 403, "the page may not do this"),
    "half of the page's token": ("GET", "/moorage/v1/queue", "page", 401, "Unauthorized"),
    "health metrics": ("GET", "/metrics/slis", "watcher-token", 200, ""),
    "monitoring may not reset": ("DELETE", "/metrics", "watcher-token", 403, "cannot delete path"),
    "an admin may": ("DELETE", "/metrics", "admin-token", 200, "metrics reset\n"),
    "resources": ("GET", "/metrics/resources", "admin-token", 200, 'pod="web"'),
    "the configuration": ("GET", "/configz", "admin-token", 200, '{"componentconfig":{"apiVersion"'),
    "monitoring does not see it": ("GET", "/configz", "watcher-token", 403, "cannot get path"),
    "a path given from outside": ("GET", "/debug/queue", "admin-token", 200, "/debug/queue"),
    "all paths below one": ("GET", "/debug/below/it/all", "admin-token", 200, "/debug/below/it/all"),
    "no such path": ("GET", "/nothing", "admin-token", 404, "404 page not found\n"),
    "no such path, for nobody": ("GET", "/nothing", "", 403, "cannot get path"),
    "a single check is not a probe": ("GET", "/healthz/ping", "", 403, "cannot get path"),
    "a single check": ("GET", "/healthz/ping", "admin-token", 200, "ok"),
    "a token that is nobody's": ("GET", "/metrics", "stolen", 401, '"reason":"Unauthorized","code":401'),
    "not even for a probe": ("GET", "/healthz", "stolen", 401, '"message":"Unauthorized"'),
    "no markup in answers": ("GET", "/%3Cscript%3E", "", 403, "/&lt;script&gt;"),
}


@pytest.mark.parametrize("case", CASES)
def test_answers_by_user(case: str) -> None:
    method, path, token, status, words = CASES[case]

    async def test(scene: Scene) -> None:
        found, body = await scene.ask(path, token, method)
        assert found == status, body
        assert words in body

    on_scene(test)


def test_a_refusal_is_a_status() -> None:
    async def test(scene: Scene) -> None:
        _, body = await scene.ask("/metrics")
        assert json.loads(body) == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'forbidden: User "system:anonymous" cannot get path "/metrics"',
            "reason": "Forbidden",
            "details": {},
            "code": 403,
        }

    on_scene(test)


def test_answers_of_the_api_server_hold_for_ten_seconds() -> None:
    async def test(scene: Scene) -> None:
        await scene.ask("/metrics", "watcher-token")
        assert scene.asked() == ["tokenreviews", "subjectaccessreviews"]
        await scene.ask("/metrics", "watcher-token")
        assert scene.asked() == []
        await scene.ask("/metrics/slis", "watcher-token")
        assert scene.asked() == ["subjectaccessreviews"]
        await scene.ask("/metrics")
        assert scene.asked() == ["subjectaccessreviews"]
        scene.harness.clock.advance(9.75)
        await scene.ask("/metrics")
        await scene.ask("/metrics", "watcher-token")
        assert scene.asked() == []
        scene.harness.clock.advance(0.25)
        await scene.ask("/metrics", "watcher-token")
        assert scene.asked() == ["tokenreviews", "subjectaccessreviews"]
        await scene.ask("/metrics")
        assert scene.asked() == ["subjectaccessreviews"]

    on_scene(test)


def test_decisions_about_long_requests_are_not_cached() -> None:
    async def test(scene: Scene) -> None:
        for _ in range(2):
            await scene.ask("/" + "x" * 10_000)
            assert scene.asked() == ["subjectaccessreviews"]

    on_scene(test)


def test_probes_ask_the_api_server_nothing() -> None:
    async def test(scene: Scene) -> None:
        scene.link.plan = lambda request: "refused"
        assert await scene.ask("/healthz") == (200, "ok")
        assert scene.asked() == []

    on_scene(test)


def test_masters_are_not_asked_about() -> None:
    async def test(scene: Scene) -> None:
        assert (await scene.ask("/metrics", "admin-token"))[0] == 200
        assert scene.asked() == ["tokenreviews"]

    on_scene(test)


def test_reviews_are_tried_again() -> None:
    async def test(scene: Scene) -> None:
        outcomes = iter(["500", "refused", "", "", ""])
        scene.link.plan = lambda request: next(outcomes)
        asking = asyncio.ensure_future(scene.ask("/metrics", "watcher-token"))
        await scene.harness.pass_time(3)
        assert (await asking)[0] == 200
        assert scene.asked() == ["tokenreviews"] * 3 + ["subjectaccessreviews"]
        requests = scene.metrics.authentication_requests
        assert [requests.labels(code).value for code in ("500", "<error>", "201")] == [1, 1, 1]

    on_scene(test)


def test_requests_are_rejected_while_the_api_server_is_down() -> None:
    async def test(scene: Scene) -> None:
        scene.link.plan = lambda request: "refused"
        anonymous = asyncio.ensure_future(scene.ask("/metrics"))
        known = asyncio.ensure_future(scene.ask("/metrics", "watcher-token"))
        await scene.harness.pass_time(10)
        assert await anonymous == (500, 'Internal Server Error: "/metrics": cannot be reached\n')
        assert (await known)[0] == 401
        scene.link.heal()
        assert (await scene.ask("/metrics", "watcher-token"))[0] == 200, "failures are not remembered"

    on_scene(test)


def test_without_an_api_server_to_ask_only_probes_are_answered() -> None:
    async def test(scene: Scene) -> None:
        assert await scene.ask("/healthz", "any-token") == (200, "ok")
        status, body = await scene.ask("/metrics", "admin-token")
        assert status == 403
        assert "system:anonymous" in body

    on_scene(test, has_client=False)


def test_other_open_paths() -> None:
    async def test(scene: Scene) -> None:
        assert (await scene.ask("/metrics"))[0] == 200
        assert (await scene.ask("/metrics/slis"))[0] == 200
        assert scene.asked() == []
        await scene.ask("/healthz")
        assert scene.asked() == ["subjectaccessreviews"]

    on_scene(test, open_paths=("metrics*",))


def test_an_open_path_with_a_star_in_the_middle() -> None:
    with pytest.raises(OpenPathError, match='only trailing \\* allowed in "a\\*b"'):
        Scene(open_paths=("/a*b",))


def test_only_a_leader_shows_the_resources_of_pods() -> None:
    async def test(scene: Scene) -> None:
        scene.leads = False
        assert await scene.ask("/metrics/resources", "admin-token") == (200, "")

    on_scene(test)


def test_the_bootstrap_roles_are_enough() -> None:
    """The lease, its events and the scheduler's events, as `system:kube-scheduler`."""

    async def test(scene: Scene) -> None:
        harness = scene.harness
        client = harness.client(token="scheduler-token")
        config = default_config().leader_election
        election = LeaderElector(client, config, harness.clock, Random(1), "a")
        running = asyncio.ensure_future(election.run(lambda: None, lambda: None))
        await harness.pass_time(5)
        assert election.is_leading
        election.stop()
        await running
        broadcaster = Broadcaster(client, harness.clock, Random(1), "host")
        writing = asyncio.ensure_future(broadcaster.run())
        for _ in range(2):
            broadcaster.recorder("default-scheduler").scheduled(a_pod(), "node-1")
            await settled()
        admin = harness.client()
        assert (await admin.get(LEASE, "kube-system", "kube-scheduler"))["spec"]["holderIdentity"] == ""
        assert len(await admin.list(CORE_EVENT, "kube-system")) == 2
        [event] = await admin.list(EVENT, "default")
        assert event["series"]["count"] == 2
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

    on_scene(test)


# -- /configz


@pytest.mark.parametrize(("version", "number_of_points"), [(V1_36, 15), (V1_37, 16)], ids=["1.36", "1.37"])
def test_the_configuration_has_every_weight_and_point(
    version: KubernetesVersion, number_of_points: int
) -> None:
    config = default_config(version)
    [profile] = config.profiles
    plugins = Plugins(
        multi_point=PluginSet(enabled=(PluginRef(name="A"), PluginRef(name="B", weight=2))),
        score=PluginSet(disabled=(PluginRef(name="C"),)),
    )
    config = replace(
        config,
        profiles=(replace(profile, plugins=plugins),),
        extenders=(Extender(url_prefix="http://x", filter_verb="filter"),),
    )
    shown = configz(config, version)["componentconfig"]
    assert (shown["apiVersion"], shown["kind"]) == (
        "kubescheduler.config.k8s.io/v1",
        "KubeSchedulerConfiguration",
    )
    [profile_shown] = shown["profiles"]
    points = profile_shown["plugins"]
    assert points["multiPoint"] == {"enabled": [{"name": "A", "weight": 0}, {"name": "B", "weight": 2}]}
    assert points["score"] == {"disabled": [{"name": "C", "weight": 0}]}
    assert points["preEnqueue"] == {}
    assert len(points) == number_of_points
    assert shown["clientConnection"] == {
        "kubeconfig": "",
        "acceptContentTypes": "",
        "contentType": "application/vnd.kubernetes.protobuf",
        "qps": 50,
        "burst": 100,
    }
    assert shown["extenders"] == [{"urlPrefix": "http://x", "filterVerb": "filter", "httpTimeout": "0s"}]
    assert "delayCacheUntilActive" not in shown


# -- over a socket


async def serve(
    options: ServingOptions, tls: ssl.SSLContext, test: Callable[[Client], Awaitable[None]]
) -> None:
    scene = Scene()
    server = SecureServer(scene.endpoints, options)
    serving = asyncio.ensure_future(server.serve())
    await server.listens()
    try:
        endpoint = Endpoint(f"https://127.0.0.1:{server.port}", tls)
        async with HttpTransport(endpoint) as transport:
            await test(Client(transport, "watcher-token"))
    finally:
        server.stop()
        await serving
        scene.harness.server.close()


async def metrics_and_refusal(client: Client) -> None:
    text = b"".join([piece async for piece in await client.stream("/metrics", {})])
    assert b"scheduler_pending_pods" in text
    with pytest.raises(RequestError) as refused:
        await client.call("GET", "/configz")
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")


def test_over_https_with_a_certificate_made_for_the_occasion() -> None:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    asyncio.run(serve(ServingOptions(port=0), tls, metrics_and_refusal))


def test_over_https_with_a_certificate_from_files(tmp_path: Path) -> None:
    made = load_or_make(None)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_text(made.certificate_pem)
    key.write_text(made.key_pem)
    tls = ssl.create_default_context(cadata=made.ca_pem)
    options = ServingOptions(port=0, tls=TlsOptions(certificate, key))
    asyncio.run(serve(options, tls, metrics_and_refusal))


def test_not_without_tls() -> None:
    async def test(scene: Scene) -> None:
        server = SecureServer(scene.endpoints, ServingOptions(port=0))
        serving = asyncio.ensure_future(server.serve())
        await server.listens()
        async with HttpTransport(Endpoint(f"http://127.0.0.1:{server.port}")) as transport:
            with pytest.raises(ConnectionFailed):
                await transport.handle(Request("GET", "/healthz"))
        server.stop()
        await serving

    on_scene(test)


BAD_OPTIONS: dict[str, tuple[ServingOptions, str]] = {
    "no key": (
        ServingOptions(port=0, tls=TlsOptions(Path("tls.crt"))),
        "certificate and key must be set together",
    ),
    "no such files": (
        ServingOptions(port=0, tls=TlsOptions(Path("no.crt"), Path("no.key"))),
        "no.crt and no.key cannot be used: No such file or directory",
    ),
    "no such address": (
        ServingOptions("203.0.113.7", port=0),
        "cannot listen on 203.0.113.7:0: cannot assign requested address",
    ),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options(case: str) -> None:
    options, message = BAD_OPTIONS[case]

    async def test(scene: Scene) -> None:
        with pytest.raises(ServingError) as refused:
            SecureServer(scene.endpoints, options)
        assert str(refused.value) == message

    on_scene(test)


def test_loopback_and_the_usual_port_without_options() -> None:
    assert (ServingOptions().bind_address, ServingOptions().port) == ("127.0.0.1", 10259)


VERBOSITIES = {
    "a number": ("PUT", "5", 200, "successfully set klog.logging.verbosity to 5"),
    "no number": ("PUT", "much", 400, 'strconv.ParseUint: parsing "much": invalid syntax'),
    "a number of many digits": (
        "PUT",
        "9" * 4301,
        400,
        f'strconv.ParseUint: parsing "{"9" * 4301}": value out of range',
    ),
    "no PUT": ("GET", "", 406, "unsupported http method"),
}


@pytest.mark.parametrize(("method", "body", "status", "text"), VERBOSITIES.values(), ids=VERBOSITIES)
def test_how_much_is_logged_can_be_changed(method: str, body: str, status: int, text: str) -> None:
    log = Logger("moorage.here")
    with written(2):
        klog.set_verbosity(2, [("there", 7)])
        put = verbosity_routes()["/debug/flags/v"]
        request = Request(method, "/debug/flags/v", body=body.encode())
        answer: Response = asyncio.run(put(request))  # type: ignore[arg-type]
        assert (answer.status, answer.body) == (status, text.encode())
        assert (log.v, Logger("moorage.there").v) == (5 if status == 200 else 2, 7)
