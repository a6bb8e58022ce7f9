"""Conversion of OpenAPI v3 documents to OpenAPI v2, which is also called Swagger."""

from __future__ import annotations

from typing import Any, Final

from moorage.apimachinery.schema.wire import LEAVES
from moorage_cluster.apiserver.openapi.definitions import REFERENCE, REFERENCE_V2

_LEAVES: Final[dict[str, dict[str, Any]]] = {
    LEAVES["Quantity"]: {"type": "string"},
    LEAVES["IntOrString"]: {"type": "string", "format": "int-or-string"},
}
_UNKNOWN_TO_V2: Final = frozenset(("allOf", "oneOf"))


def swagger_of(document: dict[str, Any]) -> dict[str, Any]:
    """The same document in version 2."""
    components = document["components"]
    return {
        "swagger": "2.0",
        "info": document["info"],
        "paths": {path: _path(item) for path, item in document["paths"].items()},
        "definitions": {
            name: _LEAVES[name] | _described(schema) if name in _LEAVES else _schema(schema)
            for name, schema in components["schemas"].items()
        },
        "securityDefinitions": components["securitySchemes"],
        "security": [{"BearerToken": []}],
    }


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": schema["description"]} if "description" in schema else {}


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the keywords that version 2 lacks; the rest is correct, but less specific."""
    found: dict[str, Any] = {}
    if "$ref" in schema:
        return {"$ref": REFERENCE_V2 + schema["$ref"].removeprefix(REFERENCE)}
    inside = schema.get("allOf", [])
    if len(inside) == 1 and "$ref" in inside[0]:
        found.update(_schema(inside[0]))
    for key, value in schema.items():
        if key in _UNKNOWN_TO_V2:
            continue
        if key == "properties":
            found[key] = {name: _schema(item) for name, item in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            found[key] = _schema(value)
        else:
            found[key] = value
    return found


def _path(item: dict[str, Any]) -> dict[str, Any]:
    return {
        key: [_parameter(parameter) for parameter in value] if key == "parameters" else _operation(value)
        for key, value in item.items()
    }


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in parameter.items() if key != "schema"}
    return {**found, **parameter["schema"]}


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    found = dict(operation)
    body = found.pop("requestBody", None)
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    if body:
        schema = next(iter(body["content"].values()))["schema"]
        parameter: dict[str, Any] = {"name": "body", "in": "body", "schema": _schema(schema)}
        if body.get("required"):
            parameter["required"] = True
        parameters.insert(0, parameter)
        found["consumes"] = list(body["content"])
    if parameters:
        found["parameters"] = parameters
    produces: dict[str, None] = {}
    responses = {}
    for code, response in operation["responses"].items():
        responses[code] = {"description": response["description"]}
        for media, content in response.get("content", {}).items():
            produces[media] = None
            responses[code]["schema"] = _schema(content["schema"])
    found["responses"] = responses
    found["produces"] = list(produces)
    return found
