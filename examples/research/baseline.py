"""Three policies for moorage/Scheduling-v0 over equal workloads: chance, best fit, and the scheduler's own.

$ python examples/research/baseline.py
"""

import gymnasium
import numpy as np

SEEDS = range(2)


def random_choice(env, observation, mask, random):
    """Any node that passes the filters."""
    return random.choice(np.flatnonzero(mask[:-1]))


def best_fit(env, observation, mask, random):
    """The feasible node with the least cpu left."""
    return np.where(mask[:-1], observation["free"][:, 0], np.inf).argmin()


def own_choice(env, observation, mask, random):
    """The node that the scheduler would choose."""
    return env.node_names.index(env.simulation.decide().node)


def episode(policy, seed):
    env = gymnasium.make("moorage.research.gym_env:moorage/Scheduling-v0")
    random, total, is_over = np.random.default_rng(seed), 0.0, False
    observation, info = env.reset(seed=seed)
    while not is_over:
        action = policy(env.unwrapped, observation, info["action_mask"], random)
        observation, reward, is_terminated, is_truncated, info = env.step(action)
        total, is_over = total + reward, is_terminated or is_truncated
    result = env.unwrapped.result()
    env.close()
    return total, result


print("POLICY         REWARD     WAITED   P99 WAITED")
for policy in (random_choice, best_fit, own_choice):
    rewards, results = zip(*(episode(policy, seed) for seed in SEEDS), strict=True)
    mean = np.mean([each.waiting_seconds.mean for each in results])
    p99 = np.mean([each.waiting_seconds.p99 for each in results])
    print(f"{policy.__name__:<13} {np.mean(rewards):>7,.0f} {mean:>8.1f} s {p99:>10.1f} s")
