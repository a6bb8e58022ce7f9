"""A small extender, as somebody would write one: a program of its own that knows nothing of moorage.

It lets pods run on blue nodes, likes `n2` best, and binds pods itself. How it behaves can be changed while it
runs: `POST /mode` with `{"filter": "refuse"}`, for example. It says each thing that it is asked for.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import Request, urlopen

MODES: dict[str, str] = {}
CHANGED = threading.Condition()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb = self.path.rpartition("/")[2]
        if verb == "mode":
            with CHANGED:
                MODES.update(question)
                CHANGED.notify_all()
            self._answer(200, {})
            return
        say(verb)
        with CHANGED:
            CHANGED.wait_for(lambda: MODES.get(verb) != "slow")
            mode = MODES.get(verb, "")
        if mode == "fail":
            self._answer(500, {"message": "oops"})
        else:
            self._answer(200, ANSWERS[verb](question, mode))

    def _answer(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # Nobody may wait any more.
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are no news."""


def filtered(question: Any, mode: str) -> Any:
    nodes = question["Nodes"]["items"]
    blue = [node for node in nodes if node["metadata"]["labels"].get("color") == "blue" and mode != "refuse"]
    names = {node["metadata"]["name"] for node in blue}
    others = [node["metadata"]["name"] for node in nodes if node["metadata"]["name"] not in names]
    return {"nodes": {"items": blue}, "failedNodes": dict.fromkeys(others, "node is not blue")}


def prioritized(question: Any, mode: str) -> Any:
    names = [node["metadata"]["name"] for node in question["Nodes"]["items"]]
    return [{"host": name, "score": 10 if name == "n2" else 0} for name in names]


def bound(question: Any, mode: str) -> Any:
    path = f"/api/v1/namespaces/{question['PodNamespace']}/pods/{question['PodName']}/binding"
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": question["PodName"], "uid": question["PodUID"]},
        "target": {"kind": "Node", "name": question["Node"]},
    }
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Content-Type": "application/json"}
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    request = Request(os.environ["SERVER"] + path, json.dumps(body).encode(), headers)
    with urlopen(request, context=trusting) as answer:
        answer.read()
    return {}


ANSWERS = {"filter": filtered, "prioritize": prioritized, "bind": bound}

if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    say(f"http://127.0.0.1:{server.server_port}")
    server.serve_forever()
