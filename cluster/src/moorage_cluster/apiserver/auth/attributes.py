"""The attributes of a request that authorizers evaluate."""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

from moorage.admission.users import User
from moorage.api.text import quoted
from moorage.apimachinery import errors
from moorage.apimachinery.errors import ApiError


class RequestAttributes(NamedTuple):
    """One request: its user, its verb and its target."""

    user: User
    verb: str
    """For resources get, list, create, ...; for other paths the HTTP method in lower case."""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """The path of a request that is not about a resource."""
    is_resource_request: bool = True

    @property
    def qualified_resource(self) -> str:
        """The resource as rules name it, its subresource included: `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def forbidden_message(attributes: RequestAttributes) -> str:
    """What a user is not allowed to do, as a sentence; characters with a meaning in HTML are escaped."""
    user, verb = quoted(attributes.user.name), attributes.verb
    if not attributes.is_resource_request:
        message = f"User {user} cannot {verb} path {quoted(attributes.path)}"
    else:
        resource, group = quoted(attributes.qualified_resource), quoted(attributes.group)
        message = f"User {user} cannot {verb} resource {resource} in API group {group}"
        if attributes.namespace:
            message += f" in the namespace {quoted(attributes.namespace)}"
        else:
            message += " at the cluster scope"
    return message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def forbidden(attributes: RequestAttributes, reason: str = "") -> ApiError:
    """The 403 error of a denied request, with the authorizer's reason."""
    why = forbidden_message(attributes)
    if reason:
        why = f"{why}: {reason}"
    if not attributes.resource:
        return ApiError(HTTPStatus.FORBIDDEN, "Forbidden", f"forbidden: {why}")
    return errors.forbidden(attributes.group, attributes.resource, attributes.name, why)
