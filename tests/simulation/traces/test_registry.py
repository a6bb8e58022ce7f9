"""Which format a file has, units, and lists of machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api.decode import InputError
from moorage.api.node import Node
from moorage.api.quantity import parse_quantity
from moorage.simulation.scenario import ScenarioSource, read_scenario
from moorage.simulation.traces.format_names import TraceFormat
from moorage.simulation.traces.registry import TraceOptions, read_trace_pods
from moorage.simulation.traces.units import DEFAULT_UNITS, parse_units

VM = "vm,sub,dep,1,2,0,0,0,Unknown,2,4\n"


@pytest.mark.parametrize(
    ("name", "is_trace"),
    [
        ("pods.yaml", False),
        ("pods.json", False),
        ("pods.json.gz", False),
        ("instance_events-000000000001.json.gz", True),
        ("collection_events.csv", True),
        ("batch_task.csv", True),
        ("vmtable.csv.gz", True),
        ("packing_trace_zone_a_v1.sqlite", True),
        ("mine.jsonl.gz", True),
        ("mine.parquet", True),
    ],
)
def test_a_trace_is_known_by_its_name(name: str, is_trace: bool) -> None:
    assert TraceOptions().is_trace(Path(name)) is is_trace
    assert TraceOptions(TraceFormat.GOOGLE_2019).is_trace(Path(name))


def test_a_format_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "machines.csv"
    path.write_text(VM)
    with pytest.raises(InputError, match="the header has no column arrival"):
        list(read_trace_pods(path))
    (pod,) = read_trace_pods(path, options=TraceOptions(TraceFormat.AZURE_2019))
    assert pod.requests == (("cpu", "2000m"), ("memory", str(4 << 30)))


@pytest.mark.parametrize("name", ["batch_task.tar.gz", "trace.tgz", "AzurePackingTraceV1.zip"])
def test_an_archive_is_one_line(name: str) -> None:
    with pytest.raises(InputError, match="an archive; extract the trace from it first"):
        TraceOptions().is_trace(Path(name))


def test_units_have_defaults() -> None:
    units = parse_units("memory=1Ti")
    assert (units.cpu, units.memory) == (DEFAULT_UNITS.cpu, parse_quantity("1Ti"))
    assert parse_units("cpu=96,memory=512Gi").cpu_milli(0.5) == 48_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("64", "'64' is not cpu=QUANTITY or memory=QUANTITY"),
        ("disk=1", "'disk=1' is not cpu=QUANTITY or memory=QUANTITY"),
        ("cpu=fast", "cpu: 'fast' is not a quantity"),
        ("cpu=0", "cpu: expected more than 0"),
    ],
)
def test_bad_units_are_named(text: str, problem: str) -> None:
    with pytest.raises(InputError) as error:
        parse_units(text)
    assert str(error.value).startswith(f"trace unit {text!r}: {problem}")


def _nodes(path: Path) -> list[Node]:
    trace = TraceOptions(TraceFormat.AZURE_2019, parse_units("memory=100Gi"))
    workload = path.with_name("vms.csv")
    workload.write_text(VM)
    scenario = read_scenario(ScenarioSource([path], workload=[workload], trace=trace))
    return [each for each in scenario.cluster if isinstance(each, Node)]


def test_the_machines_of_alibaba_2018_are_nodes(tmp_path: Path) -> None:
    path = tmp_path / "machine_meta.csv"
    path.write_text("m_1,0,1,2,96,50,USING\nm_1,900,1,2,64,50,USING\nm_22,0,7,3,64,100,USING\n")
    first, second = _nodes(path)
    assert (first.name, second.name) == ("m-1", "m-22")
    assert first.labels["topology.kubernetes.io/zone"] == "zone-1"
    assert first.status.allocatable == {
        "cpu": parse_quantity("96"),
        "memory": parse_quantity("50Gi"),
        "pods": parse_quantity("110"),
    }


def test_the_nodes_of_alibaba_gpu_2023_have_gpus(tmp_path: Path) -> None:
    path = tmp_path / "openb_node_list_all_node.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\n")
    (node,) = _nodes(path)
    assert node.labels["alibabacloud.com/gpu-card-model"] == "P100"
    assert node.status.allocatable == {
        "cpu": parse_quantity("64"),
        "memory": parse_quantity("256Gi"),
        "nvidia.com/gpu": parse_quantity("2"),
        "alibabacloud.com/gpu-milli": parse_quantity("2000"),
        "pods": parse_quantity("110"),
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "there are no nodes in it"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "there are no nodes in it"),
        ("a,b\n", "line 1: 2 columns; machine_meta has 7, openb_node_list 5"),
        ("m_1,0,1,2,many,50,USING\n", "line 1: cpu_num: 'many' is not an amount"),
    ],
)
def test_bad_lists_of_machines_are_named(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "machine_meta.csv"
    path.write_text(content)
    with pytest.raises(InputError) as error:
        _nodes(path)
    assert str(error.value) == f"{path}: {problem}"
