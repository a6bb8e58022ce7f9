"""NetworkPolicies: the traffic that pods accept and send. They are stored; no traffic is filtered."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from typing import Final

from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import FieldError, forbidden, invalid, not_supported, required
from moorage.apimachinery.validation.checks import check_optional_word
from moorage.apimachinery.validation.network_addresses import check_network, check_port, check_port_or_name
from moorage.apimachinery.validation.selectors import check_label_selector
from moorage_cluster.apiserver.strategy import Strategy

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_POLICY_TYPES: Final = ("Ingress", "Egress")
_DIRECTIONS: Final = (("ingress", "from"), ("egress", "to"))
"""The field with the rules of each direction, and the field of a rule with its peers."""


class NetworkPolicyStrategy(Strategy):
    """A NetworkPolicy."""

    has_generation = True

    def default(self, obj: Manifest) -> None:
        """Ports are TCP; a policy applies to ingress, and to egress if it has egress rules."""
        spec = child(obj, "spec")
        child(spec, "podSelector")
        for direction, _ in _DIRECTIONS:
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the ports and peers."""
        spec = obj["spec"]
        errors = check_label_selector(spec["podSelector"], "spec.podSelector")
        for direction, peers in _DIRECTIONS:
            for index, rule in enumerate(spec.get(direction) or ()):
                errors += _check_rule(rule, peers, f"spec.{direction}[{index}]")
        return errors + _check_types(spec["policyTypes"], "spec.policyTypes")


def _check_rule(rule: Manifest, peers: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, port in enumerate(rule.get("ports") or ()):
        errors += _check_port(port, f"{path}.ports[{index}]")
    for index, peer in enumerate(rule.get(peers) or ()):
        errors += _check_peer(peer, f"{path}.{peers}[{index}]")
    return errors


def _check_port(port: Manifest, path: str) -> list[FieldError]:
    errors = check_optional_word(port["protocol"], _PROTOCOLS, f"{path}.protocol")
    number, last = port.get("port"), port.get("endPort")
    if number is None:
        why = "may not be specified when `port` is not specified"
        return errors if last is None else [*errors, invalid(f"{path}.endPort", last, why)]
    if isinstance(number, str):
        if last is not None:
            why = "may not be specified when `port` is non-numeric"
            errors.append(invalid(f"{path}.endPort", last, why))
        return errors + check_port_or_name(number, f"{path}.port")
    errors += check_port(number, f"{path}.port")
    if last is not None:
        if last < number:
            errors.append(invalid(f"{path}.endPort", number, "must be greater than or equal to `port`"))
        errors += check_port(last, f"{path}.endPort")
    return errors


def _check_peer(peer: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in ("podSelector", "namespaceSelector"):
        errors += check_label_selector(peer.get(key), f"{path}.{key}")
    if "ipBlock" in peer:
        errors += _check_block(peer["ipBlock"], f"{path}.ipBlock")
        if len(peer) > 1:
            errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    if not peer:
        errors.append(required(path, "must specify a peer"))
    return errors


def _check_block(block: Manifest, path: str) -> list[FieldError]:
    network = block.get("cidr", "")
    if not network:
        return [required(f"{path}.cidr")]
    errors = check_network(network, f"{path}.cidr")
    if errors:
        return errors
    for index, excepted in enumerate(block.get("except") or ()):
        here = f"{path}.except[{index}]"
        problems = check_network(excepted, here)
        if not problems and not _is_strictly_within(excepted, network):
            problems.append(invalid(here, excepted, "must be a strict subset of `cidr`"))
        errors += problems
    return errors


def _is_strictly_within(inner: str, outer: str) -> bool:
    part, whole = ip_network(inner), ip_network(outer)
    return (
        part.version == whole.version and part.network_address in whole and part.prefixlen > whole.prefixlen
    )


def _check_types(types: Sequence[str], path: str) -> list[FieldError]:
    if len(types) > len(_POLICY_TYPES):
        return [invalid(path, types, "may not specify more than two policyTypes")]
    return [
        not_supported(f"{path}[{index}]", type, _POLICY_TYPES)
        for index, type in enumerate(types)
        if type not in _POLICY_TYPES
    ]
