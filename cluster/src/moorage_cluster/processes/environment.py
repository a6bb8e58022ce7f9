"""The variables of a container, resolved as kubelets do it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.nodes.workload import Host
from moorage_cluster.processes.command import CommandError
from moorage_cluster.processes.downward import DownwardError, field_value, resource_value
from moorage_cluster.processes.objects import MissingObjectError, NamespacedObjects

_REFERENCE: Final = re.compile(r"\$(?:\$|\((?P<name>[^()]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """A text with `$(NAME)` replaced where NAME is a variable; `$$` is a single `$`."""

    def replacement(match: re.Match[str]) -> str:
        name = match["name"]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(replacement, text)


class Environment:
    """Resolves the variables of a container; `rewrite` is applied to specs, ConfigMaps and Secrets."""

    def __init__(
        self,
        objects: NamespacedObjects,
        pod: Manifest,
        address: str,
        host: Host,
        rewrite: Callable[[str], str],
    ) -> None:
        self._objects = objects
        self._pod = pod
        self._address = address
        self._host = host
        self._rewrite = rewrite

    async def variables(self, container: Manifest, given: Mapping[str, str]) -> dict[str, str]:
        """All variables; CommandError if one cannot be resolved.

        given: those of services, which the container's own may override and refer to.
        """
        try:
            return await self._variables(container, dict(given))
        except (MissingObjectError, DownwardError) as error:
            raise CommandError(str(error)) from None

    async def _variables(self, container: Manifest, variables: dict[str, str]) -> dict[str, str]:
        for source in container.get("envFrom") or ():
            variables.update(await self._all_of(source))
        for variable in container.get("env") or ():
            value = await self._value(variable, container, variables)
            if value is not None:
                variables[variable["name"]] = value
        return variables

    async def _all_of(self, source: Manifest) -> dict[str, str]:
        if ref := source.get("configMapRef"):
            data = await self._objects.config_map(ref["name"], is_optional=bool(ref.get("optional")))
        else:
            ref = source["secretRef"]
            data = await self._objects.secret(ref["name"], is_optional=bool(ref.get("optional")))
        prefix = source.get("prefix") or ""
        return {f"{prefix}{key}": self._text(value) for key, value in data.items()}

    def _text(self, value: bytes) -> str:
        return self._rewrite(value.decode(errors="replace"))

    async def _value(self, variable: Manifest, container: Manifest, known: Mapping[str, str]) -> str | None:
        source = variable.get("valueFrom")
        if not source:
            return expand(self._rewrite(variable.get("value") or ""), known)
        if ref := source.get("fieldRef"):
            return field_value(self._pod, ref["fieldPath"], self._address, self._host)
        if ref := source.get("resourceFieldRef"):
            return resource_value(self._pod, ref, container, self._host)
        if ref := source.get("configMapKeyRef"):
            data = await self._objects.config_map(ref["name"], is_optional=bool(ref.get("optional")))
            return self._of_key(data, ref, "ConfigMap")
        if ref := source.get("secretKeyRef"):
            data = await self._objects.secret(ref["name"], is_optional=bool(ref.get("optional")))
            return self._of_key(data, ref, "Secret")
        raise MissingObjectError(f"variable {variable['name']}: {', '.join(source)} is not supported here")

    def _of_key(self, data: Mapping[str, bytes], ref: Manifest, kind: str) -> str | None:
        value = data.get(ref["key"])
        if value is not None:
            return self._text(value)
        if ref.get("optional"):
            return None
        namespace = self._pod["metadata"]["namespace"]
        raise MissingObjectError(f"couldn't find key {ref['key']} in {kind} {namespace}/{ref['name']}")
