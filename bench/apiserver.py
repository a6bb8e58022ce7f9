"""Measures the embedded API server over HTTPS: several clients write, one watches, then all is listed.

    python bench/apiserver.py [--nodes 5000] [--pods 10000] [--clients 8] [--data-dir DIR]

The server runs in its own process; the clients share another, so that each has one of two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import ssl
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from pathlib import Path

import msgspec
import uvloop
import yaml

NODE_IMAGES = 10


def node(index: int) -> dict[str, object]:
    capacity = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "200Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": f"node-{index}", "topology.kubernetes.io/zone": f"zone-{index % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{index}", "labels": labels},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "images": [
                {"names": [f"registry.example/app-{image}:1"], "sizeBytes": 100_000_000 + image}
                for image in range(NODE_IMAGES)
            ],
        },
    }


def pod(index: int) -> dict[str, object]:
    resources = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{index}", "labels": {"app": f"app-{index % 50}"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/app:1",
                    "ports": [{"containerPort": 80}],
                    "resources": resources,
                }
            ]
        },
    }


class Connection:
    """One keep-alive connection with minimal overhead, so that the server is measured, not the client."""

    def __init__(self, port: int, token: str, tls: ssl.SSLContext) -> None:
        self._port, self._token, self._tls = port, token, tls

    async def __aenter__(self) -> Connection:
        self.reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._tls, limit=1 << 26
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)

    async def answer(self) -> tuple[int, bytes]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])  # type: ignore[index]
        return int(head[9:12]), await self.reader.readexactly(length)


async def write_all(connection: Connection, path: str, bodies: list[bytes]) -> None:
    async with connection:
        for body in bodies:
            connection.send("POST", path, body)
            status, answer = await connection.answer()
            assert status == 201, answer


async def watch(connection: Connection, path: str, count: int) -> list[int]:
    """The resourceVersions of the first `count` watch events, in order of arrival."""
    versions: list[int] = []
    async with connection:
        connection.send("GET", path)
        await connection.reader.readuntil(b"\r\n\r\n")
        rest = b""
        while len(versions) < count:
            size = int(await connection.reader.readuntil(b"\r\n"), 16)
            rest += (await connection.reader.readexactly(size + 2))[:-2]
            *lines, rest = rest.split(b"\n")
            for line in lines:
                versions.append(int(re.search(rb'"resourceVersion":"(\d+)"', line)[1]))  # type: ignore[index]
    return versions


async def measure(options: argparse.Namespace, server: subprocess.Popen[str], kubeconfig: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    port = int(cluster["server"].rpartition(":")[2])

    def connect() -> Connection:
        return Connection(port, user["token"], tls)

    for name, path, make, count in (
        ("nodes", "/api/v1/nodes", node, options.nodes),
        ("pods", "/api/v1/namespaces/default/pods", pod, options.pods),
    ):
        bodies = [msgspec.json.encode(make(index)) for index in range(count)]
        watching = asyncio.ensure_future(watch(connect(), f"{path}?watch=1&resourceVersion=0", count))
        await asyncio.sleep(0.2)
        start = time.perf_counter()
        await asyncio.gather(
            *(
                write_all(connect(), path, bodies[client :: options.clients])
                for client in range(options.clients)
            )
        )
        wrote = time.perf_counter() - start
        versions = await watching
        seen = "in order" if versions == sorted(versions) and len(set(versions)) == count else "WRONGLY"
        start = time.perf_counter()
        async with connect() as connection:
            connection.send("GET", path)
            _, body = await connection.answer()
        listed = time.perf_counter() - start
        items = len(msgspec.json.decode(body)["items"])
        print(
            f"{name:6} {count:6} written at {count / wrote:6.0f}/s, watched {seen}, "
            f"listed {items} ({len(body) / 1e6:.1f} MB) in {listed * 1000:.0f} ms"
        )
    status = Path(f"/proc/{server.pid}/status")
    if status.exists():
        peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        print(f"server's peak memory: {int(peak[1]) / 1024:.0f} MiB" if peak else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--data-dir", help="measure with objects kept on disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [
            sys.executable,
            "-m",
            "moorage",
            "apiserver",
            "--port",
            "0",
            "--kubeconfig",
            str(kubeconfig),
        ]
        if options.data_dir:
            command += ["--data-dir", options.data_dir]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            server.stdout.readline()
            uvloop.run(measure(options, server, kubeconfig))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
