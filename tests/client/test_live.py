"""The client against a real `moorage apiserver` in another process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
import yaml

from moorage.api.manifests import Manifest
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import CONFIG_MAP, NODE
from moorage.clock import LoopClock
from moorage.http.errors import ConnectionFailed, NoAccess, RequestError
from tests.apiserver.client import node
from tests.apiserver.running import RunningServer, start_server
from tests.client.harness import config_map, version_of
from tests.client.pki import Authority, data

WITHIN_SECONDS = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with start_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def _changed(server: RunningServer, folder: Path, part: str, **fields: Any) -> Path:
    """The server's kubeconfig with another cluster or user."""
    content = yaml.safe_load(server.kubeconfig.read_text())
    content[f"{part}s"][0][part].update(fields)
    path = folder / "changed"
    path.write_text(yaml.safe_dump(content))
    return path


def test_objects_are_written_and_followed_over_https(server: RunningServer) -> None:
    count = 300

    async def run() -> None:
        async with connected(find_access(server.kubeconfig)) as client:
            informer = Informer(client, NODE, LoopClock())
            reported: list[EventType] = []
            informer.listeners.append(lambda type, obj, before: reported.append(type))
            running = asyncio.ensure_future(informer.run())
            names = [f"node-{number}" for number in range(count)]
            await asyncio.gather(*(client.create(NODE, "", node(name)) for name in names))
            patch = {"metadata": {"labels": {"seen": "yes"}}}
            await asyncio.gather(*(client.patch(NODE, "", name, patch, "merge") for name in names))
            async with asyncio.timeout(WITHIN_SECONDS):
                await informer.until(lambda: sum(map(_is_seen, informer.objects.values())) == count)
            await asyncio.gather(*(client.delete(NODE, "", name) for name in names))
            async with asyncio.timeout(WITHIN_SECONDS):
                await informer.until(lambda: not informer.objects)
            assert reported.count("ADDED") == reported.count("DELETED") == count
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    uvloop.run(run())


def _is_seen(obj: Manifest) -> bool:
    return obj["metadata"]["labels"].get("seen") == "yes"


def test_a_server_of_another_authority_is_not_talked_to(server: RunningServer, tmp_path: Path) -> None:
    other = data(Authority("other").pem)
    path = _changed(server, tmp_path, "cluster", **{"certificate-authority-data": other})
    with pytest.raises(NoAccess, match="its certificate is not trusted"):
        uvloop.run(_listed(path))


def test_a_request_that_has_a_wrong_token_is_not_let_in(server: RunningServer, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        uvloop.run(_listed(_changed(server, tmp_path, "user", token="wrong")))
    assert (caught.value.code, caught.value.reason) == (401, "Unauthorized")


def test_a_plugin_lets_us_in_and_is_asked_again_when_its_token_is_refused(
    server: RunningServer, tmp_path: Path
) -> None:
    token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
    script = tmp_path / "plugin"
    credential = (
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
    )
    script.write_text(
        f"#!/bin/sh\nif test -e {tmp_path}/asked; then echo '{credential % token}'; "
        f"else echo '{credential % 'expired'}'; fi\ntouch {tmp_path}/asked\n"
    )
    script.chmod(0o755)
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}
    uvloop.run(_listed(_changed(server, tmp_path, "user", token="", exec=command)))


def test_another_user_can_be_impersonated(server: RunningServer, tmp_path: Path) -> None:
    async def run() -> Manifest:
        path = _changed(server, tmp_path, "user", **{"as": "jane", "as-groups": ["a", "b"]})
        async with connected(find_access(path)) as client:
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            return await client.call(
                "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", None, review
            )

    user = uvloop.run(run())["status"]["userInfo"]
    assert user["username"] == "jane"
    assert set(user["groups"]) >= {"a", "b"}


async def _listed(kubeconfig: Path) -> None:
    async with connected(find_access(kubeconfig)) as client:
        await client.list(NODE)


def test_a_server_that_is_killed_and_comes_back_is_followed_on(tmp_path: Path) -> None:
    """Writes before, between and after are each reported once, and requests made meanwhile succeed."""
    options = ("--data-dir", str(tmp_path / "data"))

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = start_server(tmp_path, *options)
        try:
            async with connected(find_access(server.kubeconfig)) as client:
                informer = Informer(client, CONFIG_MAP, LoopClock())
                reported: list[tuple[str, int]] = []
                informer.listeners.append(
                    lambda type, obj, before: reported.append((obj["metadata"]["name"], version_of(obj)))
                )
                running = asyncio.ensure_future(informer.run())
                for number in range(3):
                    name = f"round-{number}"
                    await client.create(CONFIG_MAP, "default", config_map(name, ""))
                    await _until_known(informer, name)
                    server.kill()
                    with pytest.raises(ConnectionFailed):
                        await client.create(CONFIG_MAP, "default", config_map("never", ""))
                    port = server.url.rpartition(":")[2]
                    asking = asyncio.ensure_future(client.list(CONFIG_MAP, "default"))
                    server = await loop.run_in_executor(None, _restarted, tmp_path, port, options)
                    await asyncio.gather(asking, return_exceptions=True)
                await client.create(CONFIG_MAP, "default", config_map("last", ""))
                await _until_known(informer, "last")
                stored = [
                    (obj["metadata"]["name"], version_of(obj))
                    for obj in await client.list(CONFIG_MAP, "default")
                    if obj["metadata"]["name"] != "kube-root-ca.crt"  # Which the server keeps itself.
                ]
                assert sorted(one for one in reported if one[0] in dict(stored)) == sorted(stored)
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        finally:
            server.kill()

    uvloop.run(run())


def _restarted(folder: Path, port: str, options: tuple[str, ...]) -> RunningServer:
    return start_server(folder, *options, "--port", port)


async def _until_known(informer: Informer[Manifest], name: str) -> None:
    async with asyncio.timeout(WITHIN_SECONDS):
        await informer.until(lambda: ("default", name) in informer.objects)
