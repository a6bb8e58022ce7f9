"""What processes use, as the system and Python count it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from moorage_cluster.soak.usage import usage_here, usage_of


def test_children_count() -> None:
    before = usage_of(os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        own, both = usage_of(child.pid), usage_of(os.getpid())
        child.communicate(b"\n")
    assert own.resident_mib > 1
    assert own.descriptors >= 3
    assert both.resident_mib > before.resident_mib
    assert both.descriptors >= before.descriptors + own.descriptors
    assert both.inside is None


def test_this_process_knows_more() -> None:
    class Thing:
        pass

    async def scenario() -> None:
        things = [Thing() for _ in range(150)]
        inside = usage_here().inside
        assert inside is not None
        assert inside.tasks == 1
        assert inside.blocks > len(things)
        assert inside.objects[f"{Thing.__module__}.{Thing.__qualname__}"] == len(things)

    asyncio.run(scenario())
