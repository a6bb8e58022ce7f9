"""Requests for certificates."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import Printer, human_duration
from moorage_cluster.apiserver.tables.cells import NONE, at, condition, number, text
from moorage_cluster.apiserver.tables.columns import AGED, NAMED, Columns, derived, text_at


def _duration(request: Manifest) -> str:
    if at(request, "spec", "expirationSeconds") is None:
        return NONE
    return human_duration(number(request, "spec", "expirationSeconds"))


def _condition(request: Manifest) -> str:
    parts = [next((kind for kind in ("Denied", "Approved") if condition(request, kind)), "Pending")]
    if condition(request, "Failed"):
        parts.append("Failed")
    if text(request, "status", "certificate"):
        parts.append("Issued")
    return ",".join(parts)


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("certificates.k8s.io", "CertificateSigningRequest"): Columns(
        NAMED,
        AGED,
        text_at("SignerName", "spec.signerName", "The signer that is asked.", empty=NONE),
        text_at("Requestor", "spec.username", "The user who asks."),
        derived("RequestedDuration", _duration, "How long the certificate shall be valid."),
        derived("Condition", _condition, "What was decided, and what became of it."),
    ),
}
"""The tables of this family, by group and kind."""
