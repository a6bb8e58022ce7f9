"""TLS as clients of Kubernetes need it: a cluster's own authority, and certificates as credentials."""

from __future__ import annotations

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory

from moorage.http.errors import KubeconfigError


def client_context(ca_pem: bytes | None, *, skip_verification: bool = False) -> ssl.SSLContext:
    """A context that trusts the authorities in `ca_pem`; None: those of the system."""
    try:
        context = ssl.create_default_context(cadata=None if ca_pem is None else ca_pem.decode("latin-1"))
    except ssl.SSLError:
        raise KubeconfigError("the certificate authority is not a PEM certificate") from None
    # Python 3.13's strict checks reject the CA certificates of many clusters, kubeadm's among them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if skip_verification:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def use_certificate(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    """Present a client certificate on later connections."""
    # The ssl module reads keys from files only; this one is removed right after.
    with TemporaryDirectory(prefix="moorage-") as folder:
        certificate, key = Path(folder, "certificate"), Path(folder, "key")
        certificate.write_bytes(certificate_pem)
        key.write_bytes(key_pem)
        try:
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError):
            raise KubeconfigError("the client certificate and its key do not make a pair") from None
