"""Reviews of authentication and authorization: requests that are answered and never stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from moorage.admission.users import User
from moorage.api.manifests import Manifest, timestamp
from moorage.apimachinery import errors, fields
from moorage.apimachinery.fields import FieldError
from moorage_cluster.apiserver.auth.attributes import RequestAttributes
from moorage_cluster.apiserver.auth.authorizers import Authorizer
from moorage_cluster.apiserver.auth.request_bodies import read_as
from moorage_cluster.apiserver.auth.serviceaccount_tokens import TokenError
from moorage_cluster.apiserver.auth.tokens import Authenticator

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """What an answer needs besides the request; `namespace` is the URL's, `now` returns Unix seconds."""

    user: User
    authorizer: Authorizer
    authenticator: Authenticator
    namespace: str = ""
    now: Callable[[], float] = time.time


class _Selector(msgspec.Struct, rename="camel"):
    raw_selector: str | None = None
    requirements: list[dict[str, Any]] | None = None


class _ResourceAttributes(msgspec.Struct, rename="camel"):
    namespace: str | None = None
    verb: str | None = None
    group: str | None = None
    version: str | None = None
    resource: str | None = None
    subresource: str | None = None
    name: str | None = None
    field_selector: _Selector | None = None
    label_selector: _Selector | None = None


class _NonResourceAttributes(msgspec.Struct):
    path: str | None = None
    verb: str | None = None


class _AccessSpec(msgspec.Struct, rename="camel"):
    resource_attributes: _ResourceAttributes | None = None
    non_resource_attributes: _NonResourceAttributes | None = None
    user: str | None = None
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None
    uid: str | None = None


class _AccessReview(msgspec.Struct):
    metadata: dict[str, Any] | None = None
    spec: _AccessSpec | None = None


class _RulesSpec(msgspec.Struct):
    namespace: str | None = None


class _RulesReview(msgspec.Struct):
    spec: _RulesSpec | None = None


class _TokenSpec(msgspec.Struct):
    token: str | None = None
    audiences: list[str] | None = None


class _TokenReview(msgspec.Struct):
    spec: _TokenSpec | None = None


def self_subject_access_review(body: Manifest, context: ReviewContext) -> Manifest:
    """Whether the requesting user may do something."""
    kind = "SelfSubjectAccessReview"
    review = read_as(_AccessReview, body, kind)
    spec = review.spec or _AccessSpec()
    _refuse(kind, _access_problems(spec, body, names_subject=False) + _metadata_problems(body, ()))
    return _access_answer(kind, body, _attributes(spec, context.user), context)


def subject_access_review(body: Manifest, context: ReviewContext) -> Manifest:
    """Whether a user may do something."""
    kind = "SubjectAccessReview"
    review = read_as(_AccessReview, body, kind)
    spec = review.spec or _AccessSpec()
    _refuse(kind, _access_problems(spec, body, names_subject=True) + _metadata_problems(body, ()))
    return _access_answer(kind, body, _attributes(spec, _subject(spec)), context)


def local_subject_access_review(body: Manifest, context: ReviewContext) -> Manifest:
    """Whether a user may do something in the namespace of the URL."""
    kind = "LocalSubjectAccessReview"
    review = read_as(_AccessReview, body, kind)
    spec = review.spec or _AccessSpec()
    problems = _access_problems(spec, body, names_subject=True) + _metadata_problems(body, ("namespace",))
    namespace = (review.metadata or {}).get("namespace") or ""
    if spec.resource_attributes and (spec.resource_attributes.namespace or "") != namespace:
        asked = spec.resource_attributes.namespace or ""
        problems.append(
            fields.invalid("spec.resourceAttributes.namespace", asked, "must match metadata.namespace")
        )
    if spec.non_resource_attributes:
        written = _written(body, "nonResourceAttributes")
        problems.append(
            fields.invalid("spec.nonResourceAttributes", written, "disallowed on this kind of request")
        )
    _refuse(kind, problems)
    if not context.namespace:
        raise errors.bad_request("namespace is required on this type: ")
    if context.namespace != namespace:
        raise errors.bad_request(
            f"spec.resourceAttributes.namespace must match namespace: {context.namespace}"
        )
    return _access_answer(kind, body, _attributes(spec, _subject(spec)), context)


def self_subject_rules_review(body: Manifest, context: ReviewContext) -> Manifest:
    """All that the requesting user may do in a namespace."""
    kind = "SelfSubjectRulesReview"
    spec = read_as(_RulesReview, body, kind).spec or _RulesSpec()
    if not spec.namespace:
        raise errors.bad_request("no namespace on request")
    held = context.authorizer.rules_for(context.user, spec.namespace)
    status: Manifest = {
        "resourceRules": [rule._replace(urls=()).manifest for rule in held.rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)}
            for rule in held.rules
            if rule.urls
        ],
        "incomplete": False,
    }
    if held.problem:
        status["evaluationError"] = held.problem
    return {
        "kind": kind,
        "apiVersion": f"{AUTHORIZATION}/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }


def self_subject_review(body: Manifest, context: ReviewContext) -> Manifest:
    """The requesting user."""
    created = timestamp(datetime.fromtimestamp(context.now(), UTC))
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": f"{AUTHENTICATION}/v1",
        "metadata": {"creationTimestamp": created},
        "status": {"userInfo": user_info(context.user)},
    }


def token_review(body: Manifest, context: ReviewContext) -> Manifest:
    """The user that a token identifies."""
    kind = "TokenReview"
    spec = read_as(_TokenReview, body, kind).spec or _TokenSpec()
    if context.namespace:
        raise errors.bad_request(f"namespace is not allowed on this type: {context.namespace}")
    if not spec.token:
        raise errors.bad_request("token is required for TokenReview in authentication")
    try:
        found = context.authenticator.identify(spec.token, spec.audiences or ())
    except TokenError as error:
        status: Manifest = {"user": {}, "error": str(error)}
    else:
        status = {
            "authenticated": True,
            "user": user_info(found.user),
            "audiences": list(found.audiences),
        }
    return _answer(kind, AUTHENTICATION, body, status)


Review = Callable[[Manifest, ReviewContext], Manifest]
REVIEWS: Final[dict[tuple[str, str], Review]] = {
    (AUTHORIZATION, "selfsubjectaccessreviews"): self_subject_access_review,
    (AUTHORIZATION, "subjectaccessreviews"): subject_access_review,
    (AUTHORIZATION, "localsubjectaccessreviews"): local_subject_access_review,
    (AUTHORIZATION, "selfsubjectrulesreviews"): self_subject_rules_review,
    (AUTHENTICATION, "selfsubjectreviews"): self_subject_review,
    (AUTHENTICATION, "tokenreviews"): token_review,
}
"""The functions that answer a create of each of these resources, by group and plural name."""


def user_info(user: User) -> Manifest:
    """A user in the form of reviews and admission reviews."""
    shown = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in shown.items() if value}


def _answer(kind: str, group: str, body: Manifest, status: Manifest) -> Manifest:
    return {
        "kind": kind,
        "apiVersion": f"{group}/v1",
        "metadata": body.get("metadata") or {},
        "spec": body.get("spec") or {},
        "status": status,
    }


def _access_answer(
    kind: str, body: Manifest, attributes: RequestAttributes, context: ReviewContext
) -> Manifest:
    decision = context.authorizer.authorize(attributes)
    status: Manifest = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return _answer(kind, AUTHORIZATION, body, status)


def _subject(spec: _AccessSpec) -> User:
    extra = {key: tuple(values) for key, values in (spec.extra or {}).items()}
    return User(spec.user or "", tuple(spec.groups or ()), spec.uid or "", extra)


def _attributes(spec: _AccessSpec, user: User) -> RequestAttributes:
    asked = spec.resource_attributes
    if asked is None:
        other = spec.non_resource_attributes or _NonResourceAttributes()
        return RequestAttributes(user, other.verb or "", path=other.path or "", is_resource_request=False)
    return RequestAttributes(
        user,
        asked.verb or "",
        asked.group or "",
        asked.version or "*",
        asked.resource or "",
        asked.subresource or "",
        asked.namespace or "",
        asked.name or "",
    )


def _refuse(kind: str, problems: list[FieldError]) -> None:
    if problems:
        raise errors.invalid(AUTHORIZATION, kind, "", problems)


def _written(body: Manifest, field: str) -> Any:
    return (body.get("spec") or {}).get(field)


def _access_problems(spec: _AccessSpec, body: Manifest, *, names_subject: bool) -> list[FieldError]:
    problems = []
    if spec.resource_attributes and spec.non_resource_attributes:
        detail = "cannot be specified in combination with resourceAttributes"
        written = _written(body, "nonResourceAttributes")
        problems.append(fields.invalid("spec.nonResourceAttributes", written, detail))
    if not spec.resource_attributes and not spec.non_resource_attributes:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        problems.append(fields.invalid("spec.resourceAttributes", None, detail))
    if names_subject and not spec.user and not spec.groups:
        problems.append(fields.invalid("spec.user", "", "at least one of user or group must be specified"))
    if spec.resource_attributes:
        asked = spec.resource_attributes
        problems += _selector_problems(asked.field_selector, "spec.resourceAttributes.fieldSelector")
        problems += _selector_problems(asked.label_selector, "spec.resourceAttributes.labelSelector")
    return problems


def _selector_problems(selector: _Selector | None, path: str) -> list[FieldError]:
    if selector is None:
        return []
    if selector.raw_selector and selector.requirements:
        detail = "may not specified at the same time as requirements"
        return [fields.invalid(f"{path}.rawSelector", selector.raw_selector, detail)]
    if not selector.raw_selector and not selector.requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        return [fields.required(f"{path}.requirements", detail)]
    return []


def _metadata_problems(body: Manifest, allowed: tuple[str, ...]) -> list[FieldError]:
    metadata = body.get("metadata") or {}
    if all(key in (*allowed, "managedFields") or not value for key, value in metadata.items()):
        return []
    detail = "must be empty except for namespace" if allowed else "must be empty"
    return [fields.invalid("metadata", metadata, detail)]
