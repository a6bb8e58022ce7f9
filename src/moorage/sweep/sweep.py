"""A sweep: the tasks of a plan that have no result yet, run by an engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from moorage.sweep.engine import Engine
from moorage.sweep.plan import Plan
from moorage.sweep.results import SweepResult, sweep_result
from moorage.sweep.store import ResultStore

Ended = Callable[[], None]
"""Called after each task."""


def run_sweep(plan: Plan, store: ResultStore, engine: Engine, ended: Ended) -> SweepResult:
    """Run what is missing; the results as far as there are any if it is interrupted (SIGINT)."""
    missing = {key: task for key, task in plan.tasks.items() if key not in store.figures}
    failures: dict[str, str] = {}
    if not missing:
        return sweep_result(plan, store.figures, failures)
    try:
        with closing(engine.run(missing, plan.contents)) as results:
            for key, result in results:
                if result.failure:
                    failures[key] = result.failure
                else:
                    store.add(key, result.figures)
                ended()
    except KeyboardInterrupt:
        pass
    return sweep_result(plan, store.figures, failures)
