"""The generator: from a seed, a number and what answers have shown to the next request.

Each request has a random source of its own, so request N of a seed is the same however the generator's code
uses chance for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from moorage.http.guard import MAX_BODY_BYTES
from moorage_cluster.apiserver.kinds.catalog import builtin_resources
from tests.apiserver.client import GROUPS_SERVED, START
from tests.apiserver.fuzzing import definitions
from tests.apiserver.fuzzing.addressing import CONTENT_TYPES, DOCUMENTS, Surroundings
from tests.apiserver.fuzzing.encodings import JSON, PROTOBUF, YAML, to_json, to_protobuf, to_yaml
from tests.apiserver.fuzzing.memory import DEFINITION, Known, Memory
from tests.apiserver.fuzzing.mutations import copied, garble, mutate
from tests.apiserver.fuzzing.objects import Maker, field_names
from tests.apiserver.fuzzing.patches import TYPES, damaged_owners, patch
from tests.apiserver.fuzzing.protobuf_mutations import damaged
from tests.apiserver.fuzzing.request import Kind, Shot
from tests.apiserver.fuzzing.seeds import DELETE_OPTIONS, SUBRESOURCE_SEEDS, seeds_of
from tests.apiserver.fuzzing.values import NAMES, NAMESPACES, TEXTS, chance, strange, text
from tests.apiserver.fuzzing.yaml_bodies import odd_yaml

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW")
_FAVOURITES = (
    "Pod",
    "Pod",
    "Pod",
    "Node",
    "Namespace",
    "Service",
    "Deployment",
    "Job",
    "PodDisruptionBudget",
    "PersistentVolumeClaim",
)
APPLY_PATCH = TYPES[3]
_CONFIGURED = {"apiVersion", "kind", "metadata"}


def builtin_kinds() -> list[Kind]:
    """All that the server has built in."""
    return [
        Kind(
            one.group,
            one.version,
            one.kind,
            one.plural,
            one.namespaced,
            tuple(sub.name for sub in one.subresources),
        )
        for one in builtin_resources(lambda storage: (), lambda: START, GROUPS_SERVED)
    ]


class Generator:
    """Makes requests; between two epochs the server and the memory are new."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._kinds = builtin_kinds()
        self._names = field_names()
        self.memory = Memory()

    def prelude(self) -> list[Shot]:
        """What makes a new server one in which things can happen."""
        headers = Surroundings(Random(0)).headers(JSON, odd=False)
        made = []
        for plural, names in (("namespaces", ("team-a", "team-b")), ("nodes", ("node-1", "node-2"))):
            kind = next(kind for kind in self._kinds if kind.plural == plural)
            for name in names:
                body = to_json({"metadata": {"name": name}, **seeds_of(kind.group, kind.kind)[0]}, Random(0))
                made.append(Shot("POST", kind.path(), "", headers, body, kind))
        return made

    def shot(self, number: int) -> Shot:
        """Request number so and so."""
        return _Maker(Random(f"{self._seed}/{number}"), self.memory, self._kinds, self._names).shot()

    def forget(self) -> None:
        """The server is a new one."""
        self.memory = Memory()


class _Maker:
    """Makes one request."""

    def __init__(self, random: Random, memory: Memory, kinds: list[Kind], names: tuple[str, ...]) -> None:
        self._random = random
        self._memory = memory
        self._kinds = kinds
        self._names = names
        self._around = Surroundings(random, list(memory.revisions), list(memory.tokens), list(memory.bearers))

    def shot(self) -> Shot:
        sorts: tuple[tuple[int, Callable[[], Shot]], ...] = (
            (30, self._create),
            (12, self._update),
            (22, self._patch),
            (8, self._read),
            (3, self._watch),
            (6, self._delete),
            (1, self._delete_collection),
            (10, self._subresource),
            (3, self._define),
            (2, self._document),
            (2, self._anything),
            (2, self._odd_yaml),
            (2, self._ask_about),
        )
        weights = [weight for weight, _ in sorts]
        shot = self._random.choices([make for _, make in sorts], weights)[0]()
        return self._damaged(shot)

    def _damaged(self, shot: Shot) -> Shot:
        random = self._random
        if chance(random, 25):
            shot.path = self._around.odd_path(shot.path)
        if chance(random, 40):
            shot.query = self._around.odd_query()
        if chance(random, 60):
            shot.method = random.choice(_METHODS)
        if shot.body and chance(random, 20):
            shot.body = garble(shot.body, random)
        if chance(random, 3000):
            shot.body += b" " * (1024 * 1024)
        shot.body = shot.body[:MAX_BODY_BYTES]  # Longer ones do not come as far as this; see `malformed`.
        return shot

    # -- what it is about

    def _kind(self) -> Kind:
        random = self._random
        if self._memory.customs and chance(random, 6):
            return random.choice(self._memory.customs)
        if chance(random, 3):
            wanted = random.choice(_FAVOURITES)
            return next(kind for kind in self._kinds if kind.kind == wanted)
        return random.choice(self._kinds)

    def _known(self) -> Known:
        """Something that is there, or at least might be."""
        random = self._random
        if self._memory.objects and not chance(random, 20):
            return random.choice(self._memory.objects)
        kind = self._kind()
        namespace, name = random.choice(NAMESPACES), self._name()
        return Known(kind, namespace, name, self._object(kind, namespace, name))

    def _name(self) -> str:
        return self._random.choice(NAMES) if not chance(self._random, 30) else self._random.choice(TEXTS)

    def _object(self, kind: Kind, namespace: str, name: str) -> Any:
        """An object that may well be valid, or may not."""
        random = self._random
        if kind.kind == DEFINITION:
            made = definitions.definition(random)
        else:
            made = {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": self._metadata(kind, namespace, name),
            }
            made.update(copied(random.choice(seeds_of(kind.group, kind.kind))))
        wire = GROUPS_SERVED.types.of_kind(kind.group, kind.version, kind.kind)
        maker = Maker(random)
        if wire is not None and chance(random, 10):
            whole = maker.of_type(wire)
            made.update({key: value for key, value in whole.items() if key not in _CONFIGURED})
        if kind.schema is not None and not chance(random, 4):
            whole = definitions.value_of(kind.schema, random)
            if isinstance(whole, dict):
                made.update({key: value for key, value in whole.items() if key not in _CONFIGURED})
        if wire is not None and chance(random, 2):
            for _ in range(random.choice((1, 1, 2, 4))):
                maker.enrich(made, wire)
        result: Any = made
        if chance(random, 4):
            for _ in range(random.choice((1, 1, 2))):
                result = mutate(result, random, self._names)
        return result

    def _metadata(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        random = self._random
        if kind.kind.endswith("Review") and not chance(random, 4):
            return {"namespace": namespace} if kind.namespaced else {}
        made: dict[str, Any] = {"name": name, "labels": {"app": "web"}}
        if kind.namespaced and chance(random, 2):
            made["namespace"] = namespace
        if chance(random, 12):
            made["generateName"] = made.pop("name") + "-"
        if chance(random, 10):
            made["finalizers"] = random.choice(
                (["example.com/hold"], ["orphan"], ["foregroundDeletion"], [text(random)])
            )
        if chance(random, 8):
            owner = self._owner()
            made["ownerReferences"] = [owner] if not chance(random, 10) else [owner, owner]
        if chance(random, 15):
            made["managedFields"] = damaged_owners(random)
        if chance(random, 10):
            made["annotations"] = {text(random): text(random)}
        return made

    def _owner(self) -> dict[str, Any]:
        random = self._random
        if not self._memory.objects or chance(random, 5):
            return {"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": text(random)}
        known = random.choice(self._memory.objects)
        uid = known.obj.get("metadata", {}).get("uid", "")
        owner = {
            "apiVersion": known.kind.api_version,
            "kind": known.kind.kind,
            "name": known.name,
            "uid": uid,
        }
        if chance(random, 2):
            owner |= {"blockOwnerDeletion": True, "controller": True}
        return owner

    # -- how it is sent

    def _sent(
        self,
        method: str,
        path: str,
        query: str,
        value: Any,
        kind: Kind | None,
        content_type: str | None = None,
    ) -> Shot:
        random = self._random
        sort = random.randrange(24)
        if content_type is not None:
            body = to_yaml(value, random) if content_type.endswith("yaml") else to_json(value, random)
        elif sort == 0:
            content_type, body = YAML, to_yaml(value, random)
        elif sort in (1, 2) and isinstance(value, dict):
            content_type, body = PROTOBUF, to_protobuf(value)
            if chance(random, 2):
                body = damaged(body, random)
        else:
            content_type, body = JSON, to_json(value, random)
        if chance(random, 80):
            content_type = random.choice(CONTENT_TYPES)
        headers = self._around.headers(content_type, odd=chance(random, 20))
        return Shot(method, path, query, headers, body, kind)

    def _bare(self, method: str, path: str, query: str, kind: Kind | None = None) -> Shot:
        return Shot(method, path, query, self._around.headers(None, odd=chance(self._random, 15)), b"", kind)

    # -- the sorts of requests

    def _create(self) -> Shot:
        kind, namespace = self._kind(), self._random.choice(NAMESPACES)
        value = self._object(kind, namespace, self._name())
        return self._sent("POST", kind.path(namespace), self._around.write_query(), value, kind)

    def _define(self) -> Shot:
        kind = next(kind for kind in self._kinds if kind.kind == DEFINITION)
        return self._sent("POST", kind.path(), "", self._object(kind, "", ""), kind)

    def _update(self) -> Shot:
        random, known = self._random, self._known()
        value: Any = copied(known.obj)
        wire = GROUPS_SERVED.types.of_kind(known.kind.group, known.kind.version, known.kind.kind)
        if wire is not None and chance(random, 2):
            Maker(random).enrich(value, wire)
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if isinstance(metadata, dict):
            if chance(random, 3):
                metadata.pop("resourceVersion", None)
            if chance(random, 8):
                metadata["managedFields"] = damaged_owners(random)
            if chance(random, 12):
                metadata["finalizers"] = random.choice(([], ["example.com/hold"], None))
        if chance(random, 2):
            value = mutate(value, random, self._names)
        path = known.kind.path(known.namespace, known.name)
        return self._sent("PUT", path, self._around.write_query(), value, known.kind)

    def _patch(self) -> Shot:
        random, known = self._random, self._known()
        subresource = ""
        if known.kind.subresources and chance(random, 5):
            subresource = random.choice(known.kind.subresources)
        return self._patched(known, subresource)

    def _patched(self, known: Known, subresource: str) -> Shot:
        random = self._random
        content_type = random.choice(TYPES)
        query = self._around.write_query()
        if content_type.endswith("yaml") and not chance(random, 12):
            query += "&fieldManager=" + random.choice(("me", "you", "kubectl"))
            query += random.choice(("", "", "&force=true"))
        live: Any = known.obj
        if subresource in SUBRESOURCE_SEEDS:
            live = random.choice(SUBRESOURCE_SEEDS[subresource])
        value = patch(content_type, live, random, self._names)
        path = known.kind.path(known.namespace, known.name, subresource)
        return self._sent("PATCH", path, query, value, known.kind, content_type)

    def _read(self) -> Shot:
        random = self._random
        if chance(random, 3):
            known = self._known()
            path = known.kind.path(known.namespace, known.name)
            return self._bare("GET", path, random.choice(("", self._around.list_query())), known.kind)
        kind = self._kind()
        namespace = random.choice(("", *NAMESPACES))
        return self._bare("GET", kind.path(namespace), self._around.list_query(), kind)

    def _watch(self) -> Shot:
        kind = self._kind()
        namespace = self._random.choice(("", *NAMESPACES))
        return self._bare("GET", kind.path(namespace), self._around.watch_query(), kind)

    def _delete(self) -> Shot:
        random, known = self._random, self._known()
        path = known.kind.path(known.namespace, known.name)
        if chance(random, 2):
            return self._bare("DELETE", path, self._around.write_query(), known.kind)
        options: Any = copied(random.choice(DELETE_OPTIONS))
        if chance(random, 2):
            options["preconditions"] = {"uid": known.uid}
        if chance(random, 4):
            options = mutate(options, random, self._names)
        return self._sent("DELETE", path, self._around.write_query(), options, known.kind)

    def _delete_collection(self) -> Shot:
        random, kind = self._random, self._kind()
        query = self._around.list_query()
        if chance(random, 2):
            query += "&dryRun=All"
        return self._bare("DELETE", kind.path(random.choice(NAMESPACES)), query, kind)

    def _subresource(self) -> Shot:
        random, known = self._random, self._known()
        # Pods have the most of them.
        pods = [one for one in self._memory.objects if one.kind.kind == "Pod"]
        if pods and chance(random, 2):
            known = random.choice(pods)
        elif chance(random, 6):
            accounts = next(kind for kind in self._kinds if kind.plural == "serviceaccounts")
            known = Known(accounts, random.choice(NAMESPACES), "default", {})
        name = random.choice(
            (*known.kind.subresources, "status") if not chance(random, 10) else ("bogus", "scale", "log")
        )
        method = random.choice(("GET", "PUT", "PUT", "PATCH", "PATCH", "POST"))
        if name in ("binding", "eviction", "token") and not chance(random, 10):
            method = "POST"
        if method == "PATCH":
            return self._patched(known, name)
        path = known.kind.path(known.namespace, known.name, name)
        query = self._around.write_query()
        if method == "GET":
            return self._bare("GET", path, query, known.kind)
        value: Any = copied(random.choice(SUBRESOURCE_SEEDS.get(name, [known.obj])))
        wire = GROUPS_SERVED.types.of_kind(known.kind.group, known.kind.version, known.kind.kind)
        if isinstance(value, dict) and wire is not None and name not in SUBRESOURCE_SEEDS:
            metadata = value.get("metadata")
            if isinstance(metadata, dict) and chance(random, 3):
                metadata.pop("resourceVersion", None)
            part = {"ephemeralcontainers": "spec", "resize": "spec", "finalize": "spec"}.get(name, "status")
            field = wire.by_name.get(part)
            if field is not None and chance(random, 3):
                value[part] = Maker(random).of_field(field, 1)
            else:
                Maker(random).enrich(value, wire)
        if chance(random, 4):
            value = mutate(value, random, self._names)
        return self._sent(method, path, query, value, known.kind)

    def _document(self) -> Shot:
        return self._bare("GET", self._random.choice(DOCUMENTS), "")

    def _odd_yaml(self) -> Shot:
        """YAML as it is seldom written, created or applied."""
        random, kind = self._random, next(kind for kind in self._kinds if kind.kind == "ConfigMap")
        if chance(random, 2):
            path, query, content_type = kind.path("default"), "", YAML
        else:
            path, query, content_type = kind.path("default", "y"), "fieldManager=me", APPLY_PATCH
        headers = self._around.headers(content_type, odd=False)
        return Shot("POST" if content_type == YAML else "PATCH", path, query, headers, odd_yaml(random), kind)

    def _ask_about(self) -> Shot:
        """HEAD and OPTIONS, of what can be read, watched or neither."""
        random, known = self._random, self._known()
        path = random.choice((known.kind.path(known.namespace), known.kind.path(known.namespace, known.name)))
        query = random.choice(("", self._around.list_query(), self._around.watch_query()))
        return self._bare(random.choice(("HEAD", "HEAD", "OPTIONS")), path, query, known.kind)

    def _anything(self) -> Shot:
        random = self._random
        path = self._around.odd_path(random.choice((self._kind().path("default", self._name()), *DOCUMENTS)))
        return self._sent(random.choice(_METHODS), path, self._around.odd_query(), strange(random), None)
