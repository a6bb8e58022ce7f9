"""`moorage run` in another process: what it says, what it serves, how it ends."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import yaml

from moorage.http.free_port import free_port
from tests.apiserver.running import Kubectl, RunningServer

OUTPUT_TIMEOUT_SECONDS = 60
ENDS_WITHIN_SECONDS = 60
ROLES = ("system:kube-scheduler", "system:volume-scheduler")
ACCOUNT = "system:serviceaccount:kube-system:scheduler"
QUICK_HANDOVER = ("--leader-elect-retry-period=200ms",)
SHORT_LEASE = ("--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2500ms")
"""For a leader that is to lose its lease: on a busy machine, one that is to keep it may lose it, too."""


class Answer(NamedTuple):
    """What an address answers."""

    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class RunningScheduler:
    """A scheduler; leaving its context ends it at once if it has not ended."""

    def __init__(
        self,
        kubeconfig: Path,
        *options: str,
        leads: bool = True,
        program: Sequence[str] = ("-m", "moorage", "run"),
        output: Path | int | None = None,
    ) -> None:
        """output: a file for what it prints, or subprocess.PIPE."""
        self._port = free_port()
        words = [sys.executable, *program, f"--secure-port={self._port}"]
        if not any(option.startswith("--config=") for option in options):
            words.append(f"--kubeconfig={kubeconfig}")
        with output.open("w") if isinstance(output, Path) else nullcontext(output) as stdout:
            self.process = subprocess.Popen(
                [*words, *QUICK_HANDOVER, *options],
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                cwd=kubeconfig.parent,
            )
        self._lines: list[str] = []
        self._seen = 0
        self._received = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.says("Serving securely")
            if leads:
                self.says("Successfully acquired lease")
        except BaseException:
            self.kill()
            raise

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._received:
                self._lines.append(line)
                self._received.notify_all()
        with self._received:
            self._is_over = True
            self._received.notify_all()

    @property
    def address(self) -> str:
        """Where it serves."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """All it has said."""
        return "".join(self._lines)

    def says(self, text: str) -> str:
        """The next line that contains a text; waits for it."""

        def is_there() -> bool:
            return self._is_over or any(text in line for line in self._lines[self._seen :])

        with self._received:
            self._received.wait_for(is_there, OUTPUT_TIMEOUT_SECONDS)
            for number in range(self._seen, len(self._lines)):
                if text in self._lines[number]:
                    self._seen = number + 1
                    return self._lines[number]
        raise AssertionError(f"it did not say {text!r}:\n{self.log}")

    def get(self, path: str, token: str = "", certificate: Path | None = None) -> Answer:
        """What it answers to who has a token, or a certificate (with its key in the same file)."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = Request(f"https://127.0.0.1:{self._port}{path}", headers=headers)
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            trusting.load_cert_chain(certificate)
        try:
            with urlopen(request, context=trusting, timeout=OUTPUT_TIMEOUT_SECONDS) as answer:
                return Answer(answer.status, answer.read().decode())
        except HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode())

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit status, once it has ended by itself."""
        try:
            return self.process.wait(ENDS_WITHIN_SECONDS)
        finally:
            self.kill()

    def stop(self) -> None:
        """Ask it to end, and see that it ends well and had nothing to complain of."""
        self.send(signal.SIGTERM)
        assert self.ended() == 0, self.log
        assert "Traceback" not in self.log, self.log

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None and error is None:
            self.stop()
        else:
            self.kill()


def scheduler_kubeconfig(server: RunningServer, kubectl: Kubectl) -> Path:
    """How a scheduler reaches a server: as an account with the two roles that kube-scheduler has."""
    kubectl("create", "serviceaccount", "scheduler", "--namespace=kube-system")
    for role in ROLES:
        name = role.replace(":", "-")
        kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", f"--user={ACCOUNT}")
    return account_kubeconfig(server, kubectl, "scheduler")


def account_kubeconfig(server: RunningServer, kubectl: Kubectl, account: str) -> Path:
    """How an account in kube-system reaches a server."""
    content = yaml.safe_load(server.kubeconfig.read_text())
    token = kubectl("create", "token", account, "--namespace=kube-system").strip()
    content["users"][0]["user"] = {"token": token}
    path = server.kubeconfig.with_name(f"{account}.kubeconfig")
    path.write_text(yaml.safe_dump(content))
    return path
