"""An API server in another process, as its users run it, and kubectl to talk to it."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

STARTS_WITHIN_SECONDS = 120
STOPS_WITHIN_SECONDS = 60
KUBECTL_WITHIN_SECONDS = 120


class RunningServer:
    """A server that listens; leaving its context stops it and says whether all was well."""

    def __init__(self, process: subprocess.Popen[str], url: str, kubeconfig: Path, errors: Path) -> None:
        self.process = process
        self.url = url
        self.kubeconfig = kubeconfig
        self._errors = errors

    @property
    def errors(self) -> str:
        """What the server has written to its standard error output."""
        return self._errors.read_text()

    def stop(self) -> None:
        """Ask the server to end, and see that it ends well and had nothing to complain of."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=STOPS_WITHIN_SECONDS)
        finally:
            self.kill()
        assert self.process.returncode == 0, f"exit code {self.process.returncode}: {self.errors}"
        assert "Traceback" not in self.errors, self.errors

    def kill(self) -> None:
        """End the server at once, as a power cut would."""
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None and error is None:
            self.stop()
        else:
            self.kill()


def start_server(folder: Path, *options: str, command: str = "apiserver") -> RunningServer:
    """Start a command that serves, on a free port, with its files in a folder, and wait until it listens."""
    kubeconfig, errors = folder / "kubeconfig", folder / "stderr"
    words = [sys.executable, "-m", "moorage", command, "--port", "0", "--kubeconfig", str(kubeconfig)]
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [*words, *options], stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=folder
        )
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], STARTS_WITHIN_SECONDS)
    line = process.stdout.readline() if ready else ""
    url = re.search(r"https://\S+:\d+", line)
    server = RunningServer(process, url[0] if url else "", kubeconfig, errors)
    if url is None:
        server.kill()
        raise AssertionError(f"the server did not start: {line} {server.errors}")
    return server


class KubectlError(AssertionError):
    """kubectl succeeded or failed where it should not have."""


class Kubectl:
    """kubectl with a home of its own."""

    def __init__(self, server: RunningServer, home: Path, *options: str) -> None:
        program = Path(sys.executable).with_name("kubectl")
        self._command = [str(program) if program.exists() else str(shutil.which("kubectl")), *options]
        self._environment = {
            "HOME": str(home),
            "KUBECONFIG": str(server.kubeconfig),
            "PATH": os.environ.get("PATH", os.defpath),
        }
        self._server, self._home, self._options = server, home, options

    def with_options(self, *options: str) -> Kubectl:
        """The same kubectl with further options before each command."""
        return Kubectl(self._server, self._home, *self._options, *options)

    def __call__(
        self,
        *arguments: str,
        input: str | bytes | None = None,
        ok: bool = True,
        **environment: str,
    ) -> str:
        """Output of a command that must succeed; without `ok`, also complaints, of one that must fail."""
        done = self.run(*arguments, input=input, **environment)
        if (done.returncode == 0) is not ok:
            expected = "succeed" if ok else "fail"
            raise KubectlError(
                f"kubectl {' '.join(arguments)} did not {expected}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout if ok else done.stdout + done.stderr

    def run(
        self,
        *arguments: str,
        input: str | bytes | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """A finished command, whatever came of it."""
        return subprocess.run(
            [*self._command, *arguments],
            input=input.decode() if isinstance(input, bytes) else input,
            env=self._environment | environment,
            stdin=None if input is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=KUBECTL_WITHIN_SECONDS,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command that goes on, such as a watch; end it with `kill`."""
        return subprocess.Popen(
            [*self._command, *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def json(self, *arguments: str) -> Any:
        """What a command shows with `-o json`."""
        return json.loads(self(*arguments, "-o", "json"))

    def create(self, *objects: dict[str, Any]) -> str:
        """Create objects that must be accepted."""
        return self("create", "-f", "-", input=manifest(*objects))


def manifest(*objects: dict[str, Any]) -> str:
    """Objects as kubectl reads them from a file."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
