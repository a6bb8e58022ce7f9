"""What roles grant, one by one, and roles that grant one less."""

from __future__ import annotations

from typing import Any, NamedTuple

from moorage.api.manifests import copy
from tests.manifests.printing import Manifest

AUTHORITIES = "extension-apiserver-authentication-reader"


class Grant(NamedTuple):
    """One verb on one resource or path, or one binding (`verb` is empty) of a role that others have made."""

    role: str
    group: str
    what: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.role, self.verb, self.what, self.group, self.name)))


def grants(objects: list[Manifest]) -> list[Grant]:
    """All that some objects grant."""
    found = []
    for obj in objects:
        role = obj["metadata"]["name"]
        for rule in obj.get("rules") or ():
            found += [Grant(role, *one) for one in single(rule)]
        if (obj.get("roleRef") or {}).get("name") == AUTHORITIES:
            found.append(Grant(role, "", AUTHORITIES, ""))
    return found


def single(rule: Manifest) -> list[tuple[str, str, str, str]]:
    """What a rule grants, one by one: group, resource or path, verb, name."""
    if "nonResourceURLs" in rule:
        return [("", path, verb, "") for path in rule["nonResourceURLs"] for verb in rule["verbs"]]
    return [
        (group, resource, verb, name)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or ("",)
    ]


def without(objects: list[Manifest], taken: Grant) -> list[Manifest]:
    """The same objects, which grant one thing less."""
    left: list[Manifest] = copy(objects)
    if not taken.verb:
        return [each for each in left if (each.get("roleRef") or {}).get("name") != AUTHORITIES]
    for obj in left:
        if obj["metadata"]["name"] == taken.role and "rules" in obj:
            obj["rules"] = [
                _written(*one)
                for rule in obj["rules"]
                for one in single(rule)
                if Grant(taken.role, *one) != taken
            ]
    assert len(grants(left)) == len(grants(objects)) - 1
    return left


def _written(group: str, what: str, verb: str, name: str) -> dict[str, Any]:
    if what.startswith("/"):
        return {"nonResourceURLs": [what], "verbs": [verb]}
    names = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [group], "resources": [what], "verbs": [verb], **names}
