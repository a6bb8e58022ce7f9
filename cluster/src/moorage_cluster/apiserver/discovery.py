"""Discovery: which groups, versions and resources there are, in the plain and in the aggregated form."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage_cluster.apiserver.resources import APIResource, Resources, Subresource
from moorage_cluster.apiserver.store import encode

_PRIORITY: Final = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
    "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
    "storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)  # fmt: skip
"""The order of groups, by which clients resolve ambiguous names; all others come after these."""
_VERSION: Final = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


class Discovery:
    """The discovery documents of what is served now; rebuilt when that changes."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._generation = -1
        self._answers: dict[tuple[str, str], bytes] = {}

    def _refresh(self) -> None:
        if self._generation != self._resources.generation:
            self._generation = self._resources.generation
            self._answers.clear()

    def answer(self, path: str, aggregated: str) -> bytes:
        """The answer at `/api`, `/apis`, `/apis/G`, `/api/v1` or `/apis/G/V`.

        `aggregated` is the version of the aggregated form that is wanted, or empty.
        """
        self._refresh()
        key = (path, aggregated)
        if key not in self._answers:
            self._answers[key] = encode(self._made(path, aggregated))
        return self._answers[key]

    def etag(self, body: bytes) -> str:
        """The ETag of an aggregated answer."""
        return f'"{hashlib.sha512(body).hexdigest().upper()}"'

    def _made(self, path: str, aggregated: str) -> Manifest:
        parts = path.strip("/").split("/")
        if path in ("/api", "/apis") and aggregated:
            return self._aggregated(path == "/api", aggregated)
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        if path == "/apis":
            groups = [_group(name, versions) for name, versions in self._groups().items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        if parts[0] == "apis" and len(parts) == 2 and parts[1] in self._groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1], self._groups()[parts[1]])}
        if len(parts) != (2 if parts[0] == "api" else 3):
            raise errors.unknown_path()
        group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
        served = self._served(group, version)
        if not served:
            raise errors.unknown_path()
        entries = [entry for resource in served for entry in _entries(resource)]
        name = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": entries}

    def _served(self, group: str, version: str) -> list[APIResource]:
        """The resources of a group's version, by name."""
        found = [one for one in self._resources if (one.group, one.version) == (group, version)]
        return sorted(found, key=attrgetter("plural"))

    def _groups(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for resource in self._resources:
            versions = found.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        names = sorted(found, key=lambda name: (_PRIORITY.index(name) if name in _PRIORITY else 99, name))
        return {name: sorted(found[name], key=_version_rank) for name in names}

    def _aggregated(self, core: bool, version: str) -> Manifest:
        groups = {name: versions for name, versions in self._groups().items() if (name == "") is core}
        items = []
        for group, versions in groups.items():
            served = [
                {
                    "version": one,
                    "freshness": "Current",
                    "resources": [_aggregated_entry(resource) for resource in self._served(group, one)],
                }
                for one in versions
            ]
            metadata = {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None}
            items.append({"metadata": metadata, "versions": served})
        api_version = f"apidiscovery.k8s.io/{version}"
        return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _version_rank(version: str) -> tuple[int, int, int, str]:
    """Stable versions first, then beta, then alpha, the newest of each first; others follow by name."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (len(_STABILITY), 0, 0, version)
    major, stability, minor = found.groups()
    return (_STABILITY[stability], -int(major), -int(minor or 0), version)


def _group(name: str, versions: Iterable[str]) -> Manifest:
    known = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": known, "preferredVersion": known[0]}


def _entries(resource: APIResource) -> list[Manifest]:
    main: Manifest = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    subresources = sorted(resource.subresources, key=attrgetter("name"))
    return [main, *(_subentry(resource, sub) for sub in subresources)]


def _subentry(resource: APIResource, sub: Subresource) -> Manifest:
    entry: Manifest = {
        "name": f"{resource.plural}/{sub.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": sub.kind,
        "verbs": list(sub.verbs),
    }
    if sub.version:
        entry |= {"group": sub.group, "version": sub.version}
    return entry


def _aggregated_entry(resource: APIResource) -> Manifest:
    entry: Manifest = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular or resource.kind.lower(),
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _kind(
                    sub.group if sub.version else resource.group, sub.version or resource.version, sub.kind
                ),
                "verbs": list(sub.verbs),
            }
            for sub in sorted(resource.subresources, key=attrgetter("name"))
        ]
    return entry


def _kind(group: str, version: str, kind: str) -> Manifest:
    return {"group": group, "version": version, "kind": kind}
