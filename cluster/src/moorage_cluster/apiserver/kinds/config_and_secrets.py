"""ConfigMaps, Secrets and ServiceAccounts: named data, and identities for pods."""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from moorage.api.manifests import Manifest, annotations_of
from moorage.api.names import config_key_problems
from moorage.apimachinery.fields import FieldError, complaints, forbidden, invalid, required, too_long
from moorage.apimachinery.validation.checks import check_unchanged
from moorage_cluster.apiserver.strategy import Strategy

MAX_BYTES: Final = 1024 * 1024
OPAQUE: Final = "Opaque"
SERVICE_ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"
SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_FROZEN = "field is immutable when `immutable` is set"
_REDACTED = "<secret contents redacted>"
_DOCKER_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


class ConfigMapStrategy(Strategy):
    """A ConfigMap: configuration that is not confidential."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Keys are file names, each in one of the two maps; at most one mebibyte in total."""
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        errors = []
        size = 0
        for key, value in data.items():
            errors += _check_key("data", key)
            if key in binary:
                errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
            size += len(value) if value.isascii() else len(value.encode())
        for key, value in binary.items():
            errors += _check_key("binaryData", key)
            size += decoded_size(value)
        if size > MAX_BYTES:
            errors.append(too_long("", MAX_BYTES))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """An immutable ConfigMap does not change."""
        return _check_frozen(obj, old, ("data", "binaryData")) + self.validate(obj)


class SecretStrategy(Strategy):
    """A Secret: confidential data, in base64."""

    def default(self, obj: Manifest) -> None:
        """`stringData` is merged into the data; the type is Opaque."""
        if plain := obj.pop("stringData", None):
            data = obj.setdefault("data", {})
            for key, text in plain.items():
                data[key] = base64.b64encode(text.encode()).decode()
        if not obj.get("type"):
            obj["type"] = OPAQUE

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Keys are file names; the keys that the type requires exist; at most one mebibyte in total."""
        data = obj.get("data") or {}
        errors = []
        for key in data:
            errors += _check_key("data", key)
        if sum(decoded_size(value) for value in data.values()) > MAX_BYTES:
            errors.append(too_long("data", MAX_BYTES))
        return errors + _check_type(obj, data)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The type is immutable, and an immutable Secret does not change."""
        errors = check_unchanged(obj.get("type", ""), old.get("type", ""), "type")
        return errors + _check_frozen(obj, old, ("data",)) + self.validate(obj)

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by type."""
        return {"type": obj.get("type", "")}


class ServiceAccountStrategy(Strategy):
    """A ServiceAccount: an identity for pods."""


def decoded_size(text: str) -> int:
    """The number of bytes that a base64 text decodes to."""
    return len(text) * 3 // 4 - text[-2:].count("=")


def _check_key(part: str, key: str) -> list[FieldError]:
    return complaints(f"{part}[{key}]", key, config_key_problems(key))


def _check_frozen(obj: Manifest, old: Manifest, parts: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = []
    if not obj.get("immutable"):
        errors.append(forbidden("immutable", _FROZEN))
    for part in parts:
        if (obj.get(part) or {}) != (old.get(part) or {}):
            errors.append(forbidden(part, _FROZEN))
    return errors


def _check_type(obj: Manifest, data: Manifest) -> list[FieldError]:
    kind = obj.get("type", "")
    if kind == SERVICE_ACCOUNT_TOKEN:
        if not annotations_of(obj).get(SERVICE_ACCOUNT_NAME):
            return [required(f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]")]
    elif key := _DOCKER_KEYS.get(kind):
        return _check_docker(data, key)
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            return [required("data[username]"), required("data[password]")]
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            return [required("data[ssh-privatekey]")]
    elif kind == "kubernetes.io/tls":
        return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _check_docker(data: Manifest, key: str) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        value = msgspec.json.decode(base64.b64decode(data[key]))
    except (msgspec.MsgspecError, ValueError) as error:
        return [invalid(f"data[{key}]", _REDACTED, str(error))]
    if not isinstance(value, dict):
        return [invalid(f"data[{key}]", _REDACTED, "must be a JSON object")]
    return []
