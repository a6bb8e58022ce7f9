"""The Helm chart and Kustomize render what `moorage manifests` prints, for the same settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl
from tests.manifests import operations as deeds
from tests.manifests.forms import comparable
from tests.manifests.harness import RoleHarness, in_role_harness
from tests.manifests.installing import as_text
from tests.manifests.operations import Operation
from tests.manifests.printing import Manifest
from tests.manifests.settings import SETTINGS, Settings
from tools.deploy import ROOT, generated

Form = Callable[[Settings, Path], list[Manifest]]
FORMS: dict[str, Form] = {
    "chart": Settings.charted,
    "chart with printed values": Settings.charted_as_printed,
    "kustomize": Settings.kustomized,
}
CASES = [
    (case, form)
    for case, settings in SETTINGS.items()
    for form in FORMS
    if not (form == "kustomize" and settings.overlay is None)
    and not (form == "chart" and settings.values is None)
]


@pytest.mark.parametrize(("case", "form"), CASES, ids=str)
def test_every_form_has_the_objects_that_are_printed(case: str, form: str, tmp_path: Path) -> None:
    settings = SETTINGS[case]
    assert comparable(FORMS[form](settings, tmp_path)) == comparable(settings.printed(tmp_path))


def test_what_is_written_from_the_command_is_current() -> None:
    files = generated()
    assert {path: (ROOT / path).read_text() for path in files} == files


@pytest.mark.parametrize("form", FORMS)
def test_the_api_server_takes_every_form_as_it_is(
    form: str, kubectl: Kubectl, harbour: str, tmp_path: Path
) -> None:
    objects = [
        obj
        for case, settings in SETTINGS.items()
        if (case, form) in CASES
        for obj in FORMS[form](settings, tmp_path)
    ]
    options = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
    output = kubectl("apply", *options, "-f", "-", input=as_text(objects))
    lines = output.splitlines()
    assert len(lines) == len(objects)
    assert all(line.endswith(" serverside-applied (server dry run)") for line in lines), output


@pytest.fixture(scope="module")
def harbour(kubectl: Kubectl) -> str:
    """A namespace of one of the settings."""
    kubectl("create", "namespace", "harbour")
    return "harbour"


@pytest.mark.parametrize(
    "operation",
    [
        deeds.schedules,
        deeds.preempts_pods,
        deeds.gives_a_device,
        deeds.selects_node_for_volume,
        deeds.leads,
        deeds.knows_authorities,
        deeds.shows_metrics,
    ],
    ids=lambda operation: operation.__name__,
)
@pytest.mark.parametrize("form", ["chart", "kustomize"])
def test_a_scheduler_works_under_the_roles_of_every_form(
    form: str, operation: Operation, tmp_path: Path
) -> None:
    objects = FORMS[form](SETTINGS["metrics"], tmp_path)

    async def scenario(harness: RoleHarness) -> bool:
        await harness.allow(objects)
        return await operation(harness, objects)

    assert in_role_harness(scenario)
