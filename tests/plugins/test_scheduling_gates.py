"""SchedulingGates: a pod with gates does not enter the active queue."""

from __future__ import annotations

import pytest

from moorage.framework.interface.status import Code
from tests.builders import make_framework, make_pod

RULES = {
    "no gate": ([], None),
    "one gate": (["example.com/quota"], "waiting for scheduling gates: [example.com/quota]"),
    "all gates are named": (["a", "b"], "waiting for scheduling gates: [a b]"),
}


@pytest.mark.parametrize(("gates", "message"), RULES.values(), ids=RULES.keys())
def test_pre_enqueue(gates: list[str], message: str | None) -> None:
    pod = make_pod("p", scheduling_gates=[{"name": name} for name in gates])
    status = make_framework("SchedulingGates").pre_enqueue(pod)
    if message is None:
        assert status is None
    else:
        assert status is not None
        assert (status.code, status.message) == (Code.UNRESOLVABLE, message)
