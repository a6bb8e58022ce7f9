"""The claims of a service account's token, under Kubernetes' names."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.admission.users import AUTHENTICATED, User
from moorage_cluster.apiserver.auth import serviceaccounts

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"


class Ref(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reference to an object: its name, and its uid to distinguish it from others of the same name."""

    name: str = ""
    uid: str = ""


class PrivateClaims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The private claims that Kubernetes adds to the registered ones."""

    namespace: str = ""
    serviceaccount: Ref = Ref()
    pod: Ref | None = None
    secret: Ref | None = None
    node: Ref | None = None
    """The node that the pod runs on or, without a pod, the node that the token is bound to."""
    warnafter: int | None = None


class TokenClaims(msgspec.Struct, frozen=True, omit_defaults=True):
    """All claims of a token; times are Unix seconds."""

    iss: str = ""
    sub: str = ""
    aud: tuple[str, ...] = ()
    exp: int = 0
    iat: int = 0
    nbf: int = 0
    jti: str = ""
    private: PrivateClaims = msgspec.field(name="kubernetes.io", default=PrivateClaims())


def user_of(claims: TokenClaims) -> User:
    """The user that a token with these claims identifies."""
    said = claims.private
    extra: dict[str, tuple[str, ...]] = {}
    if said.pod:
        extra[serviceaccounts.POD_NAME] = (said.pod.name,)
        extra[serviceaccounts.POD_UID] = (said.pod.uid,)
    if claims.jti:
        extra[serviceaccounts.CREDENTIAL_ID] = (f"JTI={claims.jti}",)
    if said.node:
        extra[serviceaccounts.NODE_NAME] = (said.node.name,)
        if said.node.uid:
            extra[serviceaccounts.NODE_UID] = (said.node.uid,)
    return User(
        name=serviceaccounts.username(said.namespace, said.serviceaccount.name),
        groups=(*serviceaccounts.groups(said.namespace), AUTHENTICATED),
        uid=said.serviceaccount.uid,
        extra=extra,
    )
