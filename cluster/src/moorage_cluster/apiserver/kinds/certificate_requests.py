"""CertificateSigningRequests: they are stored, approved and denied; this server has no signer."""

from __future__ import annotations

from base64 import b64decode
from typing import Final

from moorage.api.manifests import Manifest, Now, copy, take, timestamp, utc_now
from moorage.api.names import path_segment_problems
from moorage.apimachinery.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.checks import CONDITION_STATUSES, check_one_of, repetitions
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.certificate_pem import certificate_problem, request_problem
from moorage_cluster.apiserver.kinds.signer_names import check_signer_name

_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_MIN_EXPIRATION_SECONDS: Final = 600
_DECISIONS: Final = ("Approved", "Denied")
_LASTING_CONDITIONS: Final = (*_DECISIONS, "Failed")
_CONDITIONS: Final = "status.conditions"
_CERTIFICATE: Final = "status.certificate"
_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system",
    "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc",
    "ocsp signing", "s/mime", "server auth", "signing", "timestamping",
)  # fmt: skip


class CertificateSigningRequestStrategy(StatusStrategy):
    """A CertificateSigningRequest; its spec never changes."""

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now

    def name_problems(self, name: str) -> tuple[str, ...]:
        """Any path segment is a valid name."""
        return path_segment_problems(name)

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Keep the spec."""
        super().prepare_update(obj, old)
        take(obj, old, "spec")

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Keep the conditions of approval and denial."""
        super().prepare_status(obj, old)
        conditions = obj["status"].get("conditions") or []
        for kind in _DECISIONS:
            before = _of_type(old, kind)
            places = [index for index, each in enumerate(conditions) if each.get("type") == kind]
            if len(places) == len(before):
                for index, condition in zip(places, before, strict=True):
                    conditions[index] = copy(condition)
        self._stamp(obj, old)

    def _stamp(self, obj: Manifest, old: Manifest) -> None:
        """Set the times of conditions that do not have them."""
        now = timestamp(self._now())
        for condition in obj["status"].get("conditions") or ():
            condition.setdefault("lastUpdateTime", now)
            since = (
                each["lastTransitionTime"]
                for each in _of_type(old, condition.get("type", ""))
                if each.get("status") == condition.get("status")
            )
            condition.setdefault("lastTransitionTime", next(since, now))

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The request can be parsed, and names its usages and its signer."""
        spec = obj["spec"]
        request = spec.get("request")
        problem = request_problem(b64decode(request or ""))
        errors = [invalid("spec.request", request, problem)] if problem else []
        errors += _check_usages(spec.get("usages") or [])
        signer = spec.get("signerName", "")
        if signer == _LEGACY_SIGNER:
            why = "the legacy signerName is not allowed via this API version"
            errors.append(invalid("spec.signerName", signer, why))
        else:
            errors += check_signer_name(signer, "spec.signerName")
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < _MIN_EXPIRATION_SECONDS:
            why = "may not specify a duration less than 600 seconds (10 minutes)"
            errors.append(invalid("spec.expirationSeconds", seconds, why))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Only metadata may change."""
        return []

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Conditions are valid, nothing is approved here, and a certificate is immutable."""
        errors = _check_conditions(obj)
        certificate, before = obj["status"].get("certificate", ""), old["status"].get("certificate", "")
        changed = certificate != before
        if changed and (problem := certificate_problem(b64decode(certificate))):
            errors.append(invalid(_CERTIFICATE, "<certificate data>", problem))
        errors += _check_lasting(obj, old)
        for kind in _DECISIONS:
            if len(_of_type(obj, kind)) > len(_of_type(old, kind)):
                errors.append(forbidden(_CONDITIONS, f'updates may not add a condition of type "{kind}"'))
        if changed and before:
            errors.append(forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))
        return errors

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by signer name."""
        return {"spec.signerName": (obj.get("spec") or {}).get("signerName", "")}


class CertificateApprovalStrategy(CertificateSigningRequestStrategy):
    """The `approval` subresource of a CertificateSigningRequest, which changes its conditions."""

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Keep everything except the conditions."""
        self._stamp(obj, old)
        conditions = obj["status"].get("conditions")
        super().prepare_update(obj, old)
        obj["status"] = {key: value for key, value in old["status"].items() if key != "conditions"}
        if conditions:
            obj["status"]["conditions"] = conditions

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """A decision cannot be reverted."""
        return _check_conditions(obj) + _check_lasting(obj, old)


def _of_type(obj: Manifest, kind: str) -> list[Manifest]:
    return [each for each in obj["status"].get("conditions") or () if each.get("type", "") == kind]


def _check_usages(usages: list[str]) -> list[FieldError]:
    if not usages:
        return [required("spec.usages")]
    errors = [
        not_supported(f"spec.usages[{index}]", usage, _USAGES)
        for index, usage in enumerate(usages)
        if usage not in _USAGES
    ]
    return errors + [duplicate(f"spec.usages[{index}]", usages[index]) for index in repetitions(usages)]


def _check_conditions(obj: Manifest) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(obj["status"].get("conditions") or ()):
        path, kind = f"{_CONDITIONS}[{index}]", condition.get("type", "")
        if not kind:
            errors.append(required(f"{path}.type"))
        statuses = ("True",) if kind in _LASTING_CONDITIONS else CONDITION_STATUSES
        errors += check_one_of(condition.get("status", ""), statuses, f"{path}.status")
        if kind in _DECISIONS and any(other in seen for other in _DECISIONS if other != kind):
            errors.append(invalid(_CONDITIONS, kind, "Approved and Denied conditions are mutually exclusive"))
        if kind in seen:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
    return errors


def _check_lasting(obj: Manifest, old: Manifest) -> list[FieldError]:
    return [
        forbidden(_CONDITIONS, f'updates may not remove a condition of type "{kind}"')
        for kind in _LASTING_CONDITIONS
        if len(_of_type(obj, kind)) < len(_of_type(old, kind))
    ]
