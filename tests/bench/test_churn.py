"""The churn of pods: what is created, what is deleted, and when memory counts as level."""

from __future__ import annotations

import asyncio
from random import Random
from xml.etree import ElementTree

import pytest

from bench.churn import Churn, Sample, slope_mib
from moorage.client.client import Client
from moorage.client.kinds import CORE_EVENT, DEPLOYMENT, POD
from moorage.simulation.line_chart import line_chart
from moorage_cluster.apiserver.embedded import EmbeddedServer

EVENT = {
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
}


def test_so_many_pods_are_created_and_the_oldest_go() -> None:
    async def scenario() -> None:
        server = EmbeddedServer()
        client = Client(server.api, server.token)
        churn = Churn(client, live=100, event_seconds=60, random=Random(1))
        await churn.advance(400)
        pods, deployments = await client.list(POD), await client.list(DEPLOYMENT)
        assert churn.created >= 400
        assert len(pods) + sum(each["spec"]["replicas"] for each in deployments) <= 100
        assert len({each["metadata"]["labels"]["build"] for each in pods}) == len(pods)
        assert {bool(each["spec"].get("affinity")) for each in pods} == {True, False}
        assert deployments
        server.close()

    asyncio.run(scenario())


def test_events_go_when_their_time_has_come() -> None:
    async def scenario() -> list[int]:
        server = EmbeddedServer()
        client = Client(server.api, server.token)
        churn = Churn(client, live=10, event_seconds=60, random=Random(1))
        await client.create(CORE_EVENT, "default", EVENT)
        left = []
        for seconds in (59.0, 61.0):
            await churn.expire_events(seconds)
            left.append(len(await client.list(CORE_EVENT)))
        server.close()
        return left

    assert asyncio.run(scenario()) == [1, 0]


@pytest.mark.parametrize(("kib_a_pod", "slope"), [(0.0, 0.0), (1.024, 10.0)], ids=["level", "growing"])
def test_memory_is_level_if_it_does_not_grow_with_pods_after_it_has_warmed_up(
    kib_a_pod: float, slope: float
) -> None:
    warming = [Sample(at, at * 50, 10.0 * at) for at in range(30)]
    warm = [Sample(at, at * 50, 300 + at * 50 * kib_a_pod / 1024) for at in range(30, 100)]
    assert slope_mib(warming + warm) == pytest.approx(slope, abs=1e-6)


def test_a_chart_has_every_point_and_is_well_formed() -> None:
    chart = ElementTree.fromstring(line_chart({"": [(0, 1), (5, 2), (10, 3)]}, "pods <&>", "MiB"))
    (line,) = chart.iter("{http://www.w3.org/2000/svg}polyline")
    points = [tuple(map(float, each.split(","))) for each in line.attrib["points"].split()]
    assert len(points) == 3
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)
