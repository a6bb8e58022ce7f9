"""Workloads from files: everything is read and validated before anything is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from moorage.api.decode import InputError, convert
from moorage.api.files import load_documents, read_text
from moorage.bench.object_templates import Templates
from moorage.bench.ops import (
    OPS,
    REFUSED_GATES,
    BenchmarkWorkload,
    CreatePodGroups,
    CreatePods,
    Op,
    StartCollectingMetrics,
    StopCollectingMetrics,
    TestCase,
    ThresholdMetricSelector,
)
from moorage.bench.params import BadOp, Params, resolved
from moorage.config.load import load_config
from moorage.config.problems import ConfigError
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.feature_gates import GateError
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

FILE_NAME: Final = "performance-config.yaml"
"""The name of workload files in a directory."""
_DECLARES_FEATURES: Final = "NodeDeclaredFeatures"
"""The feature gate of workloads whose nodes declare features."""
_NO_GROUPS: Final = "Kubernetes {} without the feature gate GenericWorkload does not schedule groups of pods"
_FEATURE_COUNT: Final = "numNodeDeclaredFeatures"
"""The parameter with their number; no operation refers to it."""


@dataclass(frozen=True, slots=True)
class PlannedWorkload:
    """A workload with everything it needs to run."""

    case: str
    workload: str
    labels: frozenset[str]
    ops: Sequence[Op] = ()
    templates: Templates = field(default_factory=lambda: Templates(Path()))
    default_pod_template: str | None = None
    threshold: float = 0.0
    threshold_metric: ThresholdMetricSelector = field(default_factory=ThresholdMetricSelector)
    config: SchedulerConfiguration | None = None
    """None: the default configuration."""
    version: KubernetesVersion = DEFAULT_VERSION
    """The version to emulate, with the feature gates of the workload."""
    notes: Sequence[str] = ()
    refused: str = ""
    """Why it cannot be run; empty if it can."""
    error: InputError | None = None
    """What is wrong with its parameters; `select` raises it, so that others of the same file can be run."""
    file: Path = Path()
    """The file that it is from."""
    declared_features: int = 0
    """Number of features that every node declares, and that pods with pod-level resources require."""

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{self.case}/{self.workload}"


def workload_files(paths: Iterable[Path]) -> list[Path]:
    """The workload files at some paths: files themselves, and all workload files in directories."""
    files = []
    for path in paths:
        found = sorted(path.rglob(FILE_NAME)) if path.is_dir() else [path]
        if not found:
            raise InputError(str(path), f"there is no {FILE_NAME} in it")
        files += found
    return list(dict.fromkeys(files))


def read_workloads(file: Path, version: KubernetesVersion = DEFAULT_VERSION) -> list[PlannedWorkload]:
    """All workloads of a file; InputError names file, test case and operation where something is wrong.

    They run in `version`, with the feature gates that they name, unless `version` has those set already.

    If only the parameters of one workload are wrong, that one has the error.
    """
    documents = load_documents(read_text(file), str(file))
    if len(documents) != 1 or not isinstance(documents[0], list) or not documents[0]:
        raise InputError(str(file), "expected a list of test cases")
    templates = Templates(file.parent)
    planned: list[PlannedWorkload] = []
    for index, item in enumerate(documents[0]):
        named = isinstance(item, dict) and isinstance(item.get("name"), str)
        where = f"{file}: {item['name'] if named else f'test case {index}'}"
        planned += _Case(convert(item, TestCase, where), where, file, templates, version).workloads()
    _check_unique([each.name for each in planned], str(file))
    return planned


class _Case:
    """Expands one test case into workloads."""

    def __init__(
        self, case: TestCase, where: str, file: Path, templates: Templates, version: KubernetesVersion
    ) -> None:
        self._version = version
        self._case = case
        self._where = where
        self._file = file
        self._templates = templates
        self._opcodes = [str(each.get("opcode", "")) for each in case.workload_template]

    def workloads(self) -> list[PlannedWorkload]:
        """All workloads of the test case."""
        case = self._case
        if not case.workloads:
            raise InputError(self._where, "there are no workloads")
        if not case.workload_template:
            raise InputError(self._where, "there are no operations")
        ops = [self._op(index, item) for index, item in enumerate(case.workload_template)]
        if not any(_collects(op) for op in ops):
            raise InputError(self._where, "no operation collects metrics")
        return [self._workload(each, ops) for each in case.workloads]

    def _labels(self, workload: BenchmarkWorkload) -> frozenset[str]:
        return frozenset((*self._case.labels, *workload.labels))

    def _op(self, index: int, item: dict[str, Any]) -> Op:
        opcode = self._opcodes[index]
        kind = OPS.get(opcode)
        if kind is None:
            raise InputError(f"{self._where}: op {index}", f"unknown opcode {opcode!r}")
        fields = {key: value for key, value in item.items() if key != "opcode"}
        return convert(fields, kind, self._at(index))

    def _at(self, index: int) -> str:
        return f"{self._where}: op {index} ({self._opcodes[index]})"

    def _config(self, version: KubernetesVersion) -> SchedulerConfiguration | None:
        if not self._case.scheduler_config_path:
            return None
        try:
            return load_config(self._file.parent / self._case.scheduler_config_path, version)
        except (ConfigError, InputError) as error:
            raise InputError(self._where, "; ".join(str(error).splitlines())) from None

    def _workload(self, workload: BenchmarkWorkload, ops: Sequence[Op]) -> PlannedWorkload:
        case, params = self._case, Params(workload.params)
        gates = {**case.feature_gates, **workload.feature_gates, **self._version.gates.given}
        try:
            version, notes = _with_gates(self._version, gates)
        except GateError as error:
            return self._invalid(workload, self._where, f"featureGates: {error}")
        for gate, reason in REFUSED_GATES.items():
            if gates.get(gate):
                return self._refused(workload, f"feature gate {gate}: {reason}")
        for index, op in enumerate(ops):
            if isinstance(op, CreatePodGroups) and not version.features.generic_workload:
                number, opcode = version.minor, self._opcodes[index]
                return self._refused(workload, f"op {index} ({opcode}): {_NO_GROUPS.format(number)}")
        unrolled: list[Op] = []
        for index, op in enumerate(ops):
            try:
                steps = resolved(op, params)
                for step in steps:
                    self._read_templates(step)
            except BadOp as error:
                return self._invalid(workload, self._at(index), str(error))
            except InputError as error:
                raise InputError(self._at(index), str(error)) from None
            unrolled += steps
        features = 0
        if gates.get(_DECLARES_FEATURES) and _FEATURE_COUNT in workload.params:
            features = params.whole(f"${_FEATURE_COUNT}")
        if unused := params.unused():
            return self._invalid(workload, self._where, f"unused parameters: {', '.join(unused)}")
        threshold = workload.threshold
        if isinstance(threshold, dict):
            notes.append("thresholds by topic are not compared")
            threshold = 0.0
        return PlannedWorkload(
            case.name,
            workload.name,
            self._labels(workload),
            unrolled,
            self._templates,
            case.default_pod_template_path,
            threshold,
            workload.threshold_metric_selector
            or case.default_threshold_metric_selector
            or ThresholdMetricSelector(),
            self._config(version),
            version,
            notes,
            file=self._file,
            declared_features=features,
        )

    def _refused(self, workload: BenchmarkWorkload, reason: str) -> PlannedWorkload:
        return PlannedWorkload(
            self._case.name, workload.name, self._labels(workload), refused=reason, file=self._file
        )

    def _invalid(self, workload: BenchmarkWorkload, where: str, reason: str) -> PlannedWorkload:
        error = InputError(f"{where}: workload {workload.name}", reason)
        return PlannedWorkload(
            self._case.name, workload.name, self._labels(workload), error=error, file=self._file
        )

    def _read_templates(self, op: Op) -> None:
        params = getattr(op, "template_params", {})
        for name in op.__struct_fields__:
            if name.endswith("template_path") and getattr(op, name):
                self._templates.get(getattr(op, name), params)
        for path in getattr(op, "template_paths", ()):
            self._templates.get(path)
        if (
            isinstance(op, CreatePods)
            and op.pod_template_path is None
            and self._case.default_pod_template_path
        ):
            self._templates.get(self._case.default_pod_template_path, params)


def _collects(op: Op) -> bool:
    pods = getattr(op, "create_pods_op", op)
    return isinstance(pods, StartCollectingMetrics | StopCollectingMetrics) or bool(
        getattr(pods, "collect_metrics", False)
    )


def _with_gates(version: KubernetesVersion, gates: Mapping[str, bool]) -> tuple[KubernetesVersion, list[str]]:
    """A version with the feature gates of a workload, and notes on those that have no effect here.

    Files are run in other versions than they were written for: gates that a version does not have, or does
    not let be switched, are left out.
    """
    possible = {name: is_on for name, is_on in gates.items() if version.gates.may_set(name, is_on)}
    chosen = version.with_gates(possible)
    ignored = {*chosen.gates.without_effect(), *(gates.keys() - possible.keys())}
    if not ignored:
        return chosen, []
    named = ", ".join(f"{name}={str(gates[name]).lower()}" for name in sorted(ignored))
    return chosen, [f"feature gates that have no effect here are ignored: {named}"]


def _check_unique(names: list[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(where, f"there are two workloads called {name}")
        seen.add(name)
