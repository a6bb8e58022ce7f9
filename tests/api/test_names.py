from __future__ import annotations

import pytest

from moorage.api import names
from moorage.api.names import Rule

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
PORT_LETTERS = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
LONG_DOMAIN = ".".join(["a" * 63] * 4)

CASES: dict[str, tuple[Rule, str, list[str]]] = {
    "a label": (names.dns_label_problems, "my-name", []),
    "an empty label": (names.dns_label_problems, "", [LABEL]),
    "a label with dots": (names.dns_label_problems, "a.b", ["must not contain dots"]),
    "a long label": (names.dns_label_problems, "a" * 64, ["must be no more than 63 characters"]),
    "a label as long as no domain may be": (
        names.dns_label_problems,
        LONG_DOMAIN,
        ["must be no more than 63 characters", "must not contain dots"],
    ),
    "a label of many bytes": (
        names.dns_label_problems,
        "ä" * 40,
        ["must be no more than 63 characters", LABEL],
    ),
    "a declared label": (names.short_name_problems, "a" * 64, ["must be no more than 63 bytes"]),
    "a subdomain": (names.dns_subdomain_problems, "example.com", []),
    "a subdomain with an underscore": (names.dns_subdomain_problems, "a_b", [SUBDOMAIN]),
    "a long subdomain": (
        names.dns_subdomain_problems,
        LONG_DOMAIN,
        ["must be no more than 253 characters"],
    ),
    "a declared subdomain": (names.long_name_problems, LONG_DOMAIN, ["must be no more than 253 bytes"]),
    "a search domain with underscores": (names.search_domain_problems, "_sip._tcp.a_b", []),
    "a qualified name": (names.qualified_name_problems, "example.com/My_Name", []),
    "a qualified name without prefix": (
        names.qualified_name_problems,
        "/name",
        ["prefix part must be non-empty"],
    ),
    "a qualified name without name": (
        names.qualified_name_problems,
        "example.com/",
        ["name part must be non-empty", NAME_PART],
    ),
    "a qualified name with a long prefix": (
        names.qualified_name_problems,
        f"{LONG_DOMAIN}/name",
        ["prefix part must be no more than 253 bytes"],
    ),
    "a qualified name with a long name": (
        names.qualified_name_problems,
        "k" * 64,
        ["name part must be no more than 63 bytes"],
    ),
    "an annotation's key in capitals": (names.annotation_key_problems, "Example.COM/Key", []),
    "an empty label value": (names.label_value_problems, "", []),
    "a long label value": (names.label_value_problems, "v" * 64, ["must be no more than 63 bytes"]),
    "a config key": (names.config_key_problems, ".dot_File-1", []),
    "a config key with a slash": (names.config_key_problems, "a/b", [CONFIG_KEY]),
    "a config key that goes up": (names.config_key_problems, "..", ["must not be '..'"]),
    "a config key that starts upwards": (names.config_key_problems, "..a", ["must not start with '..'"]),
    "a port's name": (names.port_name_problems, "http-2", []),
    "a port's name of digits": (names.port_name_problems, "80", ["must contain at least one letter (a-z)"]),
    "a port's name in capitals": (names.port_name_problems, "Aa", [PORT_LETTERS]),
    "a port's name with hyphens": (
        names.port_name_problems,
        "a--b-",
        ["must not contain consecutive hyphens", "must not begin or end with a hyphen"],
    ),
    "a variable": (names.variable_name_problems, "my var", []),
    "a variable without name": (
        names.variable_name_problems,
        "",
        ["environment variable name must be non-empty"],
    ),
    "a part of a path": (names.path_segment_problems, "system:node", []),
    "a part of a path with a slash": (
        names.path_segment_problems,
        "a/b%",
        ["may not contain '/'", "may not contain '%'"],
    ),
}


@pytest.mark.parametrize(("rule", "text", "problems"), CASES.values(), ids=CASES)
def test_rules(rule: Rule, text: str, problems: list[str]) -> None:
    assert list(rule(text)) == problems


def test_unencodable_names_are_validated_too() -> None:
    assert names.dns_label_problems("\ud800") == (LABEL,)
