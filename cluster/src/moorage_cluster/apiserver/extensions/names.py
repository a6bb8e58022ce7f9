"""The names of custom kinds: their validation, and conflicts between definitions with the same names."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from moorage.api.conditions import condition_status, set_condition
from moorage.api.manifests import Manifest, status_of
from moorage.api.names import dns_1035_label_problems
from moorage.api.text import quoted
from moorage.apimachinery.fields import FieldError, invalid, required
from moorage_cluster.apiserver.resources import APIResource


def names_problems(names: Manifest, path: str) -> list[FieldError]:
    """The errors of a definition's names."""
    found = [
        required(f"{path}.{key}") for key in ("plural", "singular", "kind", "listKind") if not names.get(key)
    ]
    for key in ("plural", "singular"):
        name = names.get(key) or ""
        if name and (problems := dns_1035_label_problems(name)):
            found.append(invalid(f"{path}.{key}", name, ",".join(problems)))
    for key in ("kind", "listKind"):
        name = names.get(key) or ""
        if name and (problems := dns_1035_label_problems(name.lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            found.append(invalid(f"{path}.{key}", name, detail))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        found.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    for key in ("shortNames", "categories"):
        for index, name in enumerate(names.get(key) or ()):
            if problems := dns_1035_label_problems(name):
                found.append(invalid(f"{path}.{key}[{index}]", name, ",".join(problems)))
    return found


def accepted(crd: Manifest, existing: Iterable[APIResource], now: datetime) -> Manifest:
    """The status of a definition among the resources that are served already.

    A name that another resource of the group has is not accepted. What was accepted once stays so, and a kind
    that was established once stays established.
    """
    spec = crd["spec"]
    status: Manifest = dict(crd.get("status") or {})
    wanted: Manifest = spec["names"]
    held: Manifest = status.get("acceptedNames") or {}
    words, kinds = _taken(spec["group"], wanted.get("plural", ""), existing)
    names: Manifest = dict(held)
    conflicts: list[tuple[str, str]] = []
    for key, taken, reason in (
        ("plural", words, "PluralConflict"),
        ("singular", words, "SingularConflict"),
        ("shortNames", words, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        complaints = _complaints(wanted.get(key), held.get(key), taken)
        if complaints:
            conflicts.append((reason, complaints))
        elif wanted.get(key):
            names[key] = wanted[key]
        else:
            names.pop(key, None)
    names.pop("categories", None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    status["acceptedNames"] = names
    status["storedVersions"] = stored_versions(crd)
    status["conditions"] = _conditions(crd, conflicts, now)
    return status


def stored_versions(crd: Manifest) -> list[str]:
    """The versions in which objects are or were stored."""
    stored: list[str] = list((crd.get("status") or {}).get("storedVersions") or ())
    for version in crd["spec"].get("versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version.get("name", ""))
            break
    return stored


def _taken(group: str, plural: str, existing: Iterable[APIResource]) -> tuple[set[str], set[str]]:
    words: set[str] = set()
    kinds: set[str] = set()
    own = f"{group}/{plural}"
    for resource in existing:
        if resource.group == group and resource.storage != own:
            words.update((resource.plural, resource.singular, *resource.short_names))
            kinds.update((resource.kind, resource.list_kind))
    return words, kinds


def _complaints(wanted: Any, held: Any, taken: set[str]) -> str:
    ours = held if isinstance(held, list) else [held]
    names = wanted if isinstance(wanted, list) else [wanted]
    said = [f"{quoted(name)} is already in use" for name in names if name in taken and name not in ours]
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]" if said else ""


def _conditions(crd: Manifest, conflicts: list[tuple[str, str]], now: datetime) -> list[Manifest]:
    if conflicts:
        reason, message = conflicts[-1]
        named = {"type": "NamesAccepted", "status": "False", "reason": reason, "message": message}
    else:
        named = {
            "type": "NamesAccepted",
            "status": "True",
            "reason": "NoConflicts",
            "message": "no conflicts found",
        }
    conditions = set_condition(status_of(crd).get("conditions") or (), named, now)
    if condition_status(crd, "Established") == "True":
        return conditions
    if conflicts:
        established = {
            "type": "Established",
            "status": "False",
            "reason": "NotAccepted",
            "message": "not all names are accepted",
        }
    else:
        established = {
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        }
    return set_condition(conditions, established, now)
