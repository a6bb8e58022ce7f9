"""Which object a write is about: its name, its namespace, its uid, and the version that it was made from."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from moorage.api.manifests import Manifest, take
from moorage.api.text import go_quoted
from moorage_cluster.apiserver import errors, fields
from moorage_cluster.apiserver.kinds.metadata import IMMUTABLE_FIELDS
from moorage_cluster.apiserver.resources import Resource

_KEPT: Final = (*IMMUTABLE_FIELDS, "generation", "selfLink")
_UINT64_MAX: Final = 2**64 - 1
_UINT64_DIGITS: Final = len(str(_UINT64_MAX))


def place_new(resource: Resource, namespace: str, meta: Manifest) -> None:
    """Put a new object where the request says; ApiError if it claims to be elsewhere."""
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
    """Forget the version of an object to be stored; ApiError for one that an object could have."""
    version = meta.pop("resourceVersion", "")
    if _is_number(version) and 0 < _number(version) <= _UINT64_MAX:
        raise _storage_failure("resourceVersion should not be set on objects to be created")


def drop_version(meta: Manifest) -> None:
    """Forget the version of an object that an update or an apply creates; ApiError if it is not a number."""
    _version_number(meta.pop("resourceVersion", ""))


def keep_identity(
    resource: Resource, namespace: str, name: str, obj: Manifest, old: Manifest, *, is_patch: bool = False
) -> None:
    """Check that the wanted object is the stored one in its present version; what identifies it is kept.

    is_patch: another uid breaks a rule then; in an update it is a precondition that does not hold.
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


def _check_unconditional(resource: Resource, name: str, meta: Manifest) -> None:
    """That an update with another resourceVersion than the stored one names none, where that is allowed."""
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
    """What digits say; of too many, a number that is too large too, without reading them all."""
    return int(digits.lstrip("0")[: _UINT64_DIGITS + 1] or "0")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _storage_failure(message: str) -> errors.ApiError:
    """A refusal by Kubernetes' storage layer: it comes without a reason, under the code of a fault."""
    return errors.ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)
