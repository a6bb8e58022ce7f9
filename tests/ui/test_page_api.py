"""docs/reference/page-api.md against the documents themselves, and its example as a script runs it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from moorage.ui.application import timeline_routes
from moorage.ui.documents import Changes, ClusterState, History, NodeState, PodState, Queue, SourceInfo
from moorage.ui.health import Health, HealthPlot
from tests.ui.serving import Served, TableSource, example_nodes, waiting_pod

PAGE = (Path(__file__).parents[2] / "docs/reference/page-api.md").read_text()


DOCUMENTS = (SourceInfo, ClusterState, Changes, History, NodeState, PodState, Queue, Health, HealthPlot)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_field_is_described(document: type[msgspec.Struct]) -> None:
    described = set(re.findall(r"`(\w+)`", PAGE))

    assert {each.encode_name for each in msgspec.structs.fields(document)} - described == set()


def test_every_path_that_all_sources_have_is_described() -> None:
    source = TableSource()
    described = set(re.findall(r"^\| `/api/v1/([\w-]+)", PAGE, re.MULTILINE))

    assert {*timeline_routes(source), *source.routes()} - described == set()


def test_the_example_prints_the_queue(tmp_path: Path) -> None:
    [script] = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with Served(TableSource(example_nodes(1), {"default/waiting": waiting_pod(1)})) as served:
        (tmp_path / "ui.log").write_text(f"The page is at {served.url}\n")
        done = subprocess.run(
            ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
        )
    assert [each["pod"] for each in json.loads(done.stdout)["items"]] == ["default/waiting"]
