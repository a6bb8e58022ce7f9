"""Configurations of admission webhooks. They are stored; no webhook is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from moorage.api.manifests import Manifest
from moorage.api.names import dns_subdomain_problems
from moorage.apimachinery.fields import FieldError, complaints, duplicate, invalid, required
from moorage.apimachinery.validation.checks import REVIEW_VERSIONS, check_optional_word, check_review_versions
from moorage.apimachinery.validation.network_addresses import HTTPS_PORT, check_service_port
from moorage_cluster.apiserver.kinds.admission_rules import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    check_match_conditions,
    check_match_policy,
    check_rule,
    check_selectors,
    default_match,
)
from moorage_cluster.apiserver.strategy import Strategy

_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_DEFAULT_TIMEOUT_SECONDS: Final = 10
_MAX_TIMEOUT_SECONDS: Final = 30
_URL_FORM: Final = "; desired format: https://host[/path]"
_NOT_CALLED: Final = "admission webhooks are stored but not called by this server"


class ValidatingWebhookConfigurationStrategy(Strategy):
    """A ValidatingWebhookConfiguration: webhooks that reject requests."""

    has_generation = True
    allows_unconditional_update = False

    def default(self, obj: Manifest) -> None:
        """Webhooks match all objects, with a timeout of ten seconds; a failure rejects the request."""
        for webhook in obj.get("webhooks") or ():
            webhook.setdefault("failurePolicy", "Fail")
            webhook.setdefault("timeoutSeconds", _DEFAULT_TIMEOUT_SECONDS)
            default_match(webhook, ("rules",))
            service = webhook.setdefault("clientConfig", {}).get("service")
            if service is not None:
                service.setdefault("port", HTTPS_PORT)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Each webhook has a unique name and can be reached."""
        errors: list[FieldError] = []
        names: set[str] = set()
        for index, webhook in enumerate(obj.get("webhooks") or ()):
            path, name = f"webhooks[{index}]", webhook.get("name", "")
            errors += self._check(webhook, path)
            versions = webhook.get("admissionReviewVersions") or ()
            errors += _check_review_versions(versions, f"{path}.admissionReviewVersions")
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names |= {name} - {""}
        return errors

    def _check(self, webhook: Manifest, path: str) -> list[FieldError]:
        errors = _check_name(webhook.get("name", ""), f"{path}.name")
        for index, rule in enumerate(webhook.get("rules") or ()):
            errors += check_rule(rule, f"{path}.rules[{index}]")
        policy = webhook["failurePolicy"]
        errors += check_optional_word(policy, FAILURE_POLICIES, f"{path}.failurePolicy")
        errors += check_match_policy(webhook, path)
        if "sideEffects" in webhook:
            errors += check_optional_word(webhook["sideEffects"], _SIDE_EFFECTS, f"{path}.sideEffects")
        else:
            why = f"must specify one of {', '.join(_SIDE_EFFECTS)}"
            errors.append(required(f"{path}.sideEffects", why))
        seconds = webhook["timeoutSeconds"]
        if not 1 <= seconds <= _MAX_TIMEOUT_SECONDS:
            why = f"the timeout value must be between 1 and {_MAX_TIMEOUT_SECONDS} seconds"
            errors.append(invalid(f"{path}.timeoutSeconds", seconds, why))
        errors += check_selectors(webhook, path)
        errors += _check_client(webhook["clientConfig"], f"{path}.clientConfig")
        conditions = webhook.get("matchConditions") or ()
        return errors + check_match_conditions(conditions, f"{path}.matchConditions")

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn that the webhook is not called."""
        return [_NOT_CALLED] if old is None and obj.get("webhooks") else []


class MutatingWebhookConfigurationStrategy(ValidatingWebhookConfigurationStrategy):
    """A MutatingWebhookConfiguration: webhooks that change objects."""

    def default(self, obj: Manifest) -> None:
        """Webhooks are not called again when others have changed the object."""
        super().default(obj)
        for webhook in obj.get("webhooks") or ():
            webhook.setdefault("reinvocationPolicy", "Never")

    def _check(self, webhook: Manifest, path: str) -> list[FieldError]:
        policy = webhook["reinvocationPolicy"]
        errors = super()._check(webhook, path)
        return errors + check_optional_word(policy, REINVOCATION_POLICIES, f"{path}.reinvocationPolicy")


def _check_name(name: str, path: str) -> list[FieldError]:
    """A domain of at least three labels."""
    if not name:
        return [required(path)]
    if problems := dns_subdomain_problems(name):
        return [invalid(path, name, ",".join(problems))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _check_review_versions(versions: Sequence[str], path: str) -> list[FieldError]:
    if not versions:
        return [required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}")]
    return check_review_versions(versions, path)


def _check_client(client: Manifest, path: str) -> list[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return _check_url(url, f"{path}.url")
    return _check_service(service or {}, f"{path}.service")


def _check_url(text: str, path: str) -> list[FieldError]:
    try:
        url = urlsplit(text)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_URL_FORM}")]
    errors = []
    if url.scheme != "https":
        why = f"'https' is the only allowed URL scheme{_URL_FORM}"
        errors.append(invalid(path, url.scheme, why))
    user, _, host = url.netloc.rpartition("@")
    if not host:
        errors.append(invalid(path, "", f"host must be specified{_URL_FORM}"))
    for part, why in (
        (user, "user information is not permitted in the URL"),
        (url.fragment, "fragments are not permitted in the URL"),
        (url.query, "query parameters are not permitted in the URL"),
    ):
        if part:
            errors.append(invalid(path, part, why))
    return errors


def _check_service(service: Manifest, path: str) -> list[FieldError]:
    errors = []
    # Kubernetes names the other field of the two when one is missing.
    for missing, named in (("namespace", "name"), ("name", "namespace")):
        if not service.get(missing):
            errors.append(required(f"{path}.{named}"))
    errors += check_service_port(service["port"], f"{path}.port")
    return errors + _check_url_path(service.get("path", ""), f"{path}.path")


def _check_url_path(text: str, path: str) -> list[FieldError]:
    if text in ("", "/"):
        return []
    errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        problems = dns_subdomain_problems(step)
        if not step:
            errors.append(invalid(path, text, f"segment[{index}] may not be empty"))
        else:
            errors += complaints(path, text, [f"segment[{index}]: {problem}" for problem in problems])
    return errors
