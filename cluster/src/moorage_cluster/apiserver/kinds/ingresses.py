"""Ingresses and their classes: HTTP routes to services from outside. They are stored only."""

from __future__ import annotations

import re
from typing import Final

from moorage.api.manifests import Manifest, annotations_of, child
from moorage.api.names import dns_subdomain_problems, pattern_rule, wildcard_subdomain_problems
from moorage.api.text import quoted
from moorage.apimachinery.fields import (
    FieldError,
    complaints,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.apimachinery.validation.checks import check_unchanged
from moorage.apimachinery.validation.names import check_label, check_subdomain
from moorage.apimachinery.validation.network_addresses import (
    check_address,
    check_port,
    check_port_or_name,
    is_address,
)
from moorage_cluster.apiserver.kinds.base import StatusStrategy
from moorage_cluster.apiserver.kinds.object_references import check_typed_reference
from moorage_cluster.apiserver.strategy import Strategy

CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
DEFAULT_CLASS_ANNOTATION: Final = "ingressclass.kubernetes.io/is-default-class"
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_SCOPES: Final = ("Cluster", "Namespace")
_REFUSED_IN_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")
_REFUSED_PATH_ENDS: Final = ("/..", "/.")
_MAX_CONTROLLER_LENGTH: Final = 250
_NOT_A_NAME: Final = "must be a DNS name, not an IP address"
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_HTTP_PATH_RE: Final = re.compile(_HTTP_PATH)


class IngressStrategy(StatusStrategy):
    """An Ingress."""

    has_generation = True
    empty_status = {"loadBalancer": {}}

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Rules have valid backends, and the class is named by either the field or the annotation."""
        spec = obj["spec"]
        errors = _check_spec(spec)
        annotated, named = annotations_of(obj).get(CLASS_ANNOTATION), spec.get("ingressClassName")
        if annotated is not None and named is not None and annotated != named:
            why = "must match `ingressClassName` when both are specified"
            errors.append(invalid(f"annotations.{CLASS_ANNOTATION}", annotated, why))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """All fields may change."""
        return _check_spec(obj["spec"])

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Validate the addresses and host names of the load balancer."""
        errors: list[FieldError] = []
        for index, point in enumerate((obj["status"]["loadBalancer"]).get("ingress") or ()):
            path = f"status.loadBalancer.ingress[{index}]"
            if point.get("ip"):
                errors += check_address(point["ip"], f"{path}.ip")
            if point.get("hostname"):
                errors += check_subdomain(point["hostname"], f"{path}.hostname")
                errors += _check_no_address(point["hostname"], f"{path}.hostname")
        return errors

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn about the deprecated class annotation."""
        if (
            old is not None
            or CLASS_ANNOTATION not in annotations_of(obj)
            or "ingressClassName" in obj["spec"]
        ):
            return []
        name = quoted(CLASS_ANNOTATION)
        return [f"annotation {name} is deprecated, please use 'spec.ingressClassName' instead"]


def _check_spec(spec: Manifest) -> list[FieldError]:
    errors: list[FieldError] = []
    if not spec.get("rules") and "defaultBackend" not in spec:
        errors.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
    if "defaultBackend" in spec:
        errors += _check_backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        errors += _check_rule(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        for place, host in enumerate(tls.get("hosts") or ()):
            errors += _check_host(host, f"spec.tls[{index}].hosts[{place}]")
        if tls.get("secretName"):
            errors += check_subdomain(tls["secretName"], f"spec.tls[{index}].secretName")
    if "ingressClassName" in spec:
        errors += check_subdomain(spec["ingressClassName"], "spec.ingressClassName")
    return errors


def _check_rule(rule: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if rule.get("host"):
        errors += _check_no_address(rule["host"], f"{path}.host")
        errors += _check_host(rule["host"], f"{path}.host")
    if "http" in rule:
        paths = rule["http"].get("paths") or ()
        if not paths:
            errors.append(required(f"{path}.http.paths"))
        for index, each in enumerate(paths):
            errors += _check_path(each, f"{path}.http.paths[{index}]")
    return errors


def _check_host(host: str, path: str) -> list[FieldError]:
    rule = wildcard_subdomain_problems if "*" in host else dns_subdomain_problems
    return complaints(path, host, rule(host))


def _check_no_address(host: str, path: str) -> list[FieldError]:
    return [invalid(path, host, _NOT_A_NAME)] if is_address(host) else []


def _check_path(each: Manifest, path: str) -> list[FieldError]:
    if "pathType" not in each:
        return [required(f"{path}.pathType", "pathType must be specified")]
    kind, place = each["pathType"], each.get("path", "")
    errors: list[FieldError] = []
    if kind not in _PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    elif not place.startswith("/") and (place or kind != "ImplementationSpecific"):
        errors.append(invalid(f"{path}.path", place, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        refused = [f"must not contain '{part}'" for part in _REFUSED_IN_PATHS if part in place]
        refused += [f"cannot end with '{end}'" for end in _REFUSED_PATH_ENDS if place.endswith(end)]
        errors += complaints(f"{path}.path", place, refused)
    return errors + _check_backend(each.get("backend") or {}, f"{path}.backend")


def _check_backend(backend: Manifest, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return check_typed_reference(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name, port = service.get("name", ""), service.get("port") or {}
    errors = check_label(name, f"{path}.service.name") if name else [required(f"{path}.service.name")]
    if port.get("name") and port.get("number"):
        errors.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        errors += check_port_or_name(port["name"], f"{path}.service.port.name")
    elif port.get("number"):
        errors += check_port(port["number"], f"{path}.service.port.number")
    else:
        errors.append(required(path, "port name or number is required"))
    return errors


class IngressClassStrategy(Strategy):
    """An IngressClass."""

    has_generation = True

    def default(self, obj: Manifest) -> None:
        """The scope of parameters is the cluster."""
        spec = child(obj, "spec")
        if "parameters" in spec:
            spec["parameters"].setdefault("scope", "Cluster")

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The controller is required, and its parameters are a valid reference."""
        spec = obj["spec"]
        controller, path = spec.get("controller", ""), "spec.controller"
        errors = []
        if len(controller.encode()) > _MAX_CONTROLLER_LENGTH:
            errors.append(too_long(path, _MAX_CONTROLLER_LENGTH))
        errors += _check_domain_path(controller, path)
        if "parameters" in spec:
            errors += _check_parameters(spec["parameters"], "spec.parameters")
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The controller is immutable."""
        new, before = obj["spec"].get("controller", ""), (old.get("spec") or {}).get("controller", "")
        return check_unchanged(new, before, "spec.controller") + self.validate(obj)


def _check_domain_path(text: str, path: str) -> list[FieldError]:
    """A domain and a path below it, such as `example.com/ingress`."""
    if not text:
        return [required(path)]
    domain, _, rest = text.partition("/")
    if not domain or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = check_subdomain(domain, path)
    if not _HTTP_PATH_RE.fullmatch(rest):
        errors.append(invalid(path, rest, pattern_rule("Invalid path", _HTTP_PATH)))
    return errors


def _check_parameters(parameters: Manifest, path: str) -> list[FieldError]:
    errors = check_typed_reference(parameters, path)
    scope, namespace = parameters["scope"], parameters.get("namespace")
    if scope not in _SCOPES:
        errors.append(not_supported(f"{path}.scope", scope, _SCOPES))
    elif scope == "Cluster" and namespace is not None:
        errors.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif scope == "Namespace" and namespace is None:
        errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        errors += check_label(parameters["namespace"], f"{path}.namespace")
    return errors
