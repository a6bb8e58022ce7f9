from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage_cluster.processes.command import CommandError
from moorage_cluster.processes.environment import Environment, expand
from moorage_cluster.processes.objects import NamespacedObjects
from tests.sim_processes.harness import ADDRESS, HOST, create_data, create_pod, new_client


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)-$(A)", "x-x"),
        ("$$(A)", "$(A)"),
        ("$(B)", "$(B)"),
        ("$A $ $(A", "$A $ $(A"),
        ("$$$(A)", "$x"),
    ],
)
def test_references_to_variables(text: str, expected: str) -> None:
    assert expand(text, {"A": "x"}) == expected


def resolved(**container: Any) -> dict[str, str]:
    async def run() -> dict[str, str]:
        client = new_client()
        await create_data(client)
        pod = await create_pod(client, container)
        objects = NamespacedObjects(client, "default")
        environment = Environment(objects, pod, ADDRESS, HOST, lambda text: text.replace("/data", "/here"))
        return await environment.variables(pod["spec"]["containers"][0], {"GIVEN": "/data", "A": "given"})

    return asyncio.run(run())


def variable(name: str, **source: Any) -> dict[str, Any]:
    return {"name": name, "valueFrom": source}


def test_variables_come_from_everywhere() -> None:
    assert resolved(
        resources={"requests": {"cpu": "250m"}, "limits": {"memory": "1500Mi"}},
        envFrom=[
            {"configMapRef": {"name": "settings"}, "prefix": "C_"},
            {"secretRef": {"name": "missing", "optional": True}},
        ],
        env=[
            {"name": "A", "value": "a"},
            {"name": "B", "value": "$(A)$(GIVEN) $(C_colour) /data"},
            variable("NAME", fieldRef={"fieldPath": "metadata.name"}),
            variable("APP", fieldRef={"fieldPath": "metadata.labels['app']"}),
            variable("IP", fieldRef={"fieldPath": "status.podIP"}),
            variable("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
            variable("CPU", resourceFieldRef={"resource": "requests.cpu"}),
            variable("CPU_MILLI", resourceFieldRef={"resource": "limits.cpu", "divisor": "1m"}),
            variable("MEMORY", resourceFieldRef={"resource": "limits.memory", "divisor": "1Gi"}),
            variable("KEY", secretKeyRef={"name": "keys", "key": "key"}),
            variable("NONE", configMapKeyRef={"name": "settings", "key": "none", "optional": True}),
        ],
    ) == {
        "GIVEN": "/data",
        "C_colour": "blue",
        "C_path": "/here/x",
        "A": "a",
        "B": "a/data blue /here",
        "NAME": "a",
        "APP": "web",
        "IP": ADDRESS,
        "NODE": "node-0",
        "CPU": "1",
        "CPU_MILLI": "7900",
        "MEMORY": "2",
        "KEY": "secret",
    }


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "other", "key": "x"}}, 'configmap "other" not found'),
        (
            {"configMapKeyRef": {"name": "settings", "key": "x"}},
            "couldn't find key x in ConfigMap default/settings",
        ),
        ({"secretKeyRef": {"name": "keys", "key": "x"}}, "couldn't find key x in Secret default/keys"),
    ],
)
def test_what_is_missing_is_named(source: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=f"^{message}$"):
        resolved(env=[variable("A", **source)])
