"""Pod templates inside other objects: defaulting, and validation common to controllers."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.admission.pods.defaults import default_pod_template
from moorage.admission.pods.validation import validate_template
from moorage.api.manifests import Manifest, child, labels_of
from moorage.api.names import dns_label_problems
from moorage.api.selectors import SelectorError, written_selector
from moorage.apimachinery.fields import FieldError, forbidden, invalid, not_supported, required
from moorage.apimachinery.validation.selectors import check_label_selector
from moorage_cluster.apiserver.strategy import Strategy

NO_MATCH = "`selector` does not match template `labels`"


class PodTemplateStrategy(Strategy):
    """A PodTemplate object."""

    has_generation = True

    def default(self, obj: Manifest) -> None:
        """The defaults of pods."""
        default_pod_template(child(obj, "template"))

    def validate(self, obj: Manifest) -> list[FieldError]:
        """A pod created from it would be valid."""
        return validate_template(obj.get("template") or {}, "template")


def check_selector(selector: Manifest | None, path: str, kind: str) -> list[FieldError]:
    """A controller's selector: required, valid, and not empty."""
    if selector is None:
        return [required(path)]
    errors = check_label_selector(selector, path)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid(path, selector, f"empty selector is invalid for {kind}"))
    return errors


def check_lasting_template(template: Manifest, path: str, kind: str) -> list[FieldError]:
    """The template of pods with restart policy Always and no deadline."""
    errors = validate_template(template, path)
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, ("Always",)))
    if "activeDeadlineSeconds" in spec:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.spec.activeDeadlineSeconds", why))
    return errors


def check_match(selector: Manifest | None, template: Manifest, path: str) -> list[FieldError]:
    """A controller's selector matches its pod template; an invalid selector is reported elsewhere.

    No selector matches no pod, an empty one every pod.
    """
    labels = labels_of(template)
    try:
        matches = written_selector(selector).matches(labels)
    except SelectorError:
        return []
    return [] if matches else [invalid(f"{path}.metadata.labels", labels or None, NO_MATCH)]


def check_plain_match(selector: Mapping[str, str], template: Manifest, path: str) -> list[FieldError]:
    """The same for a selector by label equality only."""
    labels = labels_of(template)
    if all(labels.get(key) == value for key, value in selector.items()):
        return []
    return [invalid(f"{path}.metadata.labels", labels or None, NO_MATCH)]


def name_warnings(obj: Manifest) -> list[str]:
    """Warnings about a name from which pods' host names are generated."""
    name = obj.get("metadata", {}).get("name", "")
    if not (problems := dns_label_problems(name)):
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(problems)}]"
    ]
