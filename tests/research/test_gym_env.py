"""The environment of Gymnasium: its own checker, masks, rewards, seeds, and the committed baseline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from moorage import Cluster, Generator
from moorage.research.gym_env import ID, SchedulingEnv
from moorage.research.rewards import Transition
from tests.builders import node
from tests.research.making import pod

ROOT = Path(__file__).parent.parent.parent
SHAPES = ("name=a,count=2,cpu=4,memory=4Gi", "name=b,count=1,cpu=2,memory=16Gi")
GENERATED = Generator(30, 2.0, 60.0)


def env(workload: Any = GENERATED, **given: Any) -> SchedulingEnv:
    return SchedulingEnv(Cluster.from_shapes(*SHAPES), workload, **given)


def play(played: SchedulingEnv, seed: int, **given: Any) -> list[Any]:
    """An episode at random among what is possible: all that was observed."""
    random = np.random.default_rng(seed)
    seen: list[Any] = []
    observation, info = played.reset(seed=seed)
    is_over = False
    while not is_over:
        seen.append((observation, info))
        action = random.choice(np.flatnonzero(info["action_mask"]))
        observation, reward, is_terminated, is_truncated, info = played.step(action)
        seen.append((reward, is_terminated, is_truncated))
        is_over = is_terminated or is_truncated
    return seen


def test_gymnasiums_own_checker_finds_nothing() -> None:
    cluster = Cluster.from_shapes(*SHAPES)
    made = gymnasium.make(ID, cluster=cluster, workload=GENERATED, render_mode="ansi")
    check_env(made.unwrapped)
    assert "a-0 " in str(made.unwrapped.render())
    made.close()


def test_the_mask_is_what_has_room() -> None:
    played = env()
    for (observation, info), _ in zip(*[iter(play(played, 5))] * 2, strict=True):
        room = (observation["free"] >= observation["request"] - 1e-6).all(axis=1)
        assert info["action_mask"].tolist() == [*room.astype(int), 1]
        assert played.observation_space.contains(observation)


def test_the_same_seed_gives_the_same_episode() -> None:
    assert str(play(env(), 3)) == str(play(env(), 3)) != str(play(env(), 4))
    played = env()
    first, again = str(play(played, 3)), str(play(played, 3))
    assert first == again


def test_the_default_reward_adds_up_to_the_waiting_time() -> None:
    played = env()
    total = sum(each[0] for each in play(played, 7)[1::2])
    waited = [each.waiting_seconds for each in played.result().placements]
    assert total == pytest.approx(-sum(seconds or 0.0 for seconds in waited), abs=1e-6)
    assert total < 0


def test_a_reward_of_ones_own_sees_what_happened() -> None:
    seen: list[Transition] = []

    def reward(transition: Transition) -> float:
        seen.append(transition)
        return 1.0 if transition.node == "a-1" else 0.0

    played = env([pod("one"), pod("two", "3"), pod("three", "3")], reward=reward)
    played.reset(seed=1)
    assert played.node_names == ("a-0", "a-1", "b-0")
    assert played.action_masks().tolist() == [True, True, True, True]
    assert played.step(np.int64(1))[1] == 1.0
    assert played.action_masks().tolist() == [True, True, False, True]
    observation, reward_of_infeasible, _, _, info = played.step(np.int64(2))
    assert (reward_of_infeasible, seen[-1].node, seen[-1].is_feasible) == (0.0, None, False)
    assert (info["pod"], observation["queue"][0]) == ("default/three", 2)
    assert played.step(np.int64(played.wait))[3] is False
    assert (seen[-1].node, seen[-1].is_feasible, seen[-1].pod.name) == (None, True, "three")
    assert seen[-1].seconds >= 1.0
    assert seen[-1].waiting_pod_seconds == pytest.approx(2 * seen[-1].seconds)


def test_an_episode_ends_or_is_truncated() -> None:
    played = env([pod("one"), pod("two")], max_steps=3)
    played.reset(seed=1)
    ends = [played.step(np.int64(played.wait))[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    played.reset(seed=1)
    assert [played.step(np.int64(0))[2:4] for _ in range(2)] == [(False, False), (True, False)]
    assert played.action_masks().tolist() == [False, False, False, True]
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode is over"):
        played.step(np.int64(0))
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        env().step(np.int64(0))
    played.close()


def test_nodes_that_come_and_go_keep_their_index() -> None:
    workload = [pod("one"), pod("two"), pod("three")]
    for manifest, at in zip(workload, ("0s", "2s", "4s"), strict=True):
        manifest["metadata"]["annotations"] = {"moorage.io/arrival": at}
    script = [{"at": "1s", "remove": "a-1"}, {"at": "3s", "add": "name=c,count=1,cpu=2,memory=2Gi"}]
    played = env(workload, max_nodes=4, options={"script": script})
    played.reset(seed=1)
    assert played.node_names == ("a-0", "a-1", "b-0", None)
    observation, *_, info = played.step(np.int64(0))
    assert played.node_names == ("a-0", None, "b-0", None)
    assert (observation["nodes"].tolist(), info["action_mask"].tolist()) == ([1, 0, 1, 0], [1, 0, 1, 0, 1])
    played.step(np.int64(0))
    assert played.node_names == ("a-0", "c-0", "b-0", None)
    played.close()


def test_pending_pods_of_the_cluster_are_the_workload() -> None:
    played = SchedulingEnv(
        Cluster.from_yaml([node("big"), pod("waiting")]), resources=("cpu", "example.com/a")
    )
    observation, info = played.reset(seed=1)
    assert info["pod"] == "default/waiting"
    assert observation["request"].tolist() == pytest.approx([0.025, 0.0])
    played.close()


def test_the_baseline_is_as_published() -> None:
    script = ROOT / "examples" / "research" / "baseline.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == script.with_suffix(".out").read_text()
