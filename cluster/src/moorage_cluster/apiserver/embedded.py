"""A complete API server: what `moorage apiserver` runs, and what tests and simulations call."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar

from moorage.admission.attributes import Attributes, Operation, Reader
from moorage.admission.chain import Chain
from moorage.admission.plugin import Call, Plugin
from moorage.admission.users import User
from moorage.api.manifests import Manifest, Now
from moorage.clock import Clock, LoopClock
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.http.certificates import ServerCertificate, load_or_make
from moorage.http.guard import Guard
from moorage.http.private_files import load_or_make_private
from moorage.http.transport import Request
from moorage_cluster.apiserver.admission.default_plugins import default_plugins
from moorage_cluster.apiserver.advertising import Advertising
from moorage_cluster.apiserver.auth import reviews
from moorage_cluster.apiserver.auth.authorizers import AlwaysAllow, Authorizer
from moorage_cluster.apiserver.auth.bootstrap import bootstrap_objects
from moorage_cluster.apiserver.auth.escalation import GUARDED_RESOURCES, check_escalation
from moorage_cluster.apiserver.auth.jwt import SigningKey
from moorage_cluster.apiserver.auth.modes import Authorization
from moorage_cluster.apiserver.auth.openid import IssuerDocuments
from moorage_cluster.apiserver.auth.rbac import Rbac
from moorage_cluster.apiserver.auth.tokens import Authenticator
from moorage_cluster.apiserver.custom_resources import DEFINITIONS, TERMINATING, CustomResources
from moorage_cluster.apiserver.deferred_jobs import DeferredJobs
from moorage_cluster.apiserver.discovery import Discovery
from moorage_cluster.apiserver.documents import Documents
from moorage_cluster.apiserver.event_expiry import EVENT_TTL_SECONDS, EventExpiry
from moorage_cluster.apiserver.garbage import GarbageCollector
from moorage_cluster.apiserver.journal import JournalError, SqliteJournal
from moorage_cluster.apiserver.kinds.catalog import builtin_resources
from moorage_cluster.apiserver.namespace_defaults import NamespaceDefaults
from moorage_cluster.apiserver.namespace_deletion import NamespaceDeleter
from moorage_cluster.apiserver.openapi.endpoints import OpenApiDocuments
from moorage_cluster.apiserver.quota_status import QuotaStatusUpdater
from moorage_cluster.apiserver.resources import APIResource, Resources
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.deletes import Deleter
from moorage_cluster.apiserver.rest.dispatch import Answer, Dispatcher
from moorage_cluster.apiserver.rest.subresources import Logs, Subresources, no_logs
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.server import ApiServer
from moorage_cluster.apiserver.server_version import ServerVersion
from moorage_cluster.apiserver.store import Store

_Loaded = TypeVar("_Loaded")


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of a server."""

    data_dir: Path | None = None
    """The data directory; None: objects are kept in memory only."""
    authorization: Authorization = "AlwaysAllow"
    names: tuple[str, ...] = ()
    """Names and addresses of this server in addition to those of loopback."""
    history: int = 20_000
    """Number of past changes of each resource that a watch can start from."""
    static_users: Mapping[str, User] | None = None
    """Additional users by their tokens."""
    event_ttl_seconds: float = EVENT_TTL_SECONDS
    """How long events are kept after they were last written; 0: for ever."""
    version: KubernetesVersion = DEFAULT_VERSION
    """The version to emulate."""
    is_synced: bool = False
    """Whether each write is on disk before it is acknowledged, and so survives a power failure."""


class EmbeddedServer:
    """A server, its secrets, and its transport (`api`)."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        logs: Logs = no_logs,
    ) -> None:
        settings = settings or Settings()
        self._journal = (
            SqliteJournal(settings.data_dir, is_synced=settings.is_synced) if settings.data_dir else None
        )
        try:
            # Random is for names and uids; secrets come from elsewhere.
            self._build(settings, clock or LoopClock(), random or Random(), logs)
        except BaseException:
            self.close()
            raise

    def _build(self, settings: Settings, clock: Clock, random: Random, logs: Logs) -> None:
        """Make the parts, and load what the journal has."""
        now = clock.utc_now
        self.token = _secret(settings.data_dir, "token")
        self.certificate: ServerCertificate = load_or_make(settings.data_dir, settings.names)
        # Without a data directory, revisions start above those of an earlier server: clients that
        # watched that one have to list again.
        revision = self._journal.revision if self._journal else int(now().timestamp() * 1000)
        version = ServerVersion.of(settings.version)
        self.store = Store(self._journal, revision, settings.history, types=version.types)
        self.resources = Resources(builtin_resources(self.store.all, now, version), version.types)
        self._work = DeferredJobs(clock)
        authorizer: Authorizer = (
            AlwaysAllow() if settings.authorization == "AlwaysAllow" else Rbac(self.store)
        )
        chain = Chain((TERMINATING, *default_plugins(random, now, version), _escalation(authorizer)))
        writer = Writer(self.store, chain, now, random)
        deleter = Deleter(writer)
        self.advertising = Advertising(self.resources, writer)
        signing_key = _signing_key(settings.data_dir)
        self.authenticator = authenticator = Authenticator(
            self.token,
            signing_key,
            self.store,
            now=lambda: now().timestamp(),
            static_users=settings.static_users,
        )
        customs = CustomResources(self.resources, writer, deleter, self._work)
        namespace_defaults = NamespaceDefaults(self.resources, writer, self._work, self.certificate.ca_pem)
        namespace_deleter = NamespaceDeleter(self.resources, writer, deleter, self._work, clock)
        collector = GarbageCollector(self.resources, writer, deleter, self._work)
        event_expiry = EventExpiry(self.store, self._work, clock, settings.event_ttl_seconds)
        self._load(customs)
        quotas = QuotaStatusUpdater(self.resources, writer, self._work)
        self.store.listeners += [
            customs.on_change,
            namespace_defaults.on_change,
            namespace_deleter.on_change,
            collector.on_change,
            quotas.on_change,
            event_expiry.on_change,
        ]
        self._bootstrap(writer, version)
        namespace_defaults.load()
        namespace_deleter.load()
        collector.load()
        event_expiry.load()
        self.subresources = Subresources(self.resources, writer, authenticator, logs)
        dispatcher = Dispatcher(
            self.resources,
            writer,
            self.subresources,
            _answers(authorizer, authenticator, now),
            authorizer,
            clock,
            random,
        )
        self.api = ApiServer(
            self.resources,
            authenticator,
            authorizer,
            Guard(settings.names),
            Documents(
                Discovery(self.resources),
                OpenApiDocuments(self.resources, customs.openapi),
                IssuerDocuments(signing_key),
                settings.version,
            ),
            dispatcher,
        )

    def _load(self, customs: CustomResources) -> None:
        """Load the objects in the journal; definitions first, since custom objects depend on them."""
        if self._journal is None:
            return
        by_storage: dict[str, list[tuple[int, Manifest]]] = {}
        for collection, version, obj in self._journal.objects():
            by_storage.setdefault(collection, []).append((version, obj))
        self._load_collections({DEFINITIONS} & by_storage.keys(), by_storage)
        customs.load()
        self._load_collections(by_storage.keys() - {DEFINITIONS}, by_storage)
        customs.reindex()

    def _load_collections(
        self, names: Iterable[str], by_storage: Mapping[str, list[tuple[int, Manifest]]]
    ) -> None:
        resources = {resource.storage: resource for resource in self.resources}
        for name in names:
            resource = resources.get(name)
            for version, obj in by_storage[name]:
                if resource is None or self._is_of_this_version(resource, obj):
                    self.store.load(name, obj, version, resource.strategy.selectable(obj) if resource else {})

    def _is_of_this_version(self, resource: APIResource, obj: Manifest) -> bool:
        """Whether the emulated version has the kind of a stored object; others are left in the journal."""
        group, _, version = obj["apiVersion"].rpartition("/")
        return resource.is_custom or bool(self.resources.types.of_kind(group, version, obj["kind"]))

    def _bootstrap(self, writer: Writer, version: ServerVersion) -> None:
        """Create the objects that every cluster has, where they are missing."""
        for obj in bootstrap_objects(self.certificate.ca_pem, version):
            resource = self.resources.of_kind(obj["apiVersion"], obj["kind"])
            assert resource is not None, obj["kind"]
            meta = obj["metadata"]
            namespace = meta.get("namespace", "")
            if self.store.find(resource.storage, namespace, meta["name"]) is None:
                writer.create(resource, namespace, obj, Context())

    def is_of_control_plane(self, request: Request) -> bool:
        """Whether a request is from a component of the cluster that has been here before."""
        return self.authenticator.is_of_control_plane(request.headers.get("authorization"))

    def start(self) -> None:
        """Start the jobs that were queued while the server was constructed."""
        self._work.start()

    def close(self) -> None:
        """Release the data directory."""
        if self._journal is not None:
            self._journal.close()


def _escalation(authorizer: Authorizer) -> Plugin:
    """Rejects roles and bindings that grant more permissions than their writer has."""

    def admit(attributes: Attributes, reader: Reader) -> None:
        check_escalation(
            authorizer,
            attributes.user,
            attributes.resource.plural,
            attributes.namespace,
            attributes.obj,
            attributes.old,
            request_name="" if attributes.operation == "CREATE" else attributes.name,
        )

    storages = [f"rbac.authorization.k8s.io/{plural}" for plural in sorted(GUARDED_RESOURCES)]
    operations: tuple[Operation, ...] = ("CREATE", "UPDATE")
    calls = [Call(operation, storage) for operation in operations for storage in storages]
    return Plugin("RBACEscalation", admit, tuple(calls))


def _answers(authorizer: Authorizer, authenticator: Authenticator, now: Now) -> dict[str, Answer]:
    """Handlers of kinds that are created but not stored, such as reviews, by storage name."""

    def answered(review: reviews.Review) -> Answer:
        def answer(body: Manifest, namespace: str, context: Context) -> Manifest:
            known = reviews.ReviewContext(
                context.user, authorizer, authenticator, namespace, lambda: now().timestamp()
            )
            return review(body, known)

        return answer

    return {f"{group}/{plural}": answered(review) for (group, plural), review in reviews.REVIEWS.items()}


def _secret(directory: Path | None, name: str) -> str:
    """A random word; with a data directory, the same one after a restart."""
    return _load_or_create(
        directory, name, lambda: secrets.token_urlsafe(32).encode(), lambda kept: kept.decode().strip()
    )


def _signing_key(directory: Path | None) -> SigningKey:
    """The key that signs service accounts' tokens; with a data directory, the same one after a restart."""
    return _load_or_create(
        directory, "service-account.key", lambda: SigningKey.generate().pem(), SigningKey.from_pem
    )


def _load_or_create(
    directory: Path | None, name: str, make: Callable[[], bytes], read: Callable[[bytes], _Loaded]
) -> _Loaded:
    """The content of a private file of the data directory, which is created if it is missing."""
    if directory is None:
        return read(make())
    path = directory / name
    try:
        return read(load_or_make_private(path, make))
    except (OSError, ValueError) as error:
        raise JournalError(f"cannot use {path}: {error}") from None
