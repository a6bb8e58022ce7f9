"""Which device selectors and statuses of claims the API server takes, as kube-apiserver v1.36.4 does."""

from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest
from moorage.cel.program import MAX_EXPRESSION_BYTES
from moorage_cluster.apiserver.kinds.resource_claims import (
    DeviceClassStrategy,
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
)
from moorage_cluster.apiserver.strategy import Strategy
from tests.apiserver.kinds.object_builders import an_object, creation_problems
from tests.cel.test_costs import NOT_SUPPORTED, ROWS

TOO_COMPLEX = "Forbidden: too complex, exceeds cost limit"


def a_claim(*expressions: str) -> Manifest:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": selectors}}
    return {"devices": {"requests": [request]}}


def answer(expression: str) -> str | None:
    """What is said of a claim with a selector, without the value and without where a mistake is."""
    problems = creation_problems(ResourceClaimStrategy(), an_object(a_claim(expression)))
    if not problems:
        return None
    (problem,) = problems
    text = str(problem).partition(": ")[2]
    if "compilation failed" in text:
        return "Invalid value: compilation failed"
    _, has_value, reason = text.rpartition('": ')
    return f"Invalid value: {reason}" if has_value else text


def test_selectors_are_taken_and_refused_as_kube_apiserver_does() -> None:
    assert sum(row["refused"] is not None for row in ROWS) > 40
    for row in ROWS:
        if row["expression"] not in {*NOT_SUPPORTED, "device"}:
            assert answer(row["expression"]) == row["refused"], row


FORMS: dict[str, tuple[Strategy, str]] = {
    "a claim": (ResourceClaimStrategy(), "spec.devices.requests[0].exactly"),
    "a template": (ResourceClaimTemplateStrategy(), "spec.spec.devices.requests[0].exactly"),
    "a class": (DeviceClassStrategy(), "spec"),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_endless_selector_is_refused_wherever_it_can_be_written(form: str) -> None:
    strategy, path = FORMS[form]
    spec = a_claim("lists.range(1000000).distinct().size() > 0")
    if form == "a template":
        spec = {"spec": spec}
    elif form == "a class":
        spec = {"selectors": spec["devices"]["requests"][0]["exactly"]["selectors"]}
    problems = creation_problems(strategy, an_object(spec))
    assert [str(each) for each in problems] == [f"{path}.selectors[0].cel.expression: {TOO_COMPLEX}"]


def test_a_long_selector_is_not_even_compiled() -> None:
    limit = f"Too long: may not be more than {MAX_EXPRESSION_BYTES} bytes"
    assert answer('"' + "x" * MAX_EXPRESSION_BYTES + '" != ""') == limit


def test_one_object_cannot_have_selectors_compiled_without_end() -> None:
    expressions = [" && ".join(["true"] * 300) + f" && {number} == 0" for number in range(32)]
    problems = creation_problems(ResourceClaimStrategy(), an_object(a_claim(*expressions)))
    assert 20 < len(problems) < 30
    assert all("compiling all selectors exceeds the limit of one object" in str(each) for each in problems)


def test_what_drivers_say_of_devices_has_limits() -> None:
    given = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
    messages = {
        **{key: given[key] for key in ("driver", "pool", "device")},
        "conditions": [{"type": str(number), "status": "True"} for number in range(9)],
        "data": {"a": "x" * 10 * 1024},
        "networkData": {
            "interfaceName": "x" * 257,
            "hardwareAddress": "x" * 129,
            "ips": [f"10.0.0.{number}/24" for number in range(17)],
        },
    }
    status = {"allocation": {"devices": {"results": [given]}}, "devices": [messages]}
    old = an_object(a_claim())
    problems = ResourceClaimStrategy().validate_status({**old, "status": status}, old)
    assert [str(each) for each in problems] == [
        "status.devices[0].conditions: Too many: 9: must have at most 8 items",
        "status.devices[0].data: Too long: may not be more than 10240 bytes",
        "status.devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes",
        "status.devices[0].networkData.hardwareAddress: Too long: may not be more than 128 bytes",
        "status.devices[0].networkData.ips: Too many: 17: must have at most 16 items",
    ]
