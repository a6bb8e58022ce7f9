"""Validation of jobs and of their updates."""

from __future__ import annotations

import re
from typing import Final

from moorage.admission.pods.validation import validate_template
from moorage.api.conditions import condition_status
from moorage.api.manifests import Manifest, copy, labels_of, take
from moorage.api.names import dns_label_problems, pattern_rule
from moorage.api.selectors import SelectorError, written_selector
from moorage.apimachinery.fields import FieldError, invalid, not_supported, required, too_long
from moorage.apimachinery.validation.checks import check_not_negative, check_optional_word, check_unchanged
from moorage.apimachinery.validation.names import check_subdomain
from moorage.apimachinery.validation.selectors import check_label_selector
from moorage_cluster.apiserver.kinds.job_policies import check_failure_policy, check_success_policy
from moorage_cluster.apiserver.kinds.job_scheduling import check_job_scheduling, check_job_scheduling_change
from moorage_cluster.apiserver.kinds.pod_templates import check_match

_UID, _NAME = "controller-uid", "job-name"
_PREFIX = "batch.kubernetes.io/"
_MAX_PARALLEL_INDEXED: Final = 100_000
_MAX_FAILED_INDEXES: Final = 100_000
_MANY_COMPLETIONS: Final = 100_000
_MAX_PARALLEL_OF_MANY: Final = 10_000
_MAX_FAILED_OF_MANY: Final = 10_000
_MAX_MANAGER_LENGTH = 63
_URL_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_URL_PATH_RE = re.compile(_URL_PATH)
_INDEXED = "requires indexed completion mode"
_SUSPENDED_CHANGES = ("nodeSelector", "tolerations", "schedulingGates")


def check_job(obj: Manifest) -> list[FieldError]:
    """Validation errors of a job."""
    spec = obj["spec"]
    errors = _check_generated(obj)
    errors += check_job_spec(spec, "spec")
    errors += check_job_scheduling(spec, "spec.scheduling")
    selector = spec.get("selector")
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        errors += check_label_selector(selector, "spec.selector")
    errors += check_match(selector, spec.get("template") or {}, "spec.template")
    completions = spec.get("completions", 0)
    if spec.get("completionMode") == "Indexed" and completions > 0:
        name = obj["metadata"].get("name", "")
        longest = f"{name}-{completions - 1}"
        if dns_label_problems(longest):
            why = f"will not able to create pod with invalid DNS label: {longest}"
            errors.append(invalid("metadata.name", name, why))
    return errors


def _check_generated(obj: Manifest) -> list[FieldError]:
    """A generated selector selects the job's own pods and no others."""
    spec, metadata = obj["spec"], obj["metadata"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return []
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    errors = [] if uid else [required("metadata.uid")]
    labels = labels_of(spec.get("template") or {})
    expected = {_UID: uid, _NAME: name, _PREFIX + _UID: uid, _PREFIX + _NAME: name}
    for key, value in expected.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.append(required(path, f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(invalid(path, labels, f"must be '{value}'"))
    try:
        generated = written_selector(selector).matches(expected)
    except SelectorError:
        return errors
    return (
        errors
        if generated
        else [*errors, invalid("spec.selector", selector, "`selector` not auto-generated")]
    )


def check_job_spec(spec: Manifest, path: str) -> list[FieldError]:
    """Validation errors of a job's spec, in a job or in a template of one."""
    counts = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    more = ("ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes")
    errors = check_not_negative(spec, (*counts, *more), path)
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if "managedBy" in spec:
        errors += _check_manager(spec["managedBy"], f"{path}.managedBy")
    mode = spec.get("completionMode", "NonIndexed")
    errors += check_optional_word(mode, ("NonIndexed", "Indexed"), f"{path}.completionMode")
    if mode == "Indexed":
        errors += _check_indexed(spec, path)
    elif mode == "NonIndexed":
        errors += [
            invalid(f"{path}.{key}", spec[key], _INDEXED)
            for key in ("backoffLimitPerIndex", "maxFailedIndexes")
            if key in spec
        ]
    if "podFailurePolicy" in spec:
        errors += check_failure_policy(spec, f"{path}.podFailurePolicy")
    if "successPolicy" in spec:
        if mode == "Indexed":
            errors += check_success_policy(spec, f"{path}.successPolicy")
        else:
            errors.append(invalid(f"{path}.successPolicy", spec["successPolicy"], _INDEXED))
    if "podReplacementPolicy" in spec:
        known = ("Failed",) if "podFailurePolicy" in spec else ("Failed", "TerminatingOrFailed")
        errors += check_optional_word(spec["podReplacementPolicy"], known, f"{path}.podReplacementPolicy")
    template = spec.get("template") or {}
    errors += validate_template(template, f"{path}.template")
    return errors + _check_restarts(spec, template, f"{path}.template.spec.restartPolicy")


def _check_restarts(spec: Manifest, template: Manifest, path: str) -> list[FieldError]:
    policy = (template.get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if "podFailurePolicy" in spec and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _check_manager(manager: str, path: str) -> list[FieldError]:
    if not manager:
        return [required(path)]
    domain, _, rest = manager.partition("/")
    if not domain or not rest:
        errors = [invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    else:
        errors = check_subdomain(domain, path)
        if not _URL_PATH_RE.fullmatch(rest):
            errors.append(invalid(path, rest, pattern_rule("Invalid path", _URL_PATH)))
    return [*errors, too_long(path, _MAX_MANAGER_LENGTH)] if len(manager) > _MAX_MANAGER_LENGTH else errors


def _check_indexed(spec: Manifest, path: str) -> list[FieldError]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism", 0)
    most_failed = spec.get("maxFailedIndexes")
    errors = []

    def complain(key: str, value: int, why: str) -> None:
        errors.append(invalid(f"{path}.{key}", value, f"must be less than or equal to {why}"))

    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if parallelism > _MAX_PARALLEL_INDEXED:
        complain("parallelism", parallelism, f"{_MAX_PARALLEL_INDEXED} when completion mode is Indexed")
    if most_failed is not None:
        if completions is not None and most_failed > completions:
            complain("maxFailedIndexes", most_failed, "completions")
        if most_failed > _MAX_FAILED_INDEXES:
            complain("maxFailedIndexes", most_failed, str(_MAX_FAILED_INDEXES))
    if completions is not None and completions > _MANY_COMPLETIONS and "backoffLimitPerIndex" in spec:
        many = f"when completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
        if most_failed is None:
            why = f"must be specified when completions is above {_MANY_COMPLETIONS}"
            errors.append(required(f"{path}.maxFailedIndexes", why))
        elif most_failed > _MAX_FAILED_OF_MANY:
            complain("maxFailedIndexes", most_failed, f"{_MAX_FAILED_OF_MANY} {many}")
        if parallelism > _MAX_PARALLEL_OF_MANY:
            complain("parallelism", parallelism, f"{_MAX_PARALLEL_OF_MANY} {many}")
    return errors


def check_job_change(obj: Manifest, old: Manifest) -> list[FieldError]:
    """Validation errors of immutable fields of a job."""
    spec, before = obj["spec"], old.get("spec") or {}
    errors = _check_completions(spec, before)
    errors += check_unchanged(spec.get("selector"), before.get("selector"), "spec.selector")
    errors += _check_template_change(spec, before, old)
    for key in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        errors += check_unchanged(spec.get(key), before.get(key), f"spec.{key}")
    scheduling = spec.get("scheduling"), before.get("scheduling")
    return errors + check_job_scheduling_change(*scheduling, "spec.scheduling")


def _check_completions(spec: Manifest, before: Manifest) -> list[FieldError]:
    wanted, had = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        return check_unchanged(wanted, had, "spec.completions")
    if wanted in (had, None, spec.get("parallelism")):
        return []
    return [invalid("spec.completions", wanted, "can only be modified in tandem with spec.parallelism")]


def _check_template_change(spec: Manifest, before: Manifest, old: Manifest) -> list[FieldError]:
    template, was = spec.get("template") or {}, before.get("template") or {}
    if template == was:
        return []
    if not _is_at_rest(old):
        return check_unchanged(template, was, "spec.template")
    allowed = _with_allowed_changes(was, template)
    return check_unchanged(template.get("spec"), allowed.get("spec"), "spec.template.spec")


def _is_at_rest(job: Manifest) -> bool:
    """Whether a job is suspended and has no active pods: its pod template may still change then."""
    status = job.get("status") or {}
    paused = condition_status(job, "Suspended") == "True"
    suspended = bool((job.get("spec") or {}).get("suspend"))
    return suspended and ("startTime" not in status or paused) and not status.get("active")


def _with_allowed_changes(was: Manifest, template: Manifest) -> Manifest:
    """The old template with the changes allowed for a suspended job: scheduling and resources of its pods."""
    allowed: Manifest = copy(was)
    spec, wanted = allowed.setdefault("spec", {}), template.get("spec") or {}
    for key in _SUSPENDED_CHANGES:
        take(spec, wanted, key)
    affinity = spec.setdefault("affinity", {})
    take(affinity, wanted.get("affinity") or {}, "nodeAffinity")
    if not affinity and "affinity" not in wanted:
        del spec["affinity"]
    for part in ("containers", "initContainers"):
        old_ones, new_ones = spec.get(part) or [], wanted.get(part) or []
        if len(old_ones) == len(new_ones):
            for old_one, new_one in zip(old_ones, new_ones, strict=True):
                if old_one.get("name") == new_one.get("name"):
                    take(old_one, new_one, "resources")
    return allowed
