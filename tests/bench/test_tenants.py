"""Hostile tenants beside a user who behaves: a short run with few of them."""

from __future__ import annotations

from argparse import Namespace

from bench.worst.tenants import measure


def test_the_pods_of_the_user_who_behaves_are_bound() -> None:
    options = Namespace(minutes=0.03, nodes=10, tenants=2, each=4)
    alone, beside, fair = measure(options)
    assert alone.tenants_created == 0
    for each in (beside, fair):
        assert each.tenants_created >= 3
    for each in (alone, beside, fair):
        assert each.created >= 4
        assert each.bound >= each.created - 1
        assert len(each.latencies) == each.created
