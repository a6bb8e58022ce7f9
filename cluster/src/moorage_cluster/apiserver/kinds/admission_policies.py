"""Admission policies and their bindings. They are stored; expressions are neither checked nor evaluated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest, child
from moorage.api.names import dns_1035_label_problems, dns_subdomain_problems
from moorage.apimachinery.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.checks import (
    check_conditions,
    check_one_of,
    check_optional_word,
    repetitions,
)
from moorage.apimachinery.validation.names import check_path_segment, check_qualified_name, check_subdomain
from moorage.apimachinery.validation.selectors import check_label_selector
from moorage_cluster.apiserver.kinds.admission_rules import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    check_match_conditions,
    check_match_resources,
    check_mutating_operations,
    default_match,
)
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.strategy import Strategy

_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_NOT_FOUND_ACTIONS: Final = ("Deny", "Allow")
_PATCHES: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
"""The types of a mutation, and the field with each one's expression."""
_MAX_AUDIT_ANNOTATIONS: Final = 20
_IDENTIFIER_RE: Final = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED: Final = (
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let",
    "loop", "namespace", "null", "package", "return", "true", "var", "void", "while",
)  # fmt: skip
"""Reserved words that are not valid names of CEL variables."""
_NOT_EVALUATED: Final = "admission policies are stored but not evaluated by this server"
_RULE_LISTS: Final = ("resourceRules", "excludeResourceRules")


class _PolicyStrategy(Strategy):
    """Common base of both kinds of policies."""

    has_generation = True
    allows_unconditional_update = False

    def default(self, obj: Manifest) -> None:
        """The failure policy is Fail."""
        super().default(obj)
        spec = child(obj, "spec")
        spec.setdefault("failurePolicy", "Fail")
        if "matchConstraints" in spec:
            default_match(spec["matchConstraints"], _RULE_LISTS)

    def _check_frame(self, spec: Manifest) -> list[FieldError]:
        """Validate all fields except what the policy does."""
        errors = check_optional_word(spec["failurePolicy"], FAILURE_POLICIES, "spec.failurePolicy")
        if "paramKind" in spec:
            errors += _check_parameter_kind(spec["paramKind"], "spec.paramKind")
        match = spec.get("matchConstraints")
        if match is None:
            errors.append(required("spec.matchConstraints"))
        else:
            errors += check_match_resources(match, "spec.matchConstraints")
            if not match.get("resourceRules"):
                errors.append(required("spec.matchConstraints.resourceRules"))
        errors += check_match_conditions(spec.get("matchConditions") or (), "spec.matchConditions")
        for index, variable in enumerate(spec.get("variables") or ()):
            errors += _check_variable(variable, f"spec.variables[{index}]")
        return errors

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn that the policy is not evaluated, so it rejects and changes nothing."""
        return [_NOT_EVALUATED] if old is None else []


class ValidatingAdmissionPolicyStrategy(_PolicyStrategy, StatusStrategy):
    """A ValidatingAdmissionPolicy: rules for requests."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """At least one validation or audit annotation is required."""
        spec = obj["spec"]
        errors = self._check_frame(spec)
        validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
        if not validations and not annotations:
            why = "validations or auditAnnotations must contain at least one item"
            errors += [required(f"spec.{key}", why) for key in ("validations", "auditAnnotations")]
        for index, validation in enumerate(validations):
            errors += _check_validation(validation, f"spec.validations[{index}]")
        return errors + _check_annotations(annotations, obj["metadata"].get("name", ""))

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Validate the conditions."""
        return check_conditions(obj["status"].get("conditions") or (), "status.conditions")


class MutatingAdmissionPolicyStrategy(_PolicyStrategy):
    """A MutatingAdmissionPolicy: changes of objects in requests."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """At least one mutation is required."""
        spec = obj["spec"]
        errors = self._check_frame(spec)
        if "matchConstraints" in spec:
            errors += check_mutating_operations(spec["matchConstraints"], "spec.matchConstraints")
        mutations = spec.get("mutations") or ()
        if not mutations:
            errors.append(required("spec.mutations", "mutations must contain at least one item"))
        for index, mutation in enumerate(mutations):
            errors += _check_mutation(mutation, f"spec.mutations[{index}]")
        policy = spec.get("reinvocationPolicy", "")
        return errors + check_one_of(policy, REINVOCATION_POLICIES, "spec.reinvocationPolicy")


class _BindingStrategy(Strategy):
    """Common base of the bindings of both kinds of policies."""

    has_generation = True
    allows_unconditional_update = False

    def default(self, obj: Manifest) -> None:
        """Without match resources a binding applies to all that its policy applies to."""
        spec = child(obj, "spec")
        if "matchResources" in spec:
            default_match(spec["matchResources"], _RULE_LISTS)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The policy's name is required; the reference to parameters is validated."""
        spec = obj["spec"]
        name = spec.get("policyName", "")
        errors = check_subdomain(name, "spec.policyName") if name else [required("spec.policyName")]
        if "paramRef" in spec:
            errors += _check_parameters(spec["paramRef"], "spec.paramRef")
        if "matchResources" in spec:
            errors += check_match_resources(spec["matchResources"], "spec.matchResources")
        return errors


class ValidatingAdmissionPolicyBindingStrategy(_BindingStrategy):
    """A ValidatingAdmissionPolicyBinding: where a policy applies, and its actions on violations."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """At least one action is required."""
        return super().validate(obj) + _check_actions(
            obj["spec"].get("validationActions") or [], "spec.validationActions"
        )


class MutatingAdmissionPolicyBindingStrategy(_BindingStrategy):
    """A MutatingAdmissionPolicyBinding: where a policy applies."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Only operations that have an object can be matched."""
        match = obj["spec"].get("matchResources") or {}
        return super().validate(obj) + check_mutating_operations(match, "spec.matchResources")


def _check_parameter_kind(kind: Manifest, path: str) -> list[FieldError]:
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    errors = _check_api_version(version, f"{path}.apiVersion")
    if not name:
        errors.append(required(f"{path}.kind"))
    elif problems := dns_1035_label_problems(name.lower()):
        why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        errors.append(invalid(f"{path}.kind", name, why))
    return errors


def _check_api_version(text: str, path: str) -> list[FieldError]:
    if not text:
        return [required(path)]
    if text.count("/") > 1:
        return [invalid(path, text, f"unexpected GroupVersion string: {text}")]
    group, _, version = text.rpartition("/")
    errors = []
    if group and (problems := dns_subdomain_problems(group)):
        errors.append(invalid(path, group, ",".join(problems)))
    if not version:
        errors.append(invalid(path, text, "version must be specified"))
    elif problems := dns_1035_label_problems(version):
        errors.append(invalid(path, version, ",".join(problems)))
    return errors


def _check_variable(variable: Manifest, path: str) -> list[FieldError]:
    name = variable.get("name", "")
    errors = []
    if not name.strip():
        errors.append(required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER_RE.fullmatch(name) or name in _RESERVED:
        errors.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not variable.get("expression", "").strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    return errors


def _check_validation(validation: Manifest, path: str) -> list[FieldError]:
    errors = []
    if not validation.get("expression", "").strip():
        errors.append(required(f"{path}.expression", "expression is not specified"))
    for key in ("messageExpression", "message"):
        text = validation.get(key, "")
        if text and not text.strip():
            errors.append(invalid(f"{path}.{key}", text, "must be non-empty if specified"))
        elif key == "message" and re.search(r"[\n\r]", text.strip()):
            errors.append(invalid(f"{path}.{key}", text, "must not contain line breaks"))
    if "reason" in validation:
        errors += check_optional_word(validation["reason"], _REASONS, f"{path}.reason")
    return errors


def _check_annotations(annotations: Sequence[Manifest], policy: str) -> list[FieldError]:
    path = "spec.auditAnnotations"
    errors: list[FieldError] = []
    if len(annotations) > _MAX_AUDIT_ANNOTATIONS:
        why = f"must not have more than {_MAX_AUDIT_ANNOTATIONS} auditAnnotations"
        errors.append(invalid(path, annotations, why))
    keys: set[str] = set()
    for index, annotation in enumerate(annotations):
        here, key = f"{path}[{index}]", annotation.get("key", "")
        errors += check_qualified_name(f"{policy}/{key}", f"{here}.key")
        if not annotation.get("valueExpression", "").strip():
            errors.append(required(f"{here}.valueExpression", "valueExpression is not specified"))
        if key in keys:
            errors.append(duplicate(f"{here}.key", key))
        keys.add(key)
    return errors


def _check_mutation(mutation: Manifest, path: str) -> list[FieldError]:
    kind = mutation.get("patchType", "")
    if kind not in _PATCHES:
        return check_one_of(kind, tuple(_PATCHES), f"{path}.patchType")
    errors, key = [], _PATCHES[kind]
    if key not in mutation:
        errors.append(required(f"{path}.{key}", f"must be specified when patchType is {kind}"))
    elif not mutation[key].get("expression", "").strip():
        errors.append(required(f"{path}.{key}.expression"))
    for other in _PATCHES.values():
        if other != key and other in mutation:
            why = f"must not be specified when patchType is {kind}"
            errors.append(invalid(f"{path}.{other}", f"{{{other}}}", why))
    return errors


def _check_parameters(reference: Manifest, path: str) -> list[FieldError]:
    name, selector = reference.get("name", ""), reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    errors: list[FieldError] = []
    if name:
        errors += check_path_segment(name, f"{path}.name")
        if selector is not None:
            errors.append(forbidden(f"{path}.name", exclusive))
    if selector is not None:
        errors += check_label_selector(selector, f"{path}.selector")
        if name:
            errors.append(forbidden(f"{path}.selector", exclusive))
    if not name and selector is None:
        errors.append(required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction", "")
    return errors + check_one_of(action, _NOT_FOUND_ACTIONS, f"{path}.parameterNotFoundAction")


def _check_actions(actions: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    repeated = set(repetitions(actions))
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.append(not_supported(f"{path}[{index}]", action, _ACTIONS))
        if index in repeated:
            errors.append(duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the "
            "API response and headers serves no purpose)"
        )
        errors.append(invalid(path, actions, why))
    if not actions:
        errors.append(required(path, "at least one validation action is required"))
    return errors
