"""Around the body: paths, queries and headers, proper and otherwise."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from random import Random
from urllib.parse import quote

from tests.apiserver.fuzzing.request import TOKEN
from tests.apiserver.fuzzing.values import MOMENTS, NAMES, NAMESPACES, NUMBERS, TEXTS, chance, text

DOCUMENTS = (
    "/", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/healthz", "/livez",
    "/readyz",
    "/readyz/ping", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1",
    "/openapi/v3/apis/example.com/v1", "/apis/example.com", "/apis/example.com/v1", "/metrics", "/logs",
    "/api/v2",
    "/apis/apiextensions.k8s.io/v1", "/openapi/v3/", "/openapi/v3/../v2", "/openapi/v4", "/swagger.json",
)  # fmt: skip

_ODD_SEGMENTS = (
    "..", ".", "", "%2e%2e", "%2F", "%00", "%", "%zz", "%ff", "%F0%9F%98%80", "a%0d%0aX: 1", "é", "*", "~",
    ";",
    "a" * 9000, "namespaces", "status", "api", "apis", "v1", "pods", "scale", "-", " ", "\\..\\", "%25",
    "a b",
)  # fmt: skip

LABEL_SELECTORS = (
    "app=web", "app==web", "app!=web", "app", "!app", "app in (web,db)", "app notin (web)", "a>1", "a<5",
    "app=",
    "app in ()", "app in (,)", "a=b,c=d", "a=b,", ",", "=", "!", "!!a", "(", "a in", "a in (b", "a b",
    "a=b=c",
    "a/b=c", "a/b/c=d", "é=1", "a=é", "a=" + "x" * 64, "in", "in in (in)", "a>x", "a>99999999999999999999",
    "\x00",
    "a=\ud800".encode("utf-8", "replace").decode(), "a" * 5000, "a," * 2000, "x in (" + "a," * 3000 + ")",
)  # fmt: skip

FIELD_SELECTORS = (
    "metadata.name=a", "metadata.namespace=default", "metadata.name!=a", "metadata.name==a", "spec.nodeName=",
    "status.phase=Running", "spec.nodeName=node-1,status.phase!=Failed", "type=Opaque", "reason=x",
    "involvedObject.name=a", "spec.unschedulable=true", "spec.x=y", "bogus=1", "=", "a", ",",
    "metadata.name=a\\,b",
    "metadata.name=a\\", "metadata.name", "!a", "a=b=c", "metadata.name=" + "x" * 5000,
    "metadata.name=\x00", "a\\=b=c",
)  # fmt: skip

_ACCEPTS = (
    "application/json", "*/*", "", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/yaml", "text/html",
    "application/json;as=Table;v=v2;g=meta.k8s.io", "application/vnd.kubernetes.protobuf", "application/cbor",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "application/json;as=", ";;;,,,",
    "application/json;as=Table", "application/json; q=0.5", "a" * 3000, "application/json;stream=watch",
    "\xff",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)  # fmt: skip

CONTENT_TYPES = (
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "",
    "application/cbor",
    "application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json", "*/*",
    "application/x\xff",
    "application/apply-patch+yaml", "application/json-patch+json", "application/apply-patch+cbor",
    "multipart/form-data",
)  # fmt: skip

_AUTHORIZATIONS = (
    "", "Bearer", "Bearer ", "Bearer x", "Basic YTpi", "Bearer a.b.c", "bearer " + TOKEN, "Bearer  " + TOKEN,
    "Bearer e30.e30.e30", "Bearer eyJhbGciOiJub25lIn0.e30.", "Bearer \xff", "Bearer " + "a" * 5000,
    "Bearer ..", "Bearer =.=.=",
    "Bearer eyJhbGciOiJIUzI1NiJ9.bnVsbA.AAAA", "Bearer W10.W10.W10",
)  # fmt: skip

_HOSTS = (
    "127.0.0.1", "localhost:6443", "[::1]:1", "example.com", "", "127.0.0.1:x", "[", "[::1", "a:b:c",
    "127.1", "\xff", "LOCALHOST", "localhost.", "127.0.0.1@evil",
)  # fmt: skip
_ORIGINS = ("http://localhost", "https://evil.example", "null", "http://[", "", "http://127.0.0.1:80", "\xff")
_IMPERSONATIONS = (
    ("impersonate-user", "jane"), ("impersonate-group", "system:masters"), ("impersonate-uid", "1"),
    ("impersonate-extra-a%2fb", "c"), ("impersonate-extra-%zz", "c"), ("impersonate-user", ""),
    ("impersonate-user", "system:serviceaccount:default:default"), ("impersonate-user",
    "system:serviceaccount::"),
    ("impersonate-user", "system:node:node-1"), ("impersonate-extra-", ""), ("impersonate-bogus", "1"),
    ("impersonate-user", "\xff"), ("impersonate-extra-%ff", "\xff"), ("impersonate-user", "system:anonymous"),
)  # fmt: skip


_BAD_OPTIONS = (
    ("dryRun", "all"), ("dryRun", "All,All"), ("fieldValidation", "x"), ("fieldManager", "x" * 129),
    ("fieldManager", "\x00"), ("fieldManager", "é"), ("fieldManager", "a\nb"), ("dryRun", ""),
    ("fieldManager", ""),
)  # fmt: skip


class Surroundings:
    """Makes what surrounds bodies.

    What answers have shown: revisions, tokens to go on listing with, and tokens of service accounts.
    """

    def __init__(
        self,
        random: Random,
        revisions: Sequence[str] = (),
        tokens: Sequence[str] = (),
        bearers: Sequence[str] = (),
    ) -> None:
        self._random = random
        self._bearers = bearers
        self._revisions = revisions
        self._tokens = tokens

    def odd_path(self, path: str) -> str:
        """A path, damaged; always one that begins with a slash."""
        random = self._random
        parts = path.split("/")[1:]
        for _ in range(random.choice((1, 1, 2))):
            at = random.randrange(len(parts) + 1)
            sort = random.randrange(5)
            odd = random.choice(_ODD_SEGMENTS) if chance(random, 2) else quote(text(random), errors="replace")
            if sort == 0:
                parts.insert(at, odd)
            elif sort == 1 and at < len(parts):
                parts[at] = odd
            elif sort == 2 and at < len(parts):
                del parts[at]
            elif sort == 3:
                parts = parts[:at]
            else:
                parts += [odd] * random.choice((1, 1, 300))
        return "/" + "/".join(parts)

    def revision(self) -> str:
        random = self._random
        if self._revisions and not chance(random, 3):
            return random.choice(self._revisions)
        return random.choice(
            ("0", "1", "", "-1", "x", "99999999999999999", "9" * 400, "1.5", "١", " 1", "0x1")
        )

    def token(self) -> str:
        """Where a list goes on."""
        random = self._random
        if self._tokens and not chance(random, 3):
            token = random.choice(self._tokens)
            return token if not chance(random, 3) else token[: random.randrange(len(token) + 1)]
        made = json.dumps({
            "version": random.choice((1, 0, -1, 2**70, "1", None)),
            "namespace": random.choice((*NAMESPACES, 5)), "name": random.choice((*NAMES, None, "\x00")),
        }).encode()  # fmt: skip
        return random.choice(
            (base64.urlsafe_b64encode(made).decode(), "x", "é", "=", "====", "e30", "bnVsbA")
        )

    def list_query(self) -> str:
        random = self._random
        found: list[tuple[str, str]] = []
        for name, value in (
            ("labelSelector", random.choice(LABEL_SELECTORS) if not chance(random, 5) else text(random)),
            ("fieldSelector", random.choice(FIELD_SELECTORS) if not chance(random, 5) else text(random)),
            ("limit", random.choice(("1", "2", "5", "500", "0", "-1", "x", "9" * 30, "1e3", "", "1_0"))),
            ("continue", self.token()),
            ("resourceVersion", self.revision()),
            ("resourceVersionMatch", random.choice(("Exact", "NotOlderThan", "bogus", ""))),
            ("timeoutSeconds", random.choice(("1", "0", "-1", "x", "9" * 18, "9" * 30))),
            ("includeObject", random.choice(("None", "Metadata", "Object", "bogus"))),
        ):
            if chance(random, 5):
                found.append((name, value))
        return _query(found, random)

    def watch_query(self) -> str:
        random = self._random
        found = [("watch", random.choice(("1", "true", "", "True", "yes")))]
        for name, value in (
            ("resourceVersion", self.revision()),
            ("allowWatchBookmarks", random.choice(("true", "false", "x"))),
            ("timeoutSeconds", random.choice(("1", "30", "0", "-5", "9" * 18, "x"))),
            ("labelSelector", random.choice(LABEL_SELECTORS)),
            ("fieldSelector", random.choice(FIELD_SELECTORS)),
        ):
            if chance(random, 3):
                found.append((name, value))
        if chance(random, 4):
            found += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        return _query(found, random)

    def write_query(self) -> str:
        random = self._random
        found: list[tuple[str, str]] = []
        for name, value in (
            ("dryRun", "All"),
            ("fieldValidation", random.choice(("Strict", "Warn", "Ignore", ""))),
            ("fieldManager", random.choice(("me", "you"))),
            ("force", random.choice(("true", "false", "", "x"))),
            (random.choice(_BAD_OPTIONS) if chance(random, 4) else ("pretty", "true")),
            ("gracePeriodSeconds", str(random.choice(NUMBERS))),
            ("propagationPolicy", random.choice(("Orphan", "Foreground", "Background", "x", ""))),
            ("orphanDependents", random.choice(("true", "false", "x"))),
            (quote(text(random), errors="replace"), random.choice(TEXTS)),
        ):
            if chance(random, 10):
                found.append((name, value))
        return _query(found, random)

    def odd_query(self) -> str:
        random = self._random
        return random.choice((
            "&&&", "=", "?", "%", "%zz=%ff", "a=1;b=2", "watch", "watch=1&watch=0",
            "&".join(["a=1"] * 5000), "\xff=\xff",
            "dryRun=All&dryRun=x", "labelSelector=%00", "limit=1&limit=2", "container=%00", "verbose",
            "timeout=1s",
        ))  # fmt: skip

    def headers(self, content_type: str | None, *, odd: bool) -> list[tuple[str, str]]:
        """Headers; `odd`: with some that are not as they should be."""
        random = self._random
        found = {"host": "127.0.0.1", "authorization": f"Bearer {TOKEN}"}
        if content_type is not None:
            found["content-type"] = content_type
        if chance(random, 6):
            found["accept"] = random.choice(_ACCEPTS[:6])
        if chance(random, 3):
            found["user-agent"] = random.choice(("kubectl/v1.36.4", "x" * 200, "", "\xff/1", "a b/c"))
        more: list[tuple[str, str]] = []
        if odd:
            sort = random.randrange(6)
            if sort == 0:
                found["authorization"] = self._authorization()
            elif sort == 1:
                found["host"] = random.choice(_HOSTS)
            elif sort == 2:
                found["origin"] = random.choice(_ORIGINS)
            elif sort == 3:
                found["accept"] = random.choice(_ACCEPTS)
            elif sort == 4:
                found["content-type"] = random.choice(CONTENT_TYPES)
            else:
                more = [random.choice(_IMPERSONATIONS) for _ in range(random.choice((1, 2, 4, 30)))]
            if chance(random, 5):
                found["if-none-match"] = random.choice(('"x"', "*", "W/1"))
            if chance(random, 5):
                found["if-modified-since"] = random.choice(MOMENTS)
        return [*found.items(), *more]

    def _authorization(self) -> str:
        random = self._random
        if not self._bearers or chance(random, 2):
            return random.choice(_AUTHORIZATIONS)
        token = random.choice(self._bearers)
        at = random.randrange(len(token))
        return f"Bearer {token if chance(random, 2) else token[:at] + 'A' + token[at + 1 :]}"


def _query(found: list[tuple[str, str]], random: Random) -> str:
    if chance(random, 2):
        random.shuffle(found)
    return "&".join(f"{name}={quote(value, errors='replace')}" for name, value in found)
