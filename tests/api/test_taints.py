from __future__ import annotations

import pytest

from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.api.taints import has_untolerated, tolerates

TAINT = Taint(key="team", value="a", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(key="team", operator="Equal", value="a", effect="NoSchedule"), True),
        (Toleration(key="team", value="a"), True),
        (Toleration(key="team", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(key="team", value="b"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="team", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="team", operator="Gt", value="0"), False),
    ],
)
def test_what_a_toleration_covers(toleration: Toleration, covers: bool) -> None:
    assert tolerates(toleration, TAINT) == covers


@pytest.mark.parametrize(
    ("effect", "away"), [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False)]
)
def test_only_two_effects_keep_pods_away(effect: str, away: bool) -> None:
    assert has_untolerated((Taint(key="k", effect=effect),), ()) == away
