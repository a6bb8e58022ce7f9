"""Runs all checks over a plugin, and gathers what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.framework.interface.status import PluginError
from moorage.framework.loading.registry import RegistryError
from moorage.testing.asking import Answers, ask, is_refusal
from moorage.testing.checks import answers, dependencies, events, pods, purity, raising, reserving, views
from moorage.testing.clusters import Cluster, standard_clusters
from moorage.testing.learning import learn_extras
from moorage.testing.report import Finding, Outcome, PluginReport
from moorage.testing.stage import Recipe, Stage, recipe_for
from moorage.testing.trial import Check, Trial

CAN_BE_MADE: Final = "can-be-made"

CHECKS: Final[tuple[Check, ...]] = (
    # First, because who changes objects may do so only the first time it sees them.
    *reversed(purity.CHECKS),
    *raising.CHECKS,
    *answers.CHECKS,
    *views.CHECKS,
    *dependencies.CHECKS,
    *pods.CHECKS,
    *reserving.CHECKS,
    *events.CHECKS,
)
"""All rules but the first, that the plugin can be made at all."""


def check_plugin(
    plugin: Callable[..., Any],
    *,
    args: Any = None,
    name: str | None = None,
    clusters: Iterable[Cluster] | None = None,
) -> PluginReport:
    """Check a plugin, given by its class or a function that makes it, against the rules for plugins.

    args: its arguments, as `pluginConfig` has them. name: where the class or function does not say it.
    clusters: where it is asked; without them in `standard_clusters`, with the labels it asks for mixed in.
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
    """What a check finds; where the plugin fails meanwhile, the checks of its answers say so."""
    try:
        yield from check.find(trial)
    except PluginError:
        return


def _notes(trials: Sequence[Trial]) -> Iterator[str]:
    """Why the checks may be worth little: they cannot fail where a plugin has nothing to say."""
    stage = trials[0].stage
    said = [answers for trial in trials for answers in _answers(trial)]
    hint = "give check_plugin clusters in which it does"
    if stage.step("filter") is not None and not any(map(_refuses, said)):
        yield f"its filter refused no node in any cluster; {hint}"
    scores = [set(each.scores.values()) for each in said if each.scores]
    if stage.step("score") is not None and not any(len(each) > 1 for each in scores):
        yield f"it scored all nodes alike in every cluster; {hint}"


def _answers(trial: Trial) -> Iterator[Answers]:
    """What a plugin says of a pod and its nodes; nothing if it says that it cannot."""
    try:
        yield ask(trial.stage, trial.pod)
    except PluginError:
        return


def _refuses(answers: Answers) -> bool:
    narrows = isinstance(answers.pre_filter, frozenset)
    return bool(answers.refusals) or narrows or is_refusal(answers.pre_filter)
