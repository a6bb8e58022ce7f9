"""Extenders as processes: somebody's extender asked by `moorage run`, and `moorage extender` by others."""

from __future__ import annotations

import json
import os
import signal
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

from tests.apiserver.client import node
from tests.apiserver.running import Kubectl, RunningServer, start_server
from tests.extenders.extender_responses import configuration_with
from tests.extenders.processes import Program
from tests.run.running import RunningScheduler
from tests.services.authorities import Authority

TIMEOUT_SECONDS = "--timeout=100s"
HERE = Path(__file__).parent
PLUGIN = '''
"""Pods belong on nodes of their own colour."""


class OwnColour:
    name = "OwnColour"

    def filter_node(self, cycle, pod, node):
        return None if node.labels.get("color") == pod.labels["color"] else "node has another colour"

    def score_node(self, cycle, pod, node):
        return 100 - 10 * len(node.pods)
'''


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with start_server(tmp_path) as running:
        yield running


@pytest.fixture
def kubectl(server: RunningServer, tmp_path: Path) -> Kubectl:
    """kubectl, in a cluster of a red node and two blue ones."""
    kubectl = Kubectl(server, tmp_path)
    for name, colour in (("n1", "blue"), ("n2", "blue"), ("n3", "red")):
        made = node(name)
        made["metadata"].setdefault("labels", {})["color"] = colour
        kubectl.create(made)
        kubectl("taint", "nodes", name, "node.kubernetes.io/not-ready-")
    return kubectl


def pod(name: str, **labels: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def configured(server: RunningServer, folder: Path, *extenders: dict[str, Any]) -> str:
    """A configuration in a file; the flag that names it."""
    path = folder / "scheduler.yaml"
    config = {"clientConnection": {"kubeconfig": str(server.kubeconfig)}, "extenders": list(extenders)}
    path.write_text(yaml.safe_dump(configuration_with(config)))
    return f"--config={path}"


def post(url: str, question: Any, context: ssl.SSLContext | None = None) -> Any:
    request = Request(url, json.dumps(question).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=30, context=context) as answer:
        return json.loads(answer.read())


def scheduled_to(kubectl: Kubectl, name: str) -> str:
    """The node of a pod, once it has one."""
    kubectl("wait", f"pod/{name}", "--for=condition=PodScheduled", TIMEOUT_SECONDS)
    return kubectl("get", "pod", name, "-o", "jsonpath={.spec.nodeName}")


def refused(kubectl: Kubectl, name: str, reason: str) -> str:
    """Why a pod has no node, once that is said."""
    where = "{.status.conditions[?(@.type=='PodScheduled')].reason}"
    kubectl("wait", f"pod/{name}", f"--for=jsonpath={where}={reason}", TIMEOUT_SECONDS)
    return kubectl("get", "pod", name, "-o", f"jsonpath={where.replace('reason', 'message')}")


def test_a_third_party_extender(server: RunningServer, kubectl: Kubectl, tmp_path: Path) -> None:
    user = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]
    environment = {**os.environ, "SERVER": server.url, "TOKEN": user["token"]}
    with Program(str(HERE / "extender_process.py"), folder=tmp_path, environment=environment) as extender:
        url = extender.says("http://")
        entry = {
            "urlPrefix": url,
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 100,
            "bindVerb": "bind",
            "httpTimeout": "600s",
        }
        with RunningScheduler(server.kubeconfig, configured(server, tmp_path, entry)) as scheduler:
            kubectl.create(pod("good"))
            assert scheduled_to(kubectl, "good") == "n2"
            for verb in ("filter", "prioritize", "bind"):
                extender.says(verb)
            kubectl("wait", "--for=jsonpath={.reason}=Scheduled", "event", "--all", TIMEOUT_SECONDS)

            post(f"{url}/mode", {"filter": "refuse"})
            kubectl.create(pod("refused"))
            message = refused(kubectl, "refused", "Unschedulable")
            assert message.startswith("0/3 nodes are available: 3 node is not blue. "), message

            post(f"{url}/mode", {"filter": "fail"})
            kubectl.create(pod("failed"))
            message = refused(kubectl, "failed", "SchedulerError")
            assert message == f"failed filter with extender at URL {url}/filter, code 500"

            post(f"{url}/mode", {"filter": ""})
            kubectl("label", "node", "n3", "news=any")  # Whatever happens helps those whom it refused.
            assert {scheduled_to(kubectl, name) for name in ("refused", "failed")} == {"n2"}

            # It does not answer: the lease is renewed all the same, and who is to end ends.
            post(f"{url}/mode", {"filter": "slow"})
            kubectl.create(pod("slow"))
            extender.says("filter")
            _is_renewed(kubectl)
            asked_to_end = time.monotonic()
            scheduler.stop()
            assert time.monotonic() - asked_to_end < 10
        post(f"{url}/mode", {"filter": ""})


def _is_renewed(kubectl: Kubectl) -> None:
    """Returns once the scheduler's lease has been renewed more than once."""
    words = ("get", "lease", "kube-scheduler", "--namespace=kube-system", "--watch")
    watching = kubectl.start(*words, "-o", "jsonpath={.spec.renewTime}{'\\n'}")
    try:
        assert watching.stdout is not None
        seen: set[str] = set()
        while len(seen) < 4:
            line = watching.stdout.readline()
            assert line, "the watch has ended"
            seen.add(line)
    finally:
        watching.kill()
        watching.communicate()


def test_a_plugin_as_an_extender_of_a_scheduler(
    server: RunningServer, kubectl: Kubectl, tmp_path: Path
) -> None:
    file = tmp_path / "own_colour.py"
    file.write_text(PLUGIN)
    options = ("--plugin", str(file), "--kubeconfig", str(server.kubeconfig), "--port", "0")
    with Program("-m", "moorage", "extender", *options, folder=tmp_path) as extender:
        extender.says("OwnColour answers at http://127.0.0.1:")
        snippet = yaml.safe_load("\n".join(line for line in extender.lines if "answers at" not in line))
        (entry,) = snippet["extenders"]
        url = entry.pop("urlPrefix")
        assert entry == {
            "filterVerb": "filter",
            "preemptVerb": "preempt",
            "prioritizeVerb": "prioritize",
            "weight": 1,
            "nodeCacheCapable": True,
        }
        flags = configured(server, tmp_path, {**entry, "urlPrefix": url, "weight": 10})
        with RunningScheduler(server.kubeconfig, flags):
            kubectl.create(pod("red", color="red"))
            assert scheduled_to(kubectl, "red") == "n3"
            # The second one goes where the first one is not: the plugin knows the pods.
            kubectl.create(pod("blue", color="blue"))
            first = scheduled_to(kubectl, "blue")
            kubectl.create(pod("azure", color="blue"))
            assert {first, scheduled_to(kubectl, "azure")} == {"n1", "n2"}
            kubectl.create(pod("grey", color="grey"))
            message = refused(kubectl, "grey", "Unschedulable")
            assert message.startswith("0/3 nodes are available: 3 node has another colour. "), message
        process = extender.process
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert not [line for line in extender.lines if "Traceback" in line]


def test_a_plugin_as_an_extender_over_tls(tmp_path: Path) -> None:
    authority = Authority("extenders")
    pem, ca, client, file = (tmp_path / name for name in ("server.pem", "ca.pem", "client.pem", "own.py"))
    pem.write_text(authority.server("extender.example"))
    ca.write_text(authority.pem)
    client.write_text(authority.client("kube-scheduler")[1])
    file.write_text(PLUGIN)
    words = ("--tls-cert-file", str(pem), "--tls-private-key-file", str(pem), "--client-ca-file", str(ca))
    options = ("--plugin", str(file), "--port", "0", *words)
    question = {
        "Pod": pod("p", color="blue"),
        "Nodes": {"items": [{"metadata": {"name": "n", "labels": {"color": "blue"}}}]},
    }
    with Program("-m", "moorage", "extender", "OwnColour", *options, folder=tmp_path) as extender:
        url = extender.says("answers at").rpartition(" ")[2]
        (entry,) = yaml.safe_load("\n".join(line for line in extender.lines if "answers at" not in line))[
            "extenders"
        ]
        assert (entry["enableHTTPS"], entry["tlsConfig"]["caFile"]) == (True, str(pem))
        trusting = ssl.create_default_context(cafile=str(ca))
        trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
        trusting.check_hostname = False  # The certificate is for a name, and the test knows an address.
        with pytest.raises(HTTPError, match="401") as refusal:
            post(f"{url}/filter", question, trusting)
        with refusal.value as answered:
            assert b"a client certificate is required" in answered.read()
        extender.says("moorage extender: refused 127.0.0.1: it showed no client certificate")
        trusting.load_cert_chain(client)
        question["Pod"]["metadata"]["annotations"] = {"long": "x" * 4_000_000}  # As whole nodes can be.
        answer = post(f"{url}/filter", question, trusting)
        assert [each["metadata"]["name"] for each in answer["Nodes"]["items"]] == ["n"]
        rebound = Request(f"{url}/filter", b"{}", {"Host": "attacker.example"})
        with pytest.raises(HTTPError, match="403") as refusal:
            urlopen(rebound, timeout=30, context=trusting)
        refusal.value.close()
