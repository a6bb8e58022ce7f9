"""The identity of a written object: its name, namespace, uid and resource version."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from moorage.api.manifests import Manifest, take
from moorage.api.text import go_quoted
from moorage.apimachinery import errors, fields
from moorage.apimachinery.validation.metadata import IMMUTABLE_FIELDS
from moorage_cluster.apiserver.resources import APIResource

_KEPT: Final = (*IMMUTABLE_FIELDS, "generation", "selfLink")
_UINT64_MAX: Final = 2**64 - 1
_UINT64_DIGITS: Final = len(str(_UINT64_MAX))


def place_new(resource: APIResource, namespace: str, meta: Manifest) -> None:
    """Set a new object's name and namespace from the request; ApiError if its own differ."""
    given = meta.get("namespace", "")
    if not resource.namespaced:
        meta.pop("namespace", None)
    elif given and given != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    else:
        meta["namespace"] = namespace


def drop_version_of_new(meta: Manifest) -> None:
    """Drop the resourceVersion of a new object; ApiError if it is set to a valid one."""
    version = meta.pop("resourceVersion", "")
    if _is_number(version) and 0 < _number(version) <= _UINT64_MAX:
        raise _storage_failure("resourceVersion should not be set on objects to be created")


def drop_version(meta: Manifest) -> None:
    """Drop the resourceVersion of an object that an update or apply creates; ApiError if it is no number."""
    _version_number(meta.pop("resourceVersion", ""))


def keep_identity(
    resource: APIResource, namespace: str, name: str, obj: Manifest, old: Manifest, *, is_patch: bool = False
) -> None:
    """Check an updated object's uid and resourceVersion against the stored one, and keep its identity.

    is_patch: a different uid is a validation error; in an update it is a failed precondition.
    """
    meta, old_meta = obj["metadata"], old["metadata"]
    given = meta.get("name", "")
    if not given:
        raise errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if given != name:
        raise errors.bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )
    given = meta.get("namespace", "")
    if given and given != namespace and resource.namespaced:
        raise errors.bad_request(
            f"the namespace of the object ({given}) does not match the namespace on the URL ({namespace})"
        )
    if meta.get("resourceVersion") != old_meta["resourceVersion"]:
        _check_unconditional(resource, name, meta)
        meta["resourceVersion"] = old_meta["resourceVersion"]
    uid = meta.get("uid")
    if uid and uid != old_meta["uid"]:
        if is_patch:
            problem = fields.invalid("metadata.uid", uid, fields.IMMUTABLE)
            raise errors.invalid(resource.group, resource.kind, name, [problem])
        raise errors.failed_precondition(resource.group, resource.plural, name, "UID", uid, old_meta["uid"])
    for key in _KEPT:
        take(meta, old_meta, key)


def _check_unconditional(resource: APIResource, name: str, meta: Manifest) -> None:
    """Check that an update without the stored resourceVersion has none, where that is allowed."""
    if _version_number(meta.get("resourceVersion", "")):
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise errors.conflict(resource.group, resource.plural, name, why)
    if not resource.strategy.allows_unconditional_update:
        problem = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise errors.invalid(resource.group, resource.plural, name, [problem])


def _version_number(text: str) -> int:
    """A resourceVersion as a number; 0 stands for any version, as an empty one does."""
    if text and not _is_number(text):
        raise _storage_failure(f"strconv.ParseUint: parsing {go_quoted(text)}: invalid syntax")
    if (version := _number(text)) > _UINT64_MAX:
        raise _storage_failure(f"strconv.ParseUint: parsing {go_quoted(text)}: value out of range")
    return version


def _number(digits: str) -> int:
    """The value of digits; for too many, a number that is out of range, without parsing them all."""
    return int(digits.lstrip("0")[: _UINT64_DIGITS + 1] or "0")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _storage_failure(message: str) -> errors.ApiError:
    """An error of Kubernetes' storage layer: it has no reason, and the code of an internal error."""
    return errors.ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)
