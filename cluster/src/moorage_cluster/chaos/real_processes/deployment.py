"""The processes: an API server with a data directory and an audit log, and two schedulers."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import NODE, SERVICE_ACCOUNT
from moorage.http.errors import ConnectionFailed, KubeconfigError, RequestError
from moorage.http.free_port import free_port
from moorage_cluster.chaos.real_processes.disk import Disk
from moorage_cluster.chaos.real_processes.process import SupervisedProcess, Usage
from moorage_cluster.chaos.real_processes.scenarios import LEASE_SECONDS, Plan

START_SECONDS: Final = 120.0
"""Time limit of the start of all processes, in seconds; it takes three on a quiet machine."""
ACCOUNT: Final = "system:serviceaccount:kube-system:scheduler-"
"""Beginning of the names of the users that scheduler processes are."""
_NAMESPACE: Final = "kube-system"
_ACCOUNTS: Final = 64
"""Number of accounts: each scheduler process has one of its own."""
_NODES: Final = 5
_NODE_CPU: Final = "4"
_IDLE_SECONDS: Final = 10.0
_SERVES: Final = ("Serving securely", "API at https:")
"""What a scheduler and the API server say once they serve."""
_GIVES_UP: Final = ("Leaderelection lost", "Scheduling loop is stuck")
"""What a scheduler logs that ends because it cannot lead any more."""
FAILURES: Final = (RequestError, ConnectionFailed, TimeoutError)
"""How a request can fail."""


class Deployment:
    """An API server and two schedulers; failed: called with what must not happen."""

    def __init__(self, plan: Plan, directory: Path, disk: Disk, failed: Callable[[str], None]) -> None:
        self.directory = directory
        self.disk = disk
        self.audit_log = directory / "audit.log"
        self.kubeconfig = directory / "kubeconfig"
        self.port = free_port()
        self.is_short_of_memory = False
        """Whether a process has been denied memory: then it may end with any failure."""
        self._started = 0
        self._tokens: list[str] = []
        self.server = SupervisedProcess(
            "server", self._server_words, directory, self._excuses_server, failed, plan.max_files
        )
        self.ports = [free_port(), free_port()]
        """Where the schedulers serve."""
        self.schedulers = [
            SupervisedProcess(
                f"scheduler-{number}",
                lambda number=number: self._scheduler_words(number),  # type: ignore[misc]
                directory,
                self._excuses_scheduler,
                failed,
                plan.max_files,
            )
            for number in range(len(self.ports))
        ]
        self.users: dict[str, SupervisedProcess] = {}
        """The scheduler whose process is or was a user; the last one of each is of the running process."""

    def user(self, scheduler: SupervisedProcess) -> str:
        """The user that the running process of a scheduler is."""
        return next(user for user, each in reversed(self.users.items()) if each is scheduler)

    @property
    def running_users(self) -> set[str]:
        """The users that running processes of schedulers are."""
        return {self.user(each) for each in self.schedulers if each.is_running}

    @property
    def processes(self) -> list[SupervisedProcess]:
        """All of them."""
        return [self.server, *self.schedulers]

    @asynccontextmanager
    async def client(self, agent: str) -> AsyncIterator[Client]:
        """A client that may do everything, and tries nothing twice."""
        access = find_access(self.kubeconfig)
        async with connected(access, user_agent=agent, retries=False, idle_seconds=_IDLE_SECONDS) as client:
            yield client

    # -- the beginning

    async def start(self, until: Callable[[], Any]) -> None:
        """Start all processes in a cluster with nodes; `until`: waits a little."""
        await self.server.start()
        while not self.kubeconfig.exists() or not await self._prepared():
            await until()
        for scheduler in self.schedulers:
            await scheduler.start()

    async def _prepared(self) -> bool:
        """Whether accounts and nodes could be created."""
        try:
            async with self.client("chaos-setup") as client:
                self._tokens = [await _token(client, number) for number in range(_ACCOUNTS)]
                for number in range(_NODES):
                    await _create_node(client, f"node-{number}")
        except (ConnectionFailed, KubeconfigError):
            return False  # It does not listen yet.
        return True

    # -- command lines

    def _server_words(self) -> list[str]:
        options = {
            "port": self.port,
            "data-dir": self.disk.directory,
            "kubeconfig": self.kubeconfig,
            "audit-log-path": self.audit_log,
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        return [sys.executable, "-m", "moorage", "apiserver", *flags]

    def _scheduler_words(self, number: int) -> list[str]:
        """The command line of the next process, which is another user than all before it."""
        account = self._started % _ACCOUNTS
        self._started += 1
        self.users.pop(f"{ACCOUNT}{account}", None)  # The order counts.
        self.users[f"{ACCOUNT}{account}"] = self.schedulers[number]
        content = yaml.safe_load(self.kubeconfig.read_text())
        content["users"][0]["user"] = {"token": self._tokens[account]}
        kubeconfig = self.directory / f"scheduler-{number}.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(content))
        config = self.directory / f"scheduler-{number}.yaml"
        config.write_text(yaml.safe_dump(_configuration(kubeconfig)))
        port = f"--secure-port={self.ports[number]}"
        return [sys.executable, "-m", "moorage", "run", f"--config={config}", port]

    # -- ends

    def not_ready(self) -> list[str]:
        """The names of processes that do not run, or have not begun to serve."""
        return [each.name for each in self.processes if not _serves(each)]

    def _excuses_server(self, status: int, log: str) -> bool:
        return status != 0 and ((self.disk.has_been_full and "cannot use" in log) or self.is_short_of_memory)

    def _excuses_scheduler(self, status: int, log: str) -> bool:
        gives_up = status == 1 and any(text in log for text in _GIVES_UP)
        return gives_up or (status != 0 and self.is_short_of_memory)

    def measure(self) -> dict[str, Usage]:
        """What each running process holds, by name."""
        found = {}
        for process in self.processes:
            try:
                found[process.name] = process.usage()
            except OSError:
                continue  # It has just ended.
        return found


def _serves(process: SupervisedProcess) -> bool:
    return process.is_running and any(text in process.log for text in _SERVES)


def _configuration(kubeconfig: Path) -> Manifest:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
        "podMaxBackoffSeconds": 2,
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": f"{LEASE_SECONDS}s",
            "renewDeadline": f"{LEASE_SECONDS - 1}s",
            "retryPeriod": "500ms",
        },
    }


async def _token(client: Client, number: int) -> str:
    """The token of a new account."""
    name = f"scheduler-{number}"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    await client.create(SERVICE_ACCOUNT, _NAMESPACE, account)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.call("POST", SERVICE_ACCOUNT.path(_NAMESPACE, name, "token"), None, request)
    token: str = answer["status"]["token"]
    return token


async def _create_node(client: Client, name: str) -> None:
    """A node that is ready, without a kubelet."""
    capacity = {"cpu": _NODE_CPU, "memory": "8Gi", "pods": "110"}
    node: Manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    await client.create(NODE, "", node)
    await client.patch(NODE, "", name, {"spec": {"taints": None}}, "merge")
