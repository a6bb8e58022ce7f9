"""Measures the API server and the scheduler under three times their peak.

    python -m bench.load [--seconds 300] [--only server|scheduler] [--nodes 1000]

`moorage apiserver` and `moorage run` are processes of their own; all traffic is on loopback. First the peak
of each is measured, then load of three times the peak is applied for as long.

The server: connections create, read and delete pods of their own. At its peak they are few, and each sends
its next request when the last one is answered. Then three times as many requests are due in each second as
the server answered in a second of its CPU, on --connections connections. Patient clients wait after a refusal
for as long as `Retry-After` says, as client-go does; impatient ones do not. A watch that begins meanwhile has
to see every change that was accepted.

The scheduler: its peak is the rate at which it binds pods of which there are always some; then pods are
created three times as fast as it binds them in a second of its CPU, or as fast as the server can. These two
end when nodes are full. Then --connections connections create pods, each the next one when the last is there.

CPU seconds are of the processes under load: on a shared machine, throughput for each of them is what counts.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import ssl
import sys
import time
from base64 import b64decode
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import msgspec
import uvloop
import yaml
from rich.console import Console
from rich.table import Table

from bench.real import make_node, make_pod
from moorage.bench.process_usage import usage_of
from moorage.bench.served_target import scheduler_process
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import NODE, POD, SERVICE_ACCOUNT
from moorage.clock import LoopClock
from moorage.http.limits import MAX_READS, MAX_WRITES
from moorage_cluster.soak.clusters import command_process
from moorage_cluster.soak.followed_pods import FollowedPods

NAMESPACE: Final = "default"
PODS: Final = POD.path(NAMESPACE)
OVERLOAD: Final = 3
PEAK_CONNECTIONS: Final = 64
TICK_SECONDS: Final = 0.005
PODS_PER_NODE: Final = 40
MAX_PENDING: Final = 500
"""Number of pods that wait for the scheduler at its peak."""
MAX_CREATING: Final = 500
WATCH_SECONDS: Final = 10.0
"""Time in which a watch has to see the last change, in seconds."""
REFUSED: Final = 429
HEAD_END: Final = b"\r\n\r\n"
LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
RETRY_AFTER: Final = re.compile(rb"retry-after: (\d+)", re.IGNORECASE)
Step = tuple[str, int]
STEPS: Final[Sequence[Step]] = (("POST", 201), ("GET", 200), ("GET", 200), ("DELETE", 200))
"""What each connection does again and again with a pod of its own, and the code that it expects."""
CREATIONS: Final[Sequence[Step]] = (("POST", 201),)
"""The same, where pods only come."""
SCHEDULER: Final = "scheduler"
"""The scheduler's account, in kube-system."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is under load."""

    port: int
    token: str
    tls: ssl.SSLContext
    pid: int


class Connection(asyncio.Protocol):
    """A keep-alive connection with little cost of its own.

    done: called after each answer with its code, and the seconds to wait if it was refused.
    """

    def __init__(
        self,
        number: int,
        server: Server,
        steps: Sequence[Step],
        done: Callable[[Connection, int, float], None],
    ) -> None:
        metadata = {"name": f"load-{number}"} if len(steps) > 1 else {"generateName": f"load-{number}-"}
        body = msgspec.json.encode({**make_pod(), "metadata": metadata})
        self._requests = [_request(server, method, number, body) for method, _ in steps]
        self._steps = steps
        self._done = done
        self._received = b""
        self._sent_at = 0.0
        self.step = 0
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True

    def send(self) -> None:
        """Send the next request."""
        self._sent_at = time.perf_counter()
        self._socket.write(self._requests[self.step])

    def close(self) -> None:
        self._socket.close()

    @property
    def waited_seconds(self) -> float:
        """Time since the last request was sent."""
        return time.perf_counter() - self._sent_at

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(HEAD_END)
        if not found or len(body) < int(LENGTH.search(head)[1]):  # type: ignore[index]
            return
        self._received = b""
        code = int(head[9:12])
        retry_after = RETRY_AFTER.search(head)
        if code == self._steps[self.step][1]:
            self.step = (self.step + 1) % len(self._steps)
        self._done(self, code, float(retry_after[1]) if retry_after else 0.0)


def _same(connection: Connection) -> Connection:
    return connection


def _request(server: Server, method: str, number: int, body: bytes) -> bytes:
    path = PODS if method == "POST" else f"{PODS}/load-{number}"
    body = {"POST": body, "DELETE": b'{"gracePeriodSeconds":0}'}.get(method, b"")
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass(slots=True)
class Figures:
    """What happened under one load."""

    load: str
    seconds: float
    codes: Counter[int]
    due: int
    cpu_seconds: float
    latencies: list[float]
    lost: int
    resident_mib: float

    @property
    def accepted(self) -> int:
        return sum(count for code, count in self.codes.items() if code < 300)

    @property
    def unexpected(self) -> int:
        return self.codes.total() - self.accepted - self.codes[REFUSED]

    def latency_ms(self, share: float) -> float:
        found = sorted(self.latencies)
        return found[int(len(found) * share)] * 1000 if found else 0.0


class Load:
    """Connections that apply a load to a server: at a rate, or each as fast as it is answered."""

    def __init__(self, server: Server, steps: Sequence[Step] = STEPS, *, is_patient: bool = True) -> None:
        self._server, self._steps, self._is_patient = server, steps, is_patient
        self._idle: deque[Connection] = deque()
        self._connections: list[Connection] = []
        self._codes: Counter[int] = Counter()
        self._latencies: list[float] = []
        self._is_closed_loop = self._is_over = False

    async def connect(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        for number in range(count):
            made = Connection(number, self._server, self._steps, self._answered)
            tls = self._server.tls
            await loop.create_connection(partial(_same, made), "127.0.0.1", self._server.port, ssl=tls)
            self._connections.append(made)
        self._idle.extend(self._connections)

    def _answered(self, connection: Connection, code: int, retry_after: float) -> None:
        self._codes[code] += 1
        if code < 300:
            self._latencies.append(connection.waited_seconds)
        if retry_after and self._is_patient:
            asyncio.get_running_loop().call_later(retry_after, self._again, connection)
        else:
            self._again(connection)

    def _again(self, connection: Connection) -> None:
        if self._is_closed_loop and not self._is_over:
            connection.send()
        else:
            self._idle.append(connection)

    async def apply(self, name: str, seconds: float, rate: float | None, most: float = inf) -> Figures:
        """Apply a load for some seconds, or until nearly `most` requests are accepted.

        rate: requests that are due in a second, None: as many as go.
        """
        report(f"server: {name}")
        self._codes.clear()
        self._latencies.clear()
        self._is_closed_loop, self._is_over = rate is None, False
        begun, cpu_before, due = time.perf_counter(), _cpu(self._server.pid), 0
        if rate is None:
            self._send(len(self._idle))
        most -= len(self._connections)
        while (passed := time.perf_counter() - begun) < seconds and self.accepted < most:
            if rate is not None:
                wanted = int(rate * passed) - due
                due += wanted
                self._send(min(wanted, len(self._idle)))
            await asyncio.sleep(TICK_SECONDS)
        self._is_over = True
        return Figures(
            name,
            passed,
            Counter(self._codes),
            due or self._codes.total(),
            _cpu(self._server.pid) - cpu_before,
            list(self._latencies),
            sum(each.is_lost for each in self._connections),
            _resident_mib(self._server.pid),
        )

    def _send(self, count: int) -> None:
        for _ in range(count):
            self._idle.popleft().send()

    async def rest(self) -> None:
        """Returns when every request is answered."""
        async with asyncio.timeout(30):
            while len(self._idle) < len(self._connections):
                await asyncio.sleep(TICK_SECONDS)

    @property
    def accepted(self) -> int:
        """Number of requests that were accepted since a load began."""
        return sum(count for code, count in self._codes.items() if code < 300)

    @property
    def pods(self) -> int:
        """Number of pods that have to be there."""
        return sum(each.step > 0 for each in self._connections)

    def close(self) -> None:
        for each in self._connections:
            each.close()


def report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _cpu(pid: int) -> float:
    return usage_of(pid).cpu_seconds or 0.0


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


async def load_server(server: Server, client: Client, seconds: float, connections: int) -> list[Figures]:
    """The peak, then three times as much from patient and from impatient clients; a watch follows each."""
    few = Load(server)
    await few.connect(PEAK_CONNECTIONS)
    await few.apply("warm-up", min(seconds, 3.0), None)
    await few.rest()
    peak = await watched(few, client, few.apply("peak", seconds, None))
    figures = [peak]
    rate = OVERLOAD * peak.accepted / peak.cpu_seconds
    for name, is_patient in (("3 x peak, patient", True), ("3 x peak, impatient", False)):
        many = Load(server, is_patient=is_patient)
        await many.connect(connections)
        figures.append(await watched(many, client, many.apply(name, seconds, rate)))
    return figures


async def watched(load: Load, client: Client, applied: Coroutine[Any, Any, Figures]) -> Figures:
    """Apply a load: what was accepted has to be there in the end, and a watch has to see it."""
    followed = FollowedPods(client, LoopClock())
    watching = asyncio.create_task(followed.informer.run())
    figures = await applied
    await load.rest()
    there = len(await client.list(POD, NAMESPACE))
    assert there == load.pods, f"{there} pods are there instead of {load.pods}"
    async with asyncio.timeout(WATCH_SECONDS):
        await followed.informer.until(lambda: len(followed.informer.objects) == there)
    watching.cancel()
    load.close()
    await client.exchange("DELETE", PODS)
    return figures


async def load_scheduler(
    server: Server, client: Client, pid: int, seconds: float, nodes: int, connections: int
) -> list[dict[str, Any]]:
    """Bindings while there are some pods to bind, and while pods are created at three times that rate.

    At last many connections create pods, as fast as the server lets them.
    """
    report(f"scheduler: {nodes} nodes")
    for number in range(nodes):
        node = await client.create(NODE, "", make_node(number))
        # The taint that every new node gets stays until a kubelet has spoken.
        await client.patch(NODE, "", node["metadata"]["name"], {"spec": {"taints": None}}, "merge")
    followed = FollowedPods(client, LoopClock())
    watching = asyncio.create_task(followed.informer.run())
    await followed.informer.synced()
    flood = Flood(client, followed, pid, nodes * PODS_PER_NODE)
    peak = await flood.apply("peak", lambda: flood.create(seconds, None))
    await flood.clear()
    rate = OVERLOAD * peak["per CPU second"]
    overload = await flood.apply("3 x peak", lambda: flood.create(seconds, rate))
    await flood.clear()
    crowd = Load(server, CREATIONS)
    await crowd.connect(connections)
    name = f"{connections:,} connections"
    crowded = await flood.apply(name, lambda: flood.create_by(crowd, seconds))
    crowd.close()
    watching.cancel()
    return [peak, overload, crowded]


class Flood:
    """Creates pods, and counts those that a scheduler binds; at most `most`, which fit."""

    def __init__(self, client: Client, followed: FollowedPods, pid: int, most: int) -> None:
        self._client, self._followed, self._pid, self._most = client, followed, pid, most
        self._body = msgspec.Raw(msgspec.json.encode(make_pod()))
        self._creating = 0

    async def clear(self) -> None:
        """Delete all pods."""
        await self._client.exchange("DELETE", PODS, None, {"gracePeriodSeconds": 0})
        await asyncio.sleep(1.0)

    async def create(self, seconds: float, rate: float | None) -> int:
        """Create pods at a rate, or so that some wait; returns how many."""
        begun, created = time.perf_counter(), 0
        async with asyncio.TaskGroup() as tasks:
            while (passed := time.perf_counter() - begun) < seconds and created < self._most:
                pending = self._followed.pending
                wanted = MAX_PENDING - pending if rate is None else int(rate * passed) - created
                more = max(min(wanted, MAX_CREATING, self._most - created) - self._creating, 0)
                for _ in range(more):
                    tasks.create_task(self._create())
                created += more
                self._creating += more
                await asyncio.sleep(TICK_SECONDS)
        return created

    async def create_by(self, load: Load, seconds: float) -> int:
        """Let many connections create pods; returns how many they have created."""
        figures = await load.apply("many connections", seconds, None, self._most)
        await load.rest()
        report(f"scheduler: {figures.codes[REFUSED]} creations refused")
        return load.accepted

    async def apply(self, name: str, create: Callable[[], Awaitable[int]]) -> dict[str, Any]:
        """Create pods, then wait until all are bound."""
        report(f"scheduler: {name}")
        followed = self._followed
        begun, cpu, bound = time.perf_counter(), _cpu(self._pid), followed.bound
        created = await create()
        took, within, cpu_within = time.perf_counter() - begun, followed.bound - bound, _cpu(self._pid) - cpu
        report(f"scheduler: {created} created, {within} bound meanwhile")
        async with asyncio.timeout(60 + 10 * took):
            while followed.bound - bound < created:
                await asyncio.sleep(0.1)
        return {
            "load": name,
            "seconds": took,
            "created/s": created / took,
            "bound/s": within / took,
            "per CPU second": within / max(cpu_within, 0.01),
            "per CPU second in all": created / max(_cpu(self._pid) - cpu, 0.01),
            "created": created,
            "bound in the end": followed.bound - bound,
            "seconds in all": time.perf_counter() - begun,
            "MiB": _resident_mib(self._pid),
        }

    async def _create(self) -> None:
        await self._client.post(POD, NAMESPACE, self._body)
        self._creating -= 1


@asynccontextmanager
async def served(place: Path, *flags: str) -> AsyncIterator[tuple[Server, Path]]:
    kubeconfig = place / "kubeconfig"
    async with command_process("apiserver", kubeconfig, *flags) as pid:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        ca = b64decode(cluster["certificate-authority-data"]).decode()
        port = int(cluster["server"].rpartition(":")[2])
        yield Server(port, user["token"], ssl.create_default_context(cadata=ca), pid), kubeconfig


async def scheduler_kubeconfig(client: Client, admin: Path) -> Path:
    """How the scheduler reaches the server: as a component of the cluster."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SCHEDULER}}
    await client.create(SERVICE_ACCOUNT, "kube-system", account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = SERVICE_ACCOUNT.path("kube-system", SCHEDULER, "token")
    answer = await client.call("POST", path, None, request)
    content = yaml.safe_load(admin.read_text())
    content["users"][0]["user"] = {"token": answer["status"]["token"]}
    kubeconfig = admin.with_name("scheduler.kubeconfig")
    kubeconfig.write_text(yaml.safe_dump(content))
    return kubeconfig


def server_table(figures: list[Figures]) -> Table:
    rates = ("due/s", "accepted/s", "refused/s")
    table = Table("load", *rates, "unexpected", "per CPU s", "p50 ms", "p99 ms", "MiB")
    for each in figures:
        table.add_row(
            each.load,
            f"{each.due / each.seconds:,.0f}",
            f"{each.accepted / each.seconds:,.0f}",
            f"{each.codes[REFUSED] / each.seconds:,.0f}",
            str(each.unexpected + each.lost),
            f"{each.accepted / each.cpu_seconds:,.0f}",
            f"{each.latency_ms(0.5):,.0f}",
            f"{each.latency_ms(0.99):,.0f}",
            f"{each.resident_mib:,.0f}",
        )
    return table


async def measure_server(options: argparse.Namespace, place: Path) -> Table:
    limits = f"--max-requests-inflight={options.reads}", f"--max-mutating-requests-inflight={options.writes}"
    async with served(place, *limits) as (server, kubeconfig), connected(find_access(kubeconfig)) as client:
        figures = await load_server(server, client, options.seconds / 3, options.connections)
        return server_table(figures)


async def measure_scheduler(options: argparse.Namespace, place: Path) -> Table:
    limits = f"--max-requests-inflight={options.reads}", f"--max-mutating-requests-inflight={options.writes}"
    async with served(place, *limits) as (server, kubeconfig):
        access, clock = find_access(kubeconfig), LoopClock()
        async with connected(access) as client:
            account = await scheduler_kubeconfig(client, kubeconfig)
            async with scheduler_process(place, account, None, access, clock, flags=()) as (pid, _):
                found = await load_scheduler(
                    server, client, pid, options.seconds / 3, options.nodes, options.connections
                )
    table = Table(*found[0])
    for each in found:
        values = (f"{value:,.1f}" if isinstance(value, float) else f"{value}" for value in each.values())
        table.add_row(*values)
    return table


async def run(options: argparse.Namespace) -> None:
    measures = {"server": measure_server, "scheduler": measure_scheduler}
    for name, measure in measures.items():
        if options.only in (None, name):
            with TemporaryDirectory() as place:
                Console(width=130).print(await measure(options, Path(place)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="of the whole measurement of each")
    parser.add_argument("--connections", type=int, default=1500)
    parser.add_argument("--reads", type=int, default=MAX_READS, help="the server's limit")
    parser.add_argument("--writes", type=int, default=MAX_WRITES, help="the server's limit")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--only", choices=("server", "scheduler"))
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
