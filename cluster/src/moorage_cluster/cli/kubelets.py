"""Kubelets as a configuration file and the kubelet's flags describe them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.config.load import read_document
from moorage_cluster.nodes.kubelet_config import API_VERSION, KIND, Kubelets, configured
from moorage_cluster.nodes.settings import NodeTemplate

_SIGN: Final = {"evictionHard": "<", "evictionSoft": "<"}
_MAPS: Final = (
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
    "kubeReserved",
    "systemReserved",
)


def read_kubelets(
    file: Path | None, flags: Mapping[str, str | int | None], template: NodeTemplate
) -> Kubelets:
    """Kubelets as a file and flags want them; flags by the names of their fields, None where not given."""
    document: Any = {"apiVersion": API_VERSION, "kind": KIND} if file is None else read_document(file)
    given = {field: value for field, value in flags.items() if value is not None}

    def where(field: str) -> str:
        if field in given:
            return _flag(field)
        return f"{file}: {field}" if field else str(file)

    if isinstance(document, dict):
        document = document | {field: _value(field, value) for field, value in given.items()}
    return configured(document, template, where)


def _value(field: str, value: str | int) -> object:
    """What a flag says, as its field says it."""
    if field not in _MAPS:
        return value
    sign, pairs = _SIGN.get(field, "="), {}
    for part in filter(None, str(value).split(",")):
        name, found, text = part.partition(sign)
        if not found:
            raise InputError(_flag(field), f"malformed pair {part!r}, expect string{sign}string")
        pairs[name.strip()] = text.strip()
    return pairs


def _flag(field: str) -> str:
    words = "".join(f"-{each.lower()}" if each.isupper() else each for each in field)
    return f"--{words}"
