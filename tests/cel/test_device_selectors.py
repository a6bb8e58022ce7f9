"""Device selectors: what expressions say of a device, and how they fail."""

from __future__ import annotations

import pytest

from moorage.api.decode import convert
from moorage.api.devices import Device
from moorage.cel.budget import WorkBudget
from moorage.cel.program import CompileError, DeviceFacts, compile_selector
from moorage.cel.semver import parse_semver, parse_semver_leniently
from moorage.cel.values import CelError
from tests.plugins.dynamic_resources.device_objects import device

DRIVER = "dra.example.com"
A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'

FACTS = DeviceFacts(
    DRIVER,
    convert(
        device(
            "d",
            {
                "yes": True,
                "no": False,
                "number": 1,
                "text": "fish",
                "version": "v:1.0.0",
                "other.example.com/name": True,
                "services": "some_example_value",
            },
            {"memory": "1Mi", "slots": "1500m"},
            allowMultipleAllocations=True,
        ),
        Device,
    ),
)

ANSWERS: dict[str, bool] = {
    "true": True,
    "false": False,
    f'device.driver == "{DRIVER}"': True,
    'device.driver == ""': False,
    "device.allowMultipleAllocations": True,
    # Values that cannot be compared, and containers that hold them
    f'{A}.version != "x"': True,
    f'{A}.text in [semver("1.0.0")]': False,
    f'[{A}.version] == ["x"]': True,
    f"device.attributes.size() == 2 && size({A}) == 6": True,
    # Attributes and domains
    f"{A}.yes": True,
    f'{A}["yes"]': True,
    f"{A}.number > 0": True,
    f"{A}.number > 0.5": True,
    f"{A}.number == 1.0": True,
    f'{A}.text == "fish"': True,
    f'{A}.text in ["bird", "fish"]': True,
    f"{A}.text == 1": False,
    f"{A}.yes == 1": False,
    'device.attributes["other.example.com"].name': True,
    f'"{DRIVER}" in device.attributes': True,
    '"no-such-domain" in device.attributes': False,
    f'"yes" in {A}': True,
    '"yes" in device.attributes["no-such-domain"]': False,
    f"has({A}.yes)": True,
    f"has({A}.nothing)": False,
    "has(device.attributes.anything)": True,
    f'device.attributes.exists_one(domain, domain == "{DRIVER}")': True,
    f'{A}.exists(name, name.startsWith("serv"))': True,
    f'{A}.all(name, name != "")': True,
    f'cel.bind(dra, {A}, dra.yes && dra.text == "fish")': True,
    # Quantities
    f'{C}.memory.isGreaterThan(quantity("1Ki"))': True,
    f'{C}.memory.isLessThan(quantity("1Ki"))': False,
    f'{C}.memory.compareTo(quantity("1024Ki")) == 0': True,
    f'{C}.memory == quantity("1048576")': True,
    f'{C}.memory.add(quantity("1Mi")) == quantity("2Mi")': True,
    f'{C}.memory.sub(1048575) == quantity("1")': True,
    f"{C}.memory.asInteger() == 1048576": True,
    f"{C}.slots.isInteger()": False,
    f"{C}.slots.asApproximateFloat() == 1.5": True,
    f"sign({C}.slots) == 1": True,
    'isQuantity("12Gi") && !isQuantity("12Gx")': True,
    f'!("nothing" in {C}) || {C}.nothing.isGreaterThan(quantity("1"))': True,
    # Versions
    f'{A}.version.isGreaterThan(semver("0.0.1"))': True,
    f'{A}.version.isLessThan(semver("1.0.1-rc.1"))': True,
    f'{A}.version == semver("1.0.0+build")': True,
    f'{A}.version.compareTo(semver("v1", true)) == 0': True,
    'isSemver("v1.0.0", true) && !isSemver("v1.0.0")': True,
    f"{A}.version.major() == 1 && {A}.version.minor() == 0 && {A}.version.patch() == 0": True,
    # Texts, lists and sets
    f'{A}.services.split("example").size() >= 2': True,
    f'{A}.text.matches("^f.*h$")': True,
    f'{A}.text.upperAscii().substring(1) == "ISH"': True,
    '"%s-%d".format(["a", 1]) == "a-1"': True,
    '"hello".indexOf("l") == 2 && [1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2': True,
    f'sets.contains(["fish", "bird"], [{A}.text])': True,
    "sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2]) && !sets.intersects([1], [])": True,
    "[1, 2, 3].sum() == 6 && [3, 1].min() == 1 && [3, 1].max() == 3 && [1, 2].isSorted()": True,
    "[[1], [2, 3]].flatten() == [1, 2, 3] && [2, 1].sort() == [1, 2] && [1, 1].distinct() == [1]": True,
    "[1, 2, 3].slice(1, 3) == [2, 3] && lists.range(3) == [0, 1, 2] && [1, 2].reverse() == [2, 1]": True,
    "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]": True,
    # Optionals
    f"{A}.?nothing.orValue(true)": True,
    f"{A}.?no.orValue(true)": False,
    f'{A}[?"nothing"].hasValue()': False,
    'device.attributes[?"no-such-domain"].hasValue()': True,
    f"{A}.?nothing.?more.orValue(true) == true": True,
    f"{A}.?nothing.or({A}.?yes).value()": True,
    "[1].first().value() == 1 && ![].last().hasValue()": True,
    "[?optional.none(), 1] == [1]": True,
    # Errors that do not matter
    f"{A}.nothing == 1 || true": True,
    f"true || {A}.nothing == 1": True,
    f"{A}.nothing == 1 && false": False,
    "[1, 0].exists(x, 1 / x == 1)": True,
    "[0, 1].exists(x, 1 / x == 1)": True,
    f"true ? {A}.yes : {A}.nothing": True,
    f"type({A}.text) == string": True,
}


@pytest.mark.parametrize(("expression", "answer"), ANSWERS.items(), ids=ANSWERS)
def test_an_expression_has_an_answer(expression: str, answer: bool) -> None:
    assert compile_selector(expression).matches(FACTS, WorkBudget(10**8)) is answer


FAILURES: dict[str, str] = {
    f"{A}.nothing": "no such key: nothing",
    'device.attributes["no-such-domain"].nothing': "no such key: nothing",
    f"{A}.nothing == 1 && true": "no such key: nothing",
    f"false || {A}.nothing": "no such key: nothing",
    "[0, 2].exists(x, 1 / x == 1)": "division by zero",
    f"{A}.text > 3": "no such overload",
    f'{A}.text.isGreaterThan(quantity("1"))': "no such overload",
    f'{A}.version == "1.0.0"': "no such overload",
    f"{A}.number && true": "no such overload",
    f"{A}.number + 9223372036854775807 > 0": "integer overflow",
    "[1][2] == 1": "index out of bounds: 2",
    f"{A}.text": "CEL result of type string could not be converted to bool",
    'semver("1.0") == semver("1.0.0")': "No Major.Minor.Patch elements found",
    f"{C}.slots.asInteger() == 1": "cannot convert value to integer",
    "optional.none().value() == 1": "optional.none() dereference",
    "lists.range(1000).distinct().size() > 0": "operation cancelled: actual cost limit exceeded",
}


@pytest.mark.parametrize(("expression", "reason"), FAILURES.items(), ids=FAILURES)
def test_an_expression_fails(expression: str, reason: str) -> None:
    with pytest.raises(CelError) as caught:
        compile_selector(expression).matches(FACTS, WorkBudget(10**8))
    assert str(caught.value) == reason


MISTAKES: dict[str, str] = {
    "?!": "Syntax error",
    "1": "must evaluate to bool or the unknown type, not int",
    'quantity("1")': "must evaluate to bool or the unknown type, not kubernetes.Quantity",
    "device.nothing": "undeclared reference",
    "device.driver == 1": "no matching overload",
    f"{C}.memory.isGreaterThan(1)": "no matching overload",
    f"{A}.text.includes(1)": "undeclared reference to 'includes'",
}


@pytest.mark.parametrize(("expression", "reason"), MISTAKES.items(), ids=MISTAKES)
def test_an_expression_is_refused(expression: str, reason: str) -> None:
    for _ in range(2):  # a mistake is remembered, too
        with pytest.raises(CompileError, match=reason.replace("?", r"\?")):
            compile_selector(expression)


def test_an_expression_is_compiled_once() -> None:
    assert compile_selector("1 == 1") is compile_selector("1 == 1")


def test_a_device_that_cannot_be_described_fails_every_expression() -> None:
    unknown = convert({"name": "d", "attributes": {"names": {"strings": ["a"]}}}, Device)
    with pytest.raises(CelError, match="attribute names: unsupported attribute value"):
        compile_selector("true").matches(DeviceFacts(DRIVER, unknown), WorkBudget())


ORDERED = [
    "0.9.9",
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-b",
    "1.0.0",
    "1.0.1",
]


def test_versions_have_an_order() -> None:
    versions = [parse_semver(text) for text in ORDERED]
    for index, version in enumerate(versions):
        for other_index, other in enumerate(versions):
            assert version.compare(other) == (index > other_index) - (index < other_index)


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.x"]
)
def test_a_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_semver(text)


@pytest.mark.parametrize(
    ("text", "strict"), [("v1", "1.0.0"), ("1.02", "1.2.0"), ("01.2.3-rc", "1.2.3-rc"), ("v0.0", "0.0.0")]
)
def test_a_version_can_be_read_leniently(text: str, strict: str) -> None:
    assert parse_semver_leniently(text) == parse_semver(strict)
