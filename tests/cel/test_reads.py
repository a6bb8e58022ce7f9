"""What expressions read of a device: devices that differ in nothing else are the same to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.decode import convert
from moorage.api.devices import Device
from moorage.cel.budget import WORK_LIMIT, WorkBudget, WorkLimitError
from moorage.cel.program import CompileError, DeviceFacts, compile_selector
from moorage.cel.reads import MAX_LITERALS, MAX_NAMES
from moorage.cel.values import CelError
from moorage.plugins.dynamic_resources.structured.device_kinds import published
from tests import strategies as s
from tests.plugins.dynamic_resources.device_objects import device
from tests.strategies import examples

DRIVER, OTHER = "dra.example.com", "other.example.com"
A, B = f'device.attributes["{DRIVER}"]', f'device.attributes["{OTHER}"]'
MODEL = f"{DRIVER}/model"

UUIDS = [f"GPU-{number}" for number in range(MAX_LITERALS)]

READS: dict[str, dict[str, set[str] | None] | None] = {
    "true": {},
    'device.driver == "x" && device.allowMultipleAllocations': {},
    f'device.capacity["{DRIVER}"].memory.isInteger() && size(device.capacity) > 0': {},
    f'{A}["model"] == {B}.model': {MODEL: None, f"{OTHER}/model": None},
    f'device.attributes[?"{DRIVER}"].?model.orValue("") == "m"': {MODEL: None},
    f'device.attributes[?"{DRIVER}"][?"model"].hasValue()': {MODEL: None},
    f'["m", "n"].exists(x, {A}.model == x)': {MODEL: None},
    f'cel.bind(x, {A}.model, x == "m" || x == "n")': {MODEL: None},
    f'[{{"a": {A}.model}}, {{"a": {A}.x}}] == []': {MODEL: None, f"{DRIVER}/x": None},
    # What tells values apart only by some strings
    f'{A}.model == "m"': {MODEL: {"m"}},
    f'"m" != {A}["model"]': {MODEL: {"m"}},
    f'{A}.model in ["m", "n"] || {A}.model == "o"': {MODEL: {"m", "n", "o"}},
    f"has({A}.model)": {MODEL: set()},
    f'"model" in {A}': {MODEL: set()},
    f'({A}.model == "m" ? {A}.x : {A}.y) == 1': {MODEL: {"m"}, f"{DRIVER}/x": None, f"{DRIVER}/y": None},
    f"{A}.model in {UUIDS}": {MODEL: {*UUIDS}},
    # What looks like that, and reads values in other ways too
    f"has({A}.model) && {A}.model.size() > 2": {MODEL: None},
    f'{A}.model == "m" || {A}.model.startsWith("n")': {MODEL: None},
    f"{A}.model == 1": {MODEL: None},
    f'{A}.model in ["m", device.driver]': {MODEL: None},
    f'{A}[?"model"] == optional.of("m")': {MODEL: None},
    f'{A}.model.x == "m"': {MODEL: None},
    f"{A}.model in {[*UUIDS, 'one more']}": {MODEL: None},
    # What may read more than it names
    "device.attributes.size() > 1": None,
    f"size({A}) > 1": None,
    f"{A}.exists(name, name == 'x')": None,
    f"{A} == {B}": None,
    f'"{DRIVER}" in device.attributes': None,
    "has(device.attributes.x)": None,
    "device.attributes[device.driver].model == 'm'": None,
    f"{A}[{A}.model] == 'm'": None,
    f"cel.bind(x, {A}, x.model == 'm')": None,
    f"(true ? {A} : {B}).model == 'm'": None,
    f'device.attributes[?"{DRIVER}"].hasValue()': None,
    'device.attributes["a/b"].c == 1': None,
    " || ".join(f"{A}.a{number} == 1" for number in range(MAX_NAMES + 1)): None,
}


@pytest.mark.parametrize(("expression", "names"), READS.items(), ids=READS)
def test_an_expression_reads_what_it_names(expression: str, names: dict[str, set[str] | None] | None) -> None:
    reads = compile_selector(expression).reads
    assert (None if reads is None else dict(reads)) == names


# Any expression and any device

NAME = s.one_of("model", "x", "y")
LITERAL = s.one_of('"m"', '"1"', "1", "1.0", "true", 'semver("1.0.0")', f'"{"m" * 70}"', '["m", 1]')
VALUE = s.one_of("m", "1", 1, 0, True, False, "v:1.0.0", "v:1.0.1", "m" * 70)
UNTOLD = frozenset(("m", "1", "n", "k"))
"""Strings of one length."""
PLAIN = s.one_of("m", "1", 1, True, "m" * 200)
"""Values that fail no expression which does not read them."""

ATTRIBUTES = [f"{domain}{name}" for domain in ("", f"{DRIVER}/", f"{OTHER}/") for name in ("model", "x", "y")]
DOMAIN = s.one_of(A, A, B, "device.attributes[device.driver]", f"device.attributes.{'nowhere'}")


@st.composite
def values(draw: s.Draw[Any]) -> str:
    """Something that an expression can look at."""
    domain, name = draw(DOMAIN), draw(NAME)
    form = draw(
        s.one_of(
            *["{0}.{1}"] * 3,
            '{0}["{1}"]',
            '{0}[?"{1}"].orValue("none")',
            "{0}.?{1}.orValue({0}.?x.orValue(1))",
            "string({0}.{1})",
            "cel.bind(v, {0}.{1}, v)",
            "cel.bind(v, {0}, v.{1})",
            "{0}.{1}.{1}",
            "[{0}.{1}]",
            "device.driver",
            f'device.capacity["{DRIVER}"].memory',
        )
    )
    return str(form.format(domain, name))


@st.composite
def leaves(draw: s.Draw[Any]) -> str:
    """A condition on a device."""
    form = draw(
        s.one_of(
            *["{0} == {2}"] * 3,
            "{0} != {1}",
            "{0} < dyn({2})",
            "{0} in [{2}, {1}]",
            'dyn({0}).matches("m+")',
            "dyn({0}).size() > 1",
            "dyn({0})",
            "has({3}.{4})",
            '"{4}" in {3}',
            "{3}.?{4}.hasValue()",
            "size({3}) > 1",
            "{3}.all(k, k != '{4}')",
            "{3} == {3}",
            "device.allowMultipleAllocations",
        )
    )
    return str(form.format(draw(values()), draw(values()), draw(LITERAL), draw(DOMAIN), draw(NAME)))


CONDITIONS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]} && {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} || {two[1]})"),
        st.tuples(inner, inner, inner).map(lambda three: f"({three[0]} ? {three[1]} : {three[2]})"),
        inner.map(lambda one: f"!({one})"),
        inner.map(lambda one: f"[1, 2, 3].exists(i, i == 2 && {one})"),
    ),
    max_leaves=4,
)


@st.composite
def pairs(draw: s.Draw[Any]) -> tuple[str, Device, Device]:
    """An expression, and two devices that differ only in what it says it cannot tell apart."""
    expression = draw(CONDITIONS)
    try:
        reads = compile_selector(expression).reads
    except CompileError:
        return "true", Device(), Device()
    one = draw(st.dictionaries(st.sampled_from(ATTRIBUTES), VALUE, max_size=6))
    other = dict(one)
    if reads is not None:
        read = dict(published(reads, DRIVER))
        for name, literals in read.items():
            if literals is not None and other.get(name) in UNTOLD - literals:
                other[name] = draw(st.sampled_from(sorted(UNTOLD - literals)))
        unread = sorted({*ATTRIBUTES, "z", f"{OTHER}/z"} - {*read})
        for name in unread:
            if not str(other.get(name, "")).startswith("v:"):
                other.pop(name, None)
        other |= draw(st.dictionaries(st.sampled_from(unread), PLAIN, max_size=4))
    same = {"capacity": {"memory": "1Gi"}, "allowMultipleAllocations": draw(st.booleans())}
    first, second = (convert(device("d", each, **same), Device) for each in (one, other))
    return expression, first, second


def outcome(expression: str, judged: Device) -> tuple[bool | str, int]:
    """What an expression says of a device, or how it fails, and the work of that."""
    work = WorkBudget()
    try:
        return compile_selector(expression).matches(DeviceFacts(DRIVER, judged), work), work.left
    except CelError as error:
        return str(error), work.left
    except WorkLimitError:
        return "too much work", 0


@examples(200)
@given(pairs())
def test_devices_that_differ_in_what_is_not_distinguished_are_evaluated_alike_at_the_same_cost(
    pair: tuple[str, Device, Device],
) -> None:
    expression, one, other = pair
    assert outcome(expression, one) == outcome(expression, other)


def test_the_cost_of_an_expression_is_known() -> None:
    """The property above compares numbers that differ where different things are read."""
    short, long = (convert(device("d", {"model": "m" * size}), Device) for size in (1, 200))
    expression = f'{A}.model == "{"m" * 200}"'
    costs = [WORK_LIMIT - outcome(expression, each)[1] for each in (short, long)]
    assert 0 < costs[0] < costs[1]
