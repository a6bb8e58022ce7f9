"""`moorage explain`: why is this pod pending, or where it is?"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import typer
import uvloop
from rich.console import Console

from moorage.api.decode import InputError
from moorage.cli.ignored_groups import not_honoured
from moorage.cli.inspection import SCHEDULER_ERRORS, SchedulerAddress, find_in_queue, show_attempts, why_not
from moorage.cli.plugin_loading import with_plugins
from moorage.cli.process_end import end_process
from moorage.cli.version_options import chosen_version, given_gates, with_gates
from moorage.client.credentials import find_access
from moorage.client.kubeconfig import choose, kubeconfig_paths
from moorage.clock import LoopClock
from moorage.config.load import default_config, load_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.explain.document import as_document
from moorage.explain.explanation import Explanation, explain
from moorage.explain.loading import LoadedCluster, load_from_dump, load_from_server
from moorage.explain.text import print_explanation
from moorage.framework.loading.registry import RegistryError
from moorage.http.errors import KubeconfigError
from moorage.services.extender_client import http_extenders
from moorage.sim.cluster import SimulatedCluster

_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_INPUT_ERRORS: Final = (InputError, RegistryError, KubeconfigError)
_MAX_WIDTH: Final = 120
"""Maximum width of tables, in characters."""


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """What is to be explained, and with what."""

    pod: str
    namespace: str
    node: str
    config: Path | None
    plugins: list[Path] | None
    emulated_version: str | None
    feature_gates: list[str] | None
    dump: list[Path] | None
    kubeconfig: Path | None
    context: str
    scheduler: SchedulerAddress | None = None
    """A running scheduler to ask about the pod; None: none."""

    @property
    def pod_name(self) -> str:
        """The pod's name; InputError if another kind of object is named."""
        kind, slash, name = self.pod.rpartition("/")
        if slash and kind not in ("pod", "pods", "po"):
            raise InputError("", f"{self.pod}: only pods can be explained")
        return name

    def in_namespace(self) -> str:
        """The pod's namespace: the one that is named, else that of the kubeconfig's context."""
        if self.namespace or self.dump:
            return self.namespace or "default"
        if self.kubeconfig is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
            return "default"
        paths = [self.kubeconfig] if self.kubeconfig is not None else kubeconfig_paths(os.environ)
        return choose(paths, self.context).namespace or "default"

    def new_cluster(self, version: KubernetesVersion | None) -> SimulatedCluster:
        """An empty cluster with the configured profiles; `version` is that of the server."""
        version = self.version(version)
        return self.cluster(self.configuration(version), version)

    def version(self, server: KubernetesVersion | None) -> KubernetesVersion:
        """The version to behave like; `server` is that of the server."""
        version = chosen_version(self.emulated_version) or server or DEFAULT_VERSION
        return with_gates(version, given_gates(self.feature_gates))

    def configuration(self, version: KubernetesVersion) -> SchedulerConfiguration:
        """The configuration in force."""
        return default_config(version) if self.config is None else load_config(self.config, version)

    def cluster(self, config: SchedulerConfiguration, version: KubernetesVersion) -> SimulatedCluster:
        """An empty cluster with the profiles of any configuration."""
        extenders = http_extenders(config.extenders, LoopClock())
        return SimulatedCluster((), *with_plugins(config, self.plugins), extenders=extenders, version=version)


def show_attempts_of(
    options: ExplainOptions, scheduler: SchedulerAddress, *, watch: bool, as_json: bool
) -> None:
    """Print what a running scheduler remembers of a pod; with `watch`, new attempts until interrupted."""
    try:
        if options.dump:
            raise InputError("", "--attempts: a running scheduler remembers them, not a dump (--from)")
        namespace, name = options.in_namespace(), options.pod_name
    except _INPUT_ERRORS as error:
        _exit(error)
    show_attempts(scheduler, namespace, name, watch=watch, as_json=as_json)


def _exit(error: Exception) -> NoReturn:
    typer.echo(f"moorage explain: {error}", err=True)
    raise typer.Exit(_UNREADABLE) from None


def show_explanation(options: ExplainOptions, *, everything: bool, as_json: bool) -> None:
    """Explain a pod, and print it; exits with status 2 and one line if that is not possible."""
    try:
        explanation = _explained(options)
    except _INPUT_ERRORS as error:
        _exit(error)
    if as_json:
        typer.echo(json.dumps(as_document(explanation, options.node), indent=2))
    else:
        console = Console(markup=False, highlight=False)
        console.width = min(console.width, _MAX_WIDTH)
        print_explanation(explanation, console, options.node, everything=everything)
    end_process()


def _explained(options: ExplainOptions) -> Explanation:
    loaded = _loaded(options)
    if options.node and loaded.cluster.cache.node(options.node) is None:
        raise InputError("", f"there is no node {options.node}")
    explanation = explain(loaded.cluster, loaded.pod)
    cluster = loaded.cluster
    ignored = not_honoured([loaded.pod], cluster.cache.pod_groups.get, cluster.version)
    explanation.notes[:0] = [*loaded.notes, *ignored]
    if options.scheduler is not None and not loaded.pod.spec.node_name:
        _find_in_queue(explanation, options.scheduler)
    return explanation


def _find_in_queue(explanation: Explanation, scheduler: SchedulerAddress) -> None:
    try:
        explanation.queue = find_in_queue(scheduler, explanation.pod)
    except SCHEDULER_ERRORS as error:
        explanation.notes.append(f"the scheduler's queue cannot be read: {why_not(scheduler, error)}")
    else:
        if explanation.queue is None:
            explanation.notes.append(f"the pod is not in the queue of the scheduler at {scheduler.url}")


def _loaded(options: ExplainOptions) -> LoadedCluster:
    name, namespace = options.pod_name, options.in_namespace()
    if options.dump:
        return load_from_dump(options.dump, namespace, name, options.new_cluster)
    access = find_access(options.kubeconfig, context=options.context)
    return uvloop.run(load_from_server(access, namespace, name, options.new_cluster))
