"""`moorage extender` and `moorage decide` on the command line: what is wrong is said in one line."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from moorage.cli import decide, extender
from moorage.cli.main import app
from moorage.http.client_transport import Endpoint
from moorage.services.extender_client import http_extenders
from tests import builders
from tests.extenders.extender_responses import Service, configuration_with, keeping, scoring

PLUGINS = """
class One:
    name = "One"

    def __init__(self, args):
        self.args = args

    def filter_node(self, cycle, pod, node):
        return None


class Two(One):
    name = "Two"
"""


@pytest.fixture(autouse=True)
def _short_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in this process, whose logs and garbage are not theirs."""
    monkeypatch.setattr(extender, "long_running", lambda command: None)


def complaint(*words: str) -> str:
    result = CliRunner().invoke(app, ["extender", *words])
    assert (result.exit_code, result.stdout) == (1, "")
    return result.stderr.removeprefix("moorage extender: ").rstrip("\n")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plugins.py"
    path.write_text(PLUGINS)
    return path


def test_which_plugin_is_meant_must_be_clear(file: Path) -> None:
    assert complaint() == "which plugin? Name one."
    assert complaint("--plugin", str(file)) == "which plugin? There are One, Two."


def test_plugins_that_are_not_there(tmp_path: Path) -> None:
    assert "there is no plugin Nobody" in complaint("Nobody")
    assert "nowhere.py" in complaint("--plugin", str(tmp_path / "nowhere.py"))
    assert "no_such_module" in complaint("no_such_module:Thing")


def test_arguments_are_one_document(file: Path, tmp_path: Path) -> None:
    args = tmp_path / "args.yaml"
    args.write_text("a: 1\n---\nb: 2\n")
    words = ("One", "--plugin", str(file), "--args", str(args))
    assert complaint(*words) == f"{args}: one document with the plugin's arguments is wanted, not 2"
    args.write_text("{addedAffinity: 5}")
    assert "addedAffinity" in complaint("NodeAffinity", "--args", str(args))


def test_half_of_tls(file: Path) -> None:
    one = ("One", "--plugin", str(file))
    assert complaint(*one, "--tls-cert-file", "x") == "certificate and key must be set together"
    needed = "--client-ca-file: needs --tls-cert-file and --tls-private-key-file"
    assert complaint(*one, "--client-ca-file", "x") == needed


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "extender.example"])
def test_other_hosts_are_not_let_in_without_client_certificates(file: Path, address: str) -> None:
    output = complaint("One", "--plugin", str(file), "--address", address, "--port", "0")
    assert output == f"--address: {address} lets other hosts in, which needs --client-ca-file"
    tls = ("--tls-cert-file", "x", "--tls-private-key-file", "x")
    assert complaint("One", "--plugin", str(file), "--address", address, *tls) == output


def test_a_port_that_is_taken(file: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        output = complaint("One", "--plugin", str(file), "--port", port)
        assert output == f"cannot listen on 127.0.0.1:{port}: address already in use"


def test_decide_asks_extenders_about_what_the_files_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(filter=keeping("a", "b", why="too far"), prioritize=scoring(a=1, b=9))

    def connected(configs: Any, clock: Any) -> Any:
        return http_extenders(configs, clock, service.connect)

    monkeypatch.setattr(decide, "http_extenders", connected)
    nodes = [builders.node(name) for name in "abc"]
    nodes[0]["status"]["unheardOf"] = 5
    cluster, pod, config = tmp_path / "cluster", tmp_path / "pod", tmp_path / "config"
    cluster.write_text(yaml.safe_dump_all(nodes))
    containers = [builders.container(image="registry.example/x:1")]
    pods = [builders.pod("p", namespace="", containers=containers), builders.pod("q", containers=containers)]
    pod.write_text(yaml.safe_dump_all(pods))
    entry = {
        "urlPrefix": "http://x",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 100,
        "bindVerb": "bind",
    }
    config.write_text(yaml.safe_dump(configuration_with({"extenders": [entry]})))
    result = CliRunner().invoke(app, ["decide", str(cluster), "--pod", str(pod), "--config", str(config)])
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if " goes to " in line] == [
        "default/p goes to b",
        "default/q goes to b",
    ]
    assert "too far" in result.stdout
    assert "http://x 9000" in result.stdout
    first = service.questions("filter")[0]
    assert (first["Nodes"]["items"][0]["status"]["unheardOf"], first["Pod"]["metadata"]["namespace"]) == (
        5,
        "default",
    )
    assert not service.questions("bind")  # Nothing is bound in earnest.
    assert service.closed == 2
    assert {type(each) for each in service.endpoints} == {Endpoint}
