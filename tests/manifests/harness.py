"""A scheduler that has its printed role, and an API server with RBAC, in one process under virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random

import msgspec
import yaml

from moorage.admission.users import User
from moorage.client.client import Client
from moorage.client.kinds import RESOURCE_CLAIM, Kind
from moorage.config.load import parse_config
from moorage.http.transport import Request, Response
from moorage.plugins import default_registry
from moorage.scheduler.scheduler import Scheduler
from moorage.services.access_reviews import SUBJECT_ACCESS_REVIEW
from tests.manifests.printing import Manifest
from tests.scheduler.running import SchedulerHarness

NAMESPACE = "kube-system"
SCHEDULER, METRICS_READER = "scheduler-token", "metrics-token"
RBAC = "rbac.authorization.k8s.io"
_KINDS = {
    "ClusterRole": Kind(RBAC, "v1", "ClusterRole", "clusterroles", False),
    "ClusterRoleBinding": Kind(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False),
    "Role": Kind(RBAC, "v1", "Role", "roles"),
    "RoleBinding": Kind(RBAC, "v1", "RoleBinding", "rolebindings"),
}
"""Of what is printed, what permissions depend on."""


def _account(name: str) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")
    return User(f"system:serviceaccount:{NAMESPACE}:{name}", groups)


USERS = {SCHEDULER: _account("moorage"), METRICS_READER: _account("moorage-metrics")}

Interception = Callable[[Request], Awaitable[Response | None]]


class RoleHarness(SchedulerHarness):
    """A world in which the scheduler may do what its roles say."""

    def start_server(self) -> None:
        self._settings = replace(self._settings, authorization="RBAC", static_users=USERS)
        super().start_server()
        self.transport = RoutedTransport(self)

    async def allow(self, objects: list[Manifest]) -> None:
        """Create the roles and bindings among some objects."""
        for obj in objects:
            if kind := _KINDS.get(obj["kind"]):
                await self.client.create(kind, obj["metadata"].get("namespace", ""), obj)

    @property
    def account(self) -> Client:
        """The scheduler's own client."""
        return Client(self.transport, SCHEDULER)

    @staticmethod
    def configuration(objects: list[Manifest]) -> Manifest:
        """The configuration that was printed."""
        (found,) = (each for each in objects if each["kind"] == "ConfigMap")
        document: Manifest = yaml.safe_load(found["data"]["config.yaml"])
        return document

    def schedules(self, objects: list[Manifest]) -> Scheduler:
        """A scheduler with the printed configuration, which has begun to work."""
        config = parse_config(self.configuration(objects), "printed")
        scheduler = Scheduler(self.account, config, default_registry(), self.clock, Random(1), "host")
        self.runs(scheduler.run())
        return scheduler


class RoutedTransport:
    """The scheduler's way to the API server, on which a test can meddle with requests."""

    def __init__(self, harness: RoleHarness) -> None:
        self._harness = harness
        self._claims = _BindingCheck(harness)
        self.intercept: Interception = _leave_alone

    async def handle(self, request: Request) -> Response:
        answer = await self.intercept(request)
        return answer if answer is not None else await self._claims.handle(request)


async def _leave_alone(request: Request) -> Response | None:
    return None


class _BindingCheck:
    """Does what v1.36 does and the embedded server does not: who gives devices must be allowed to bind."""

    def __init__(self, harness: RoleHarness) -> None:
        self._harness = harness

    async def handle(self, request: Request) -> Response:
        is_status = f"/{RESOURCE_CLAIM.plural}/" in request.path and request.path.endswith("/status")
        if is_status and not await self._may_bind(request):
            return refusal(403, "Forbidden")
        return await self._harness.line.handle(request)

    async def _may_bind(self, request: Request) -> bool:
        status = msgspec.json.decode(request.body)["status"]
        if not {"allocation", "reservedFor"} & status.keys():
            return True
        user = USERS[SCHEDULER]
        asked = {"group": RESOURCE_CLAIM.group, "resource": RESOURCE_CLAIM.plural, "subresource": "binding"}
        spec = {
            "user": user.name,
            "groups": list(user.groups),
            "resourceAttributes": {**asked, "verb": request.method.lower()},
        }
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = await self._harness.client.create(SUBJECT_ACCESS_REVIEW, "", review)
        return bool(answer["status"]["allowed"])


def refusal(code: int, reason: str) -> Response:
    """An answer that says no."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return Response(code, msgspec.json.encode(status))


def in_role_harness(scenario: Callable[[RoleHarness], Awaitable[bool]]) -> bool:
    """What comes of a scenario."""

    async def run() -> bool:
        harness = RoleHarness()
        try:
            return await scenario(harness)
        finally:
            await harness.ends()

    return asyncio.run(run())
