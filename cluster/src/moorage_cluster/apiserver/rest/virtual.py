"""Resources with objects that are computed on request, such as metrics: get and list, nothing else."""

from __future__ import annotations

from datetime import datetime

from moorage.api.manifests import Manifest, labels_of
from moorage.apimachinery import errors
from moorage.http.transport import Request
from moorage_cluster.apiserver.address import Address
from moorage_cluster.apiserver.negotiation import negotiate
from moorage_cluster.apiserver.options import Query, list_options
from moorage_cluster.apiserver.resources import APIResource, Source
from moorage_cluster.apiserver.selector_parsing import NO_FIELDS, matches_fields, matches_labels
from moorage_cluster.apiserver.store import encode
from moorage_cluster.apiserver.tables.table import table


def made_now(
    resource: APIResource, source: Source, address: Address, query: Query, request: Request, now: datetime
) -> bytes:
    """The answer to a get or a list, encoded."""
    if address.subresource:
        raise errors.unknown_path()
    if address.verb not in ("get", "list"):
        raise errors.not_allowed_here()
    within = (address.namespace or None) if resource.namespaced else None
    wanted = negotiate(request.headers.get("accept", ""))
    objects = source.objects(within)

    def shown(rows: list[Manifest]) -> bytes:
        included = query.get("includeObject", "")
        return encode(table(resource.printer, rows, now, {}, included, version=wanted.version))

    if address.verb == "get":
        obj = next((one for one in objects if one["metadata"]["name"] == address.name), None)
        if obj is None:
            raise errors.not_found(resource.group, resource.plural, address.name)
        if wanted.transform:
            return shown([obj])
        return encode(obj)
    options = list_options(query)
    found = [
        one
        for one in objects
        if matches_labels(options.labels, labels_of(one))
        and matches_fields(
            options.fields, NO_FIELDS, one["metadata"].get("namespace", ""), one["metadata"]["name"]
        )
    ]
    if wanted.transform:
        return shown(found)
    return encode(
        {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": {}, "items": found}
    )
