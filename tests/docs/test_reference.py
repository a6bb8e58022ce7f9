"""The generated reference has everything that the source has."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import fields

import moorage
from moorage.cli.main import COMMANDS
from moorage.cli.run_flags import FLAGS
from moorage.config.types import SchedulerConfiguration
from moorage.config.without_effect import WITHOUT_EFFECT
from moorage.emulation.feature_gates import known_gates
from moorage.emulation.kubernetes_version import KUBERNETES_VERSIONS
from moorage.framework.interface.extension_points import METHODS, POINTS
from moorage.plugins import default_registry
from tools.docs import reference
from tools.docs.log_messages import LogMessage, messages
from tools.docs.metrics import plugin_metrics
from tools.docs.plugins import arguments_of, refused
from tools.interface.source import Module, Place, places_in

SOURCE = Path(moorage.__path__[0])


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    return reference.pages()


def headings(page: str) -> set[str]:
    return set(re.findall(r"^#+ (.*)$", page, re.MULTILINE))


def module(text: str) -> list[Place]:
    return list(places_in(Module("tests.docs", ast.parse(text))))


def test_every_command_is_in_the_command_line(pages: Mapping[str, str]) -> None:
    found = headings(pages["cli"])

    assert {f"moorage {name}" for name in COMMANDS} - found == set()
    assert {"moorage plan nodes", "moorage chaos store", "moorage config convert"} <= found


def test_options_have_their_types_defaults_and_sections(pages: Mapping[str, str]) -> None:
    command = pages["cli"].partition("\n## moorage attempts\n")[2].partition("\n## ")[0]

    assert "`-n, --namespace <str>`\n: The pod's namespace. \\[default: default\\]\n" in command
    assert "**Scheduler**\n\n`--scheduler URL`\n" in command


def test_the_scheduler_has_every_flag(pages: Mapping[str, str]) -> None:
    command = pages["cli"].partition("\n## moorage run\n")[2].partition("\n## ")[0]

    assert [flag.name for flag in FLAGS if f"--{flag.name}" not in command] == []


def test_environment_variables_are_found_where_they_are_read(pages: Mapping[str, str]) -> None:
    variables = pages["cli"].partition("## Environment variables")[2]

    assert "| `KUBECONFIG` | read by moorage |" in variables


def test_every_plugin_has_its_extension_points_kinds_and_arguments(pages: Mapping[str, str]) -> None:
    assert set(default_registry()) - headings(pages["plugins"]) == set()
    capacity = pages["plugins"].partition("\n### Capacity\n")[2].partition("\n### ")[0]
    assert "- extension points: PreEnqueue, PreFilter, Filter, PostFilter, PodGroupPostFilter\n" in capacity
    assert "ElasticQuota (`scheduling.x-k8s.io/v1alpha1`)" in capacity
    assert "patch `elasticquotas/status.scheduling.x-k8s.io` in `pre_filter`" in capacity
    assert "| `minCandidateNodesPercentage` | integer, 32 bits | `10` |" in capacity


def test_weights_are_those_of_the_default_configuration(pages: Mapping[str, str]) -> None:
    assert "| [TaintToleration](#tainttoleration) | v1.36, v1.37 | 3 | Filter, Score |" in pages["plugins"]
    assert "| [GangScheduling](#gangscheduling) | v1.37 with feature gates |" in pages["plugins"]


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        ("LoadAware", "args: thresholds.cpu: -1 is not in the range [1, 100]"),
        ("LoadAware", "args: timeout: -1s is not longer than 0s"),
        ("NodeResourcesFit", "args.scoringStrategy.type"),
        ("InterPodAffinity", "args.hardPodAffinityWeight"),
    ],
)
def test_values_that_are_refused_are_found_by_trying(plugin: str, problem: str) -> None:
    args = arguments_of(default_registry()[plugin])

    assert args is not None
    assert [each for each in refused(plugin, args) if problem in each]


def test_every_extension_point_has_its_methods(pages: Mapping[str, str]) -> None:
    page = pages["extension-points"]

    assert {point.metric_name for point in POINTS.values()} - headings(page) == set()
    assert [method for method in METHODS if f"def {method}(" not in page] == []


def test_every_public_name_is_in_the_python_api(pages: Mapping[str, str]) -> None:
    assert set(moorage.__all__) - headings(pages["python-api"]) == set()


@pytest.mark.parametrize(
    "text",
    [
        "    reason: str,\n    *,\n    resolvable: bool = True,\n) -> FilterResult\n```\n\nReject the nodes",
        "SKIP_IN_PARALLEL: Final = PreFlight(SKIP, in_parallel=True)\n```\n\nThere is nothing",
        "### Nodes\n\n```python\nclass Nodes\n```\n\nSome nodes of a snapshot",
        "| `POD` | Pod | `v1` |",
    ],
)
def test_the_python_api_has_signatures_values_and_docstrings(pages: Mapping[str, str], text: str) -> None:
    assert text in pages["python-api"]


def test_every_metric_is_listed(pages: Mapping[str, str]) -> None:
    lines = (SOURCE / "services/metrics.txt").read_text().splitlines()
    names = [line.partition(" |")[0] for line in lines if " | " in line and not line.startswith("#")]

    assert len(names) > 100
    hidden = "scheduler_preemption_goroutines_duration_seconds"
    assert [name for name in names if f"\n`{name}`\n" not in pages["metrics"] and name != hidden] == []


def test_every_metric_of_a_plugin_is_found(pages: Mapping[str, str]) -> None:
    registered = {
        name
        for path in (SOURCE / "optional_plugins").rglob("*.py")
        if "metrics" in (text := path.read_text())
        for name in re.findall(r'"(moorage_\w+)"', text)
    }

    assert len(registered) > 10
    assert {name for name in registered if f"\n`{name}`\n" not in pages["metrics"]} == set()


def test_a_metric_of_a_plugin_has_its_help_and_labels() -> None:
    text = 'handle.metrics.counter("a_total", "Number of" " things.", ("x", "y"))\n'
    ((spec, _),) = plugin_metrics(module(text))

    assert (spec.name, spec.kind, spec.help, spec.labels) == (
        "a_total",
        "counter",
        "Number of things.",
        ("x", "y"),
    )


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('log.info(3, "Bound", pod=p)', [("3", "Bound", ("pod",))]),
        ('log.error(e, "Failed", pod=p, logger=N)', [("error", "Failed", ("pod",))]),
        ('log.warning("Slow " "call", ms=1)', [("warning", "Slow call", ("ms",))]),
        ('log.infof(0, f"Serving on {port}")', [("0", "Serving on …", ())]),
        (
            'log.info(2 if a else 4, "A" if b else "B")',
            [("2", "A", ()), ("4", "A", ()), ("2", "B", ()), ("4", "B", ())],
        ),
        ('text = "Said"\n    log.info(1, text)', [("1", "Said", ())]),
        ("log.info(1, given)", [("1", "One", ()), ("1", "Two", ())]),
        ('plain.info("Heard")', [("0", "Heard", ())]),
        ('plain.debug("Tried %s", a)', [("4", "Tried %s", ())]),
        ('other.info("not a logger")', []),
    ],
)
def test_the_messages_of_a_call(call: str, found: list[tuple[str, str, tuple[str, ...]]]) -> None:
    text = f"""
log = Logger(__name__)
plain = logging.getLogger(__name__)

def write(given):
    {call}

write("One")
write("Two")
"""
    assert list(messages(module(text))) == [LogMessage("tests.docs", *each) for each in found]


def test_messages_of_all_modules_are_found(pages: Mapping[str, str]) -> None:
    texts = re.findall(r"^\| `([^`]*)`", pages["log-messages"], re.MULTILINE)

    assert len(texts) > 150
    assert {"Attempting to schedule pod", "Successfully bound pod to node"} <= set(texts)
    logging = re.compile(r"\blog\.(info|infof|warning|error|exception)\(")
    files = [path for path in SOURCE.rglob("*.py") if logging.search(path.read_text())]
    names = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in files}
    assert {name for name in names if f"| `{name}` |" not in pages["log-messages"]} == {"moorage.klog"}


def test_every_field_of_the_configuration_is_listed(pages: Mapping[str, str]) -> None:
    page = pages["configuration"]

    assert [each for each in fields(SchedulerConfiguration) if f"| `{each.encode_name}` |" not in page] == []
    assert [reason for reason in WITHOUT_EFFECT.values() if f"No effect: {reason}." not in page] == []
    assert "| `leaseDuration` | duration | `15s` |" in page


def test_every_feature_gate_is_listed_with_its_stages(pages: Mapping[str, str]) -> None:
    names = {name for minor in KUBERNETES_VERSIONS for name in known_gates(minor)}

    assert {name for name in names if f"| `{name}` |" not in pages["feature-gates"]} == set()
    assert "| `GenericWorkload` | alpha, off | " in pages["feature-gates"]
