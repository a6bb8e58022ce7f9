"""Issuing tokens for service accounts: the `token` subresource."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from moorage.admission.attributes import Reader
from moorage.api.manifests import Manifest, timestamp
from moorage.api.text import quoted
from moorage.apimachinery import errors, fields
from moorage_cluster.apiserver.auth import serviceaccounts
from moorage_cluster.apiserver.auth.claims import ISSUER, PrivateClaims, Ref, TokenClaims
from moorage_cluster.apiserver.auth.jwt import SigningKey
from moorage_cluster.apiserver.auth.request_bodies import read_as

_GROUP: Final = "authentication.k8s.io"
_KIND: Final = "TokenRequest"
_DEFAULT_SECONDS: Final = 3600
_MIN_SECONDS: Final = 600
_MAX_SECONDS: Final = 1 << 32
_PROJECTED_SECONDS: Final = 3607
"""Lifetime that a kubelet requests by default, in seconds. Clients that never reload their token would fail
after it, so a pod's token with exactly this lifetime is valid for a year."""
_EXTENDED_SECONDS: Final = 365 * 24 * 3600


class _Metadata(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None


class _BoundObject(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    audiences: list[str] | None = None
    expiration_seconds: int | None = None
    bound_object_ref: _BoundObject | None = None


class _TokenRequest(msgspec.Struct):
    metadata: _Metadata | None = None
    spec: _Spec | None = None


class _Bound(NamedTuple):
    pod: Ref | None = None
    secret: Ref | None = None
    node: Ref | None = None


class TokenIssuer:
    """Signs tokens. `now` returns Unix seconds; `audiences` are the default audiences of a token."""

    def __init__(
        self,
        signing_key: SigningKey,
        reader: Reader,
        *,
        now: Callable[[], float] = time.time,
        audiences: Sequence[str] = (ISSUER,),
    ) -> None:
        self._key = signing_key
        self._reader = reader
        self._now = now
        self._audiences = list(audiences)

    def issue(self, service_account: Manifest, body: Manifest) -> Manifest:
        """Answer a TokenRequest for a stored service account: the request with its status, or ApiError."""
        account = service_account["metadata"]
        namespace, name, uid = account["namespace"], account["name"], account.get("uid", "")
        request = read_as(_TokenRequest, body, _KIND)
        _check_metadata(request.metadata or _Metadata(), namespace, name, uid)
        spec = request.spec or _Spec()
        audiences = spec.audiences or self._audiences
        seconds = _DEFAULT_SECONDS if spec.expiration_seconds is None else spec.expiration_seconds
        _check_lifetime(seconds)
        bound = self._bound(spec.bound_object_ref, namespace, name)
        now = int(self._now())
        lifetime, warn_after = seconds, None
        if bound.pod and seconds == _PROJECTED_SECONDS and set(audiences) <= set(self._audiences):
            lifetime, warn_after = _EXTENDED_SECONDS, now + seconds
        claims = TokenClaims(
            iss=ISSUER,
            sub=serviceaccounts.username(namespace, name),
            aud=tuple(audiences),
            exp=now + lifetime,
            iat=now,
            nbf=now,
            jti=str(uuid.uuid4()),
            private=PrivateClaims(namespace, Ref(name, uid), bound.pod, bound.secret, bound.node, warn_after),
        )
        return {
            "kind": _KIND,
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {
                **(body.get("metadata") or {}),
                "name": name,
                "namespace": namespace,
                "uid": uid,
                "creationTimestamp": _timestamp(now),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": (body.get("spec") or {}).get("boundObjectRef"),
            },
            "status": {
                "token": self._key.sign(claims),
                "expirationTimestamp": _timestamp(now + seconds),
            },
        }

    def _bound(self, ref: _BoundObject | None, namespace: str, account: str) -> _Bound:
        """The objects that a new token is bound to."""
        if ref is None:
            return _Bound()
        group, _, version = ref.api_version.rpartition("/")
        match (group, ref.kind):
            case ("", "Pod"):
                return self._bound_to_pod(ref, namespace, account)
            case ("", "Secret"):
                secret = self._existing("secrets", namespace, ref)
                return _Bound(secret=_checked_ref(secret, ref))
            case ("", "Node"):
                return _Bound(node=_checked_ref(self._existing("nodes", "", ref), ref))
        raise errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={ref.kind}")

    def _bound_to_pod(self, ref: _BoundObject, namespace: str, account: str) -> _Bound:
        pod = self._existing("pods", namespace, ref)
        spec = pod.get("spec") or {}
        if spec.get("serviceAccountName") != account:
            raise errors.bad_request(
                f"cannot bind token for serviceaccount {quoted(account)} to pod running with different "
                "serviceaccount name."
            )
        bound_pod = _checked_ref(pod, ref)
        node_name = spec.get("nodeName")
        if not node_name:
            return _Bound(pod=bound_pod)
        node = self._reader.find("/nodes", "", node_name)
        node_uid = node["metadata"].get("uid", "") if node else ""
        return _Bound(pod=bound_pod, node=Ref(node_name, node_uid))

    def _existing(self, resource: str, namespace: str, ref: _BoundObject) -> Manifest:
        found = self._reader.find(f"/{resource}", namespace, ref.name)
        if found is None:
            raise errors.not_found("", resource, ref.name)
        return found


def _timestamp(seconds: int) -> str:
    return timestamp(datetime.fromtimestamp(seconds, UTC))


def _check_metadata(said: _Metadata, namespace: str, name: str, uid: str) -> None:
    """The service account's fields in a request, where given, must match the stored account."""
    for field, value, actual, what in (
        ("name", said.name, name, "name"),
        ("namespace", said.namespace, namespace, "namespace"),
    ):
        if value and value != actual:
            detail = f"must match the service account {what} if specified"
            problem = fields.invalid(f"metadata.{field}", value, detail)
            raise errors.invalid(_GROUP, _KIND, name, [problem])
    if said.uid and said.uid != uid:
        why = (
            f"the UID in the token request ({said.uid}) does not match the UID of the service account ({uid})"
        )
        raise errors.conflict(_GROUP, _KIND, name, why)


def _check_lifetime(seconds: int) -> None:
    if seconds < _MIN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > _MAX_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    problem = fields.invalid("spec.expirationSeconds", seconds, detail)
    raise errors.invalid(_GROUP, _KIND, "", [problem])


def _checked_ref(found: Manifest, ref: _BoundObject) -> Ref:
    """The object that a token is bound to; its uid must match the reference's, if given."""
    uid = found["metadata"].get("uid", "")
    if ref.uid and ref.uid != uid:
        why = (
            f"the UID in the bound object reference ({ref.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict("", ref.kind, ref.name, why)
    return Ref(ref.name, uid)
