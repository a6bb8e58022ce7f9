"""DefaultBinder: what is written to bind a pod, and what a refusal by the cluster comes to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from moorage.api.base import Object
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import BindPod, Effect
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.framework import Framework
from moorage.plugins import default_registry
from tests.builders import make_pod, make_profile


@dataclass
class Recorder:
    """Records what is written, or refuses it."""

    refusal: Exception | None
    written: list[Effect] = field(default_factory=list)

    async def perform(self, effect: Effect) -> Object | None:
        if self.refusal is not None:
            raise self.refusal
        self.written.append(effect)
        return None


POD = make_pod("p")

RULES: dict[str, tuple[Exception | None, list[Effect], str]] = {
    "the pod is bound to its node": (None, [BindPod(POD, "n")], ""),
    "a refusal by the cluster fails the attempt": (
        RuntimeError("conflict"),
        [],
        'running Bind plugin "DefaultBinder": RuntimeError: conflict',
    ),
}


@pytest.mark.parametrize(("refusal", "written", "message"), RULES.values(), ids=RULES.keys())
def test_bind(refusal: Exception | None, written: list[Effect], message: str) -> None:
    effects = Recorder(refusal)
    framework = Framework(make_profile("DefaultBinder"), default_registry(), Handle(effects=effects))
    assert asyncio.run(_bound(framework)) == message
    assert effects.written == written


async def _bound(framework: Framework) -> str:
    try:
        return (await framework.bind(CycleState(), POD, "n")).message
    except PluginError as error:
        return str(error)
