"""Runs all checks on a plugin, and collects their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.framework.interface.status import PluginError
from moorage.framework.loading.registry import RegistryError
from moorage.testing.checks import answers, dependencies, events, pods, purity, raising, reserving, views
from moorage.testing.clusters import Cluster, standard_clusters
from moorage.testing.plugin_answers import Answers, ask, is_refusal
from moorage.testing.plugin_report import Finding, Outcome, PluginReport
from moorage.testing.read_attributes import learn_extras
from moorage.testing.stage import Recipe, Stage, recipe_for
from moorage.testing.trial import Check, Trial

CAN_BE_MADE: Final = "can-be-made"

CHECKS: Final[tuple[Check, ...]] = (
    # First, because a plugin may change objects only the first time it is called with them.
    *reversed(purity.CHECKS),
    *raising.CHECKS,
    *answers.CHECKS,
    *views.CHECKS,
    *dependencies.CHECKS,
    *pods.CHECKS,
    *reserving.CHECKS,
    *events.CHECKS,
)
"""All rules but the first, that the plugin can be instantiated."""


def check_plugin(
    plugin: Callable[..., Any],
    *,
    args: Any = None,
    name: str | None = None,
    clusters: Iterable[Cluster] | None = None,
) -> PluginReport:
    """Check a plugin, given by its class or a function that makes it, against the rules for plugins.

    args: its arguments, as in `pluginConfig`. name: required if the class or function has none.
    clusters: where it is called; by default `standard_clusters`, with the labels it reads mixed in.
    """
    outcome = Outcome(
        CAN_BE_MADE, "It can be made: name, arguments, extension points and signatures are right."
    )
    called = name or getattr(plugin, "name", None) or getattr(plugin, "__name__", "?")
    report = PluginReport(str(called), [outcome])
    try:
        recipe = recipe_for(plugin, name, args)
        wanted = tuple(standard_clusters(learn_extras(recipe)) if clusters is None else clusters)
        trials = list(_trials(recipe, wanted))
    except (RegistryError, InputError) as error:
        outcome.add(Finding(str(error)))
        return report
    report.cases = len(trials)
    for check in CHECKS:
        report.outcomes.append(_outcome(check, trials))
    if report.ok:
        report.notes += _notes(trials)
    return report


def assert_plugin_ok(
    plugin: Callable[..., Any],
    *,
    args: Any = None,
    name: str | None = None,
    clusters: Iterable[Cluster] | None = None,
) -> None:
    """As `check_plugin`, for tests: AssertionError with the whole report if a check fails."""
    report = check_plugin(plugin, args=args, name=name, clusters=clusters)
    if not report.ok:
        raise AssertionError(str(report))


def _trials(recipe: Recipe, clusters: Sequence[Cluster]) -> Iterator[Trial]:
    for cluster in clusters:
        stage = recipe.stage(cluster.objects)
        twins: dict[str, Stage] = {}
        for pod in cluster.pods:
            yield Trial(stage, cluster, pod, twins)


def _outcome(check: Check, trials: Sequence[Trial]) -> Outcome:
    outcome = Outcome(check.name, check.sentence)
    outcome.applies = bool(trials) and check.concerns(trials[0].stage)
    if outcome.applies:
        for trial in trials[:1] if check.once else trials:
            for problem in _found(check, trial):
                outcome.add(Finding(problem, "" if check.once else trial.where))
    return outcome


def _found(check: Check, trial: Trial) -> Iterator[str]:
    """The findings of a check; if the plugin raises meanwhile, the checks of its results report that."""
    try:
        yield from check.find(trial)
    except PluginError:
        return


def _notes(trials: Sequence[Trial]) -> Iterator[str]:
    """Reasons why passed checks may mean little, such as a filter that never rejected a node."""
    stage = trials[0].stage
    answers_of_trials = [answers for trial in trials for answers in _answers(trial)]
    hint = "give check_plugin clusters in which it does"
    if stage.step("filter") is not None and not any(map(_refuses, answers_of_trials)):
        yield f"its filter refused no node in any cluster; {hint}"
    scores = [set(each.scores.values()) for each in answers_of_trials if each.scores]
    if stage.step("score") is not None and not any(len(each) > 1 for each in scores):
        yield f"it scored all nodes alike in every cluster; {hint}"


def _answers(trial: Trial) -> Iterator[Answers]:
    """A plugin's results for a pod and its nodes; nothing if they are a PluginError."""
    try:
        yield ask(trial.stage, trial.pod)
    except PluginError:
        return


def _refuses(answers: Answers) -> bool:
    narrows = isinstance(answers.pre_filter, frozenset)
    return bool(answers.refusals) or narrows or is_refusal(answers.pre_filter)
