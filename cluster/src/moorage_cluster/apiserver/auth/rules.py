"""The rules of roles: what one allows, and whether some rules cover others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from moorage.api.manifests import Manifest
from moorage.api.text import quoted
from moorage_cluster.apiserver.auth.attributes import RequestAttributes

ANY: Final = "*"


class Rule(NamedTuple):
    """Verbs on resources of groups, or on paths; empty `names` means every name."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: Manifest) -> Rule:
        """A rule from its form in objects."""
        return cls(
            verbs=tuple(rule.get("verbs") or ()),
            groups=tuple(rule.get("apiGroups") or ()),
            resources=tuple(rule.get("resources") or ()),
            names=tuple(rule.get("resourceNames") or ()),
            urls=tuple(rule.get("nonResourceURLs") or ()),
        )

    @property
    def manifest(self) -> Manifest:
        """The rule in its form in objects."""
        written = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {field: list(values) for field, values in written.items() if values or field == "verbs"}

    def __str__(self) -> str:
        parts = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{label}:{quoted_list(values)}" for label, values in parts if values) + "}"


EVERYTHING: Final = (Rule((ANY,), (ANY,), (ANY,)), Rule(verbs=(ANY,), urls=(ANY,)))
"""The rules of cluster-admin."""


def quoted_list(values: Iterable[str]) -> str:
    """Strings as Kubernetes' messages list them: `["a" "b"]`."""
    return "[" + " ".join(map(quoted, values)) + "]"


def rules_of(role: Manifest) -> tuple[Rule, ...]:
    """The rules that a Role or ClusterRole contains itself."""
    return tuple(map(Rule.of, role.get("rules") or ()))


class _Grant(NamedTuple):
    """A compiled rule about resources; its verbs are the key it is stored under."""

    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    any_group: bool
    any_resource: bool


class RuleSet:
    """Compiled rules, which tell whether any of them allows a request."""

    __slots__ = ("_grants", "_urls")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._grants: dict[str, list[_Grant]] = {}
        self._urls: dict[str, list[str]] = {}
        for rule in rules:
            resources = frozenset(rule.resources)
            grant = _Grant(
                frozenset(rule.groups), resources, frozenset(rule.names), ANY in rule.groups, ANY in resources
            )
            for verb in dict.fromkeys(rule.verbs):
                if resources:
                    self._grants.setdefault(verb, []).append(grant)
                if rule.urls:
                    self._urls.setdefault(verb, []).extend(rule.urls)

    def allows(self, attributes: RequestAttributes) -> bool:
        """Whether any rule allows this."""
        if not attributes.is_resource_request:
            path = attributes.path
            return any(
                url_covers(url, path) for verb in (attributes.verb, ANY) for url in self._urls.get(verb, ())
            )
        grants = self._grants
        for verb in (attributes.verb, ANY):
            if verb in grants and _any_grants(grants[verb], attributes):
                return True
        return False


def _any_grants(grants: Iterable[_Grant], attributes: RequestAttributes) -> bool:
    resource, subresource, group, name = (
        attributes.qualified_resource,
        attributes.subresource,
        attributes.group,
        attributes.name,
    )
    for grant in grants:
        if not (grant.any_group or group in grant.groups):
            continue
        if grant.names and name not in grant.names:
            continue
        if (
            grant.any_resource
            or resource in grant.resources
            or (subresource and f"*/{subresource}" in grant.resources)
        ):
            return True
    return False


def url_covers(pattern: str, path: str) -> bool:
    """Whether a path, or a pattern of paths, is covered by a pattern: equal, or by a `*` at its end."""
    return pattern == path or (pattern.endswith(ANY) and path.startswith(pattern.rstrip(ANY)))


class TooManyPartsError(Exception):
    """Rules with lists that multiply to more combinations than can be compared with the rules of a user."""


_MAX_COMPARISONS: Final = 2_000_000


def missing(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The parts of wanted rules that no held rule covers, each with one verb on one thing.

    TooManyPartsError if that cannot be computed in a reasonable time.
    """
    compared = list(map(_HeldRule.of, held))
    unsure = [
        rule for rule in map(_unique, wanted) if not any(_covers_at_once(owned, rule) for owned in compared)
    ]
    if sum(map(_part_count, unsure)) * max(1, len(held)) > _MAX_COMPARISONS:
        raise TooManyPartsError
    return [
        part
        for rule in unsure
        for part in _parts(rule)
        if not any(_covers(owned, part) for owned in compared)
    ]


class _HeldRule(NamedTuple):
    """A rule of a user, prepared for comparison."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    urls: tuple[str, ...]

    @classmethod
    def of(cls, rule: Rule) -> _HeldRule:
        verbs, groups, resources, names = map(frozenset, rule[:4])
        return cls(verbs, groups, resources, names, rule.urls)


def _unique(rule: Rule) -> Rule:
    return Rule(*(tuple(dict.fromkeys(values)) for values in rule))


def _covers_at_once(held: _HeldRule, rule: Rule) -> bool:
    """Whether one rule allows all of another about resources; if not, it may still allow parts of it."""
    if rule.urls or held.names:
        return False
    pairs = ((held.verbs, rule.verbs), (held.groups, rule.groups), (held.resources, rule.resources))
    return all(ANY in mine or mine.issuperset(wanted) for mine, wanted in pairs)


def _part_count(rule: Rule) -> int:
    named = len(rule.groups) * len(rule.resources) * max(1, len(rule.names))
    return len(rule.verbs) * (named + len(rule.urls))


def _parts(rule: Rule) -> list[Rule]:
    named: list[tuple[str, ...]] = [(name,) for name in rule.names] or [()]
    parts = [
        Rule((verb,), (group,), (resource,), names)
        for group in rule.groups
        for resource in rule.resources
        for verb in rule.verbs
        for names in named
    ]
    return parts + [Rule(verbs=(verb,), urls=(url,)) for url in rule.urls for verb in rule.verbs]


def _covers(held: _HeldRule, part: Rule) -> bool:
    """Whether one rule allows at least what a part with one verb on one thing allows."""
    if not (ANY in held.verbs or part.verbs[0] in held.verbs):
        return False
    if part.urls:
        # A rule restricted to names applies to resources only, not to paths.
        return not held.names and any(url_covers(url, part.urls[0]) for url in held.urls)
    if not (ANY in held.groups or part.groups[0] in held.groups):
        return False
    if held.names and not (part.names and part.names[0] in held.names):
        return False
    resource = part.resources[0]
    if ANY in held.resources or resource in held.resources:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in held.resources


def merged(parts: Iterable[Rule]) -> list[Rule]:
    """Parts that differ only in their verb, merged again; rules about paths are unchanged."""
    verbs: dict[Rule, list[str]] = {}
    alone = []
    for part in parts:
        if part.urls:
            alone.append(part)
        else:
            verbs.setdefault(part._replace(verbs=()), []).extend(part.verbs)
    return alone + [rule._replace(verbs=tuple(each)) for rule, each in verbs.items()]
