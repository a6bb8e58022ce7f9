"""Selectors of pods and of nodes, affinity among them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests import builders as b
from tests.builders import HOSTNAME, PREFERRED, REQUIRED, ZONE, Manifest, expression
from tests.strategies.choosing import RARELY, Draw, any_of, from_pool, one_of, present, subset
from tests.strategies.subjects import NODE_NAMES

USUAL_LABELS = {"app": "a", "version": "1"}
POD_LABELS = from_pool(
    [
        *[USUAL_LABELS] * 30,
        *present(app=("a", "b", None), tier=(None, "x", "y", ""), version=("1", "2", None)),
    ]
)

SELECTORS: tuple[Manifest | None, ...] = (
    {"matchLabels": {"app": "a"}},
    {"matchLabels": {"app": "b"}},
    {"matchLabels": {"app": "a", "tier": "x"}},
    {"matchLabels": {"tier": ""}},
    {"matchExpressions": [expression("app", "In", "a", "b")]},
    {"matchExpressions": [expression("app", "NotIn", "a")]},
    {"matchExpressions": [expression("tier", "Exists")]},
    {"matchExpressions": [expression("tier", "DoesNotExist")]},
    {"matchLabels": {"app": "a"}, "matchExpressions": [expression("tier", "NotIn", "x", "")]},
    {"matchExpressions": [expression("app", "Exists"), expression("version", "In", "1")]},
    {},
    None,
)
NAMESPACE_SELECTORS: tuple[Manifest | None, ...] = (
    None,
    {},
    {"matchLabels": {"team": "x"}},
    {"matchExpressions": [expression("team", "NotIn", "x")]},
    {"matchExpressions": [expression("team", "DoesNotExist")]},
    {"matchExpressions": [expression("env", "Exists")]},
    {"matchExpressions": [expression("team", "In", "x", "y"), expression("env", "DoesNotExist")]},
)
NAMESPACE_SCOPES = [
    {},
    {},
    # The server has merged these into the selector: whoever schedules has nothing more to do with them.
    {"match_label_keys": ["version"], "mismatch_label_keys": ["tier"]},
    *(
        {"namespaces": names, "namespace_selector": selector}
        for names in ((), ("red",), ("blue", "green"))
        for selector in NAMESPACE_SELECTORS
    ),
]
TOPOLOGY_KEYS = (ZONE, ZONE, HOSTNAME, HOSTNAME, "disk", "rack")

POD_TERM = any_of(
    lambda key, selector, scope: b.pod_term(key, selector, **scope),
    TOPOLOGY_KEYS,
    SELECTORS,
    NAMESPACE_SCOPES,
)
WEIGHTED_POD_TERM = st.builds(
    lambda weight, term: {"weight": weight, "podAffinityTerm": term}, one_of(1, 2, 7, 50, 100), POD_TERM
)
POD_AFFINITY = st.builds(
    lambda required, preferred: {REQUIRED: required, PREFERRED: preferred},
    st.lists(POD_TERM, max_size=2),
    st.lists(WEIGHTED_POD_TERM, max_size=2),
)

NODE_EXPRESSION = from_pool(
    [
        *(
            expression(key, operator, *values)
            for key, known in (
                (ZONE, ("a", "b", "")),
                ("disk", ("ssd", "hdd", "")),
                ("rack", ("1", "2", "3")),
            )
            for operator in ("In", "NotIn")
            for values in subset(known)[1:] * 2
        ),
        *(
            expression(key, operator)
            for key in (ZONE, HOSTNAME, "disk", "gen", "nowhere")
            for operator in ("Exists", "DoesNotExist")
        ),
        *(
            expression(key, operator, number)
            for key in ("gen", "gen", "disk")
            for operator in ("Gt", "Lt")
            for number in ("1", "2", "5", "0010", "9223372036854775807")
        ),
    ]
)
MALFORMED_EXPRESSION = one_of(
    expression("disk", "In"),
    expression("disk", "Exists", "ssd"),
    expression("gen", "Gt", "1", "2"),
    expression("gen", "Lt", "x"),
    expression("gen", "Gt", "1_0"),
    expression("disk", "Near", "ssd"),
    expression("-bad-", "Exists"),
    expression("", "Exists"),
    expression("disk", "In", "no/value"),
)
NODE_NAME = any_of(lambda name: expression("metadata.name", "In", name), NODE_NAMES[:4])
NODE_FIELD = st.one_of(
    NODE_NAME,
    any_of(
        lambda operator, names: expression("metadata.name", operator, *names),
        ("In", "NotIn"),
        subset((*NODE_NAMES[:3], "unknown")),
    ),
    one_of(
        expression("metadata.name", "Exists"),
        expression("metadata.uid", "In", "n0"),
        expression("metadata.uid", "In", ""),
        expression("metadata.uid", "NotIn", "n0"),
    ),
)
NODE_TERM_KIND = one_of(*("labels",) * 6, "fields", "fields", "both", "nothing", "malformed")
NODE_EXPRESSIONS = st.lists(NODE_EXPRESSION, min_size=1, max_size=2)
NODE_NAME_FIELDS = st.lists(NODE_NAME, min_size=1, max_size=1)
NODE_FIELDS = st.lists(NODE_FIELD, min_size=1, max_size=2)


@st.composite
def node_terms(draw: Draw[Any], sane: bool = False) -> Manifest:
    """A node selector term: labels, fields, or nothing; unless it is `sane`, seldom one without sense."""
    term: Manifest = {}
    kind = draw(NODE_TERM_KIND)
    if kind in ("labels", "both"):
        term["matchExpressions"] = draw(NODE_EXPRESSIONS)
    if kind in ("fields", "both"):
        term["matchFields"] = draw(NODE_NAME_FIELDS if sane else NODE_FIELDS)
    if kind == "malformed" and not sane:
        term["matchExpressions"] = [draw(NODE_EXPRESSION), draw(MALFORMED_EXPRESSION)]
    return term


NODE_TERM, SANE_NODE_TERM = node_terms(), node_terms(sane=True)
PREFERENCE_WEIGHT = one_of(1, 2, 10, 33, 100, 100, 0)


def _preferences(term: st.SearchStrategy[Manifest]) -> st.SearchStrategy[list[Manifest]]:
    weighted = st.builds(lambda weight, term: {"weight": weight, "preference": term}, PREFERENCE_WEIGHT, term)
    return st.lists(weighted, max_size=3)


PREFERENCES, SANE_PREFERENCES = _preferences(NODE_TERM), _preferences(SANE_NODE_TERM)
NODE_TERMS, SANE_NODE_TERMS = st.lists(NODE_TERM, max_size=3), st.lists(SANE_NODE_TERM, max_size=3)
NODE_AFFINITY_KIND = one_of(PREFERRED, PREFERRED, PREFERRED, REQUIRED, REQUIRED, "both")


@st.composite
def node_affinities(draw: Draw[Any], sane: bool = False) -> Manifest:
    """Node affinity; required terms often make no sense, preferences seldom."""
    affinity: Manifest = {}
    kind = draw(NODE_AFFINITY_KIND)
    if kind != PREFERRED:
        affinity[REQUIRED] = {"nodeSelectorTerms": draw(SANE_NODE_TERMS if sane else NODE_TERMS)}
    if kind != REQUIRED:
        affinity[PREFERRED] = draw(SANE_PREFERENCES if sane or not draw(RARELY) else PREFERENCES)
    return affinity


NODE_AFFINITY, SANE_NODE_AFFINITY = node_affinities(), node_affinities(sane=True)
NODE_SELECTOR = one_of(*(None,) * 12, {"disk": "ssd"}, {"disk": ""}, {ZONE: "a", "disk": "hdd"})
