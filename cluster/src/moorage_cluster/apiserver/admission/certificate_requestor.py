"""The requestor in a CertificateSigningRequest is the authenticated user, not what the client wrote."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import Call, Plugin

_REQUESTS: Final = "certificates.k8s.io/certificatesigningrequests"


def admit(attributes: Attributes, reader: Reader) -> None:
    """Fill in the user."""
    spec, user = attributes.obj["spec"], attributes.user
    known = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    for key, value in known.items():
        spec.pop(key, None)
        if value:
            spec[key] = value


PLUGIN: Final = Plugin("CertificateRequestor", admit, (Call("CREATE", _REQUESTS),))
