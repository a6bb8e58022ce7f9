"""The server: from a request to its answer.

guard → authentication → path → authorization → verb → answer. Everything but a watch is answered in one step,
without awaiting, so requests do not see each other's partial results.
"""

from __future__ import annotations

import logging
from typing import Final

from moorage.admission.users import User
from moorage.apimachinery import errors
from moorage.apimachinery.errors import ApiError
from moorage.http.guard import Guard
from moorage.http.transport import Request, Response
from moorage_cluster.apiserver.address import Address, parse_address
from moorage_cluster.apiserver.auth.attributes import RequestAttributes
from moorage_cluster.apiserver.auth.authorizers import Authorizer, require
from moorage_cluster.apiserver.auth.impersonation import impersonate
from moorage_cluster.apiserver.auth.tokens import Authenticator
from moorage_cluster.apiserver.documents import Documents
from moorage_cluster.apiserver.options import check_timeout, flag, parse_query
from moorage_cluster.apiserver.resources import Resources
from moorage_cluster.apiserver.rest.dispatch import Dispatcher
from moorage_cluster.apiserver.store import encode

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

log = logging.getLogger(__name__)


class ApiServer:
    """A Kubernetes API server without a socket: see `transport` for how to reach it."""

    def __init__(
        self,
        resources: Resources,
        authenticator: Authenticator,
        authorizer: Authorizer,
        guard: Guard,
        documents: Documents,
        dispatcher: Dispatcher,
    ) -> None:
        self.resources = resources
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._guard = guard
        self._documents = documents
        self._dispatcher = dispatcher

    async def handle(self, request: Request) -> Response:
        """The answer to a request; failures are answers too."""
        return self.answer(request)

    def answer(self, request: Request) -> Response:
        """The answer to a request; failures are answers too."""
        try:
            return self._answer(request)
        except ApiError as error:
            return failure(error)
        except RecursionError:  # Stored objects are within limits: the request is too deep.
            return failure(errors.bad_request("the request is nested too deeply"))
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            return failure(errors.internal(f"{type(error).__name__} in the server; see its log"))

    def _answer(self, request: Request) -> Response:
        self._guard.check(request.headers)
        if request.method not in _METHODS:
            raise ApiError(405, "MethodNotAllowed", f"the server does not know the method {request.method}")
        user = self._authenticator.authenticate(request.headers.get("authorization"))
        query = parse_query(request.query)
        address = parse_address(request.path, request.method, flag(query, "watch"))
        if query and address.verb != "watch":
            check_timeout(query)
        user = self._acting_as(user, address, request)
        require(self._authorizer, RequestAttributes(user, *address))
        if not address.is_resource:
            return self._documents.answer(address, request)
        if request.method == "HEAD":
            raise errors.not_allowed_here()
        return self._dispatcher.answer(address, query, request, user)

    def _acting_as(self, user: User, address: Address, request: Request) -> User:
        for name, _ in request.repeated:
            if name.startswith("impersonate-"):
                wanted = RequestAttributes(user, *address)
                return impersonate(wanted, request.repeated, self._authorizer.authorize)
        return user


def failure(error: ApiError) -> Response:
    """An error as an answer."""
    return Response(error.code, encode(error.status), headers=dict(error.headers))
