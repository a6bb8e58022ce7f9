"""The string formats of schemas, each as a predicate on a text.

Texts come from clients, so every check takes time linear in the length of its text: expressions do not
backtrack, and texts that are too long for a format are not examined.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from email.utils import parseaddr
from typing import Final
from urllib.parse import urlsplit

from moorage.api.names import long_name_problems, short_name_problems
from moorage.api.text_cache import cached_by_text

_HOST_LETTER: Final = r"[^\W_]"
_HOSTNAME: Final = re.compile(rf"(?=.{{1,255}}\Z){_HOST_LETTER}(?:(?:{_HOST_LETTER}|[-.])*{_HOST_LETTER})?")
_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION: Final = re.compile(
    r"[-+]?(?:0|(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:ns|us|µs|μs|ms|s|m|h))++)"
)
_WORDED_DURATION: Final = re.compile(r"(?<![0-9])[0-9]++\s*+([A-Za-zµ]++)")
_DURATION_UNITS: Final = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_DURATION_WORDS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_MAC: Final = re.compile(
    r"(?:[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}(?:(?:\1[0-9a-f]{2}){2}|(?:\1[0-9a-f]{2}){14})?"
    r"|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:\.[0-9a-f]{4}|(?:\.[0-9a-f]{4}){7})?)",
    re.IGNORECASE,
)
_MAX_ADDRESS_LENGTH: Final = 64
_MAX_EMAIL_LENGTH: Final = 1024
_MAX_URI_START_LENGTH: Final = 8192
"""Number of characters that decide whether a text is a URI."""
_CARD: Final = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def _matching(expression: str, flags: int = re.ASCII) -> Callable[[str], bool]:
    compiled = re.compile(expression, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    digits = "[0-9a-f]"
    return _matching(
        f"{digits}{{8}}-?{digits}{{4}}-?{third}-?{fourth}-?{digits}{{12}}", re.IGNORECASE | re.ASCII
    )


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text)) and text[4] == "-"
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    day, separator, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock.split("t")[0])
    if not separator or not _is_date(day) or match is None:
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    """Go's `1h30m`, or numbers with units in words: `3 days`."""
    if _GO_DURATION.fullmatch(text):
        return True
    units = [match[1].lower() for match in _WORDED_DURATION.finditer(text)]
    return any(unit in _DURATION_UNITS or unit.startswith(_DURATION_WORDS) for unit in units)


def _without_leading_zeros(address: str) -> str:
    """Kubernetes has always read `010.1.2.3` as `10.1.2.3`; Python refuses it."""
    if len(address) > _MAX_ADDRESS_LENGTH:
        return ""
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9]+(?:\.|/|\Z))", "", address) if "." in address else address


def _is_ip(text: str, mark: str) -> bool:
    try:
        ipaddress.ip_address(_without_leading_zeros(text))
    except ValueError:
        return False
    return mark in text and "%" not in text


def _is_cidr(text: str) -> bool:
    address, _, length = text.partition("/")
    if not (len(length) < 4 and length.isascii() and length.isdigit()) or "%" in address:
        return False
    try:
        ipaddress.ip_interface(f"{_without_leading_zeros(address)}/{int(length)}")
    except ValueError:
        return False
    return True


def _is_hostname(text: str) -> bool:
    if not _HOSTNAME.fullmatch(text):
        return False
    labels = text.split(".")
    if any(not 0 < len(label.encode()) < 64 or label[0] == "-" or label[-1] == "-" for label in labels):
        return False
    return len(labels) == 1 or (len(labels[-1]) > 1 and labels[-1].isalpha())


def _is_email(text: str) -> bool:
    try:
        _, address = parseaddr(text) if len(text) <= _MAX_EMAIL_LENGTH else ("", "")
    except RecursionError:  # Nested comments.
        return False
    local, at, domain = address.rpartition("@")
    return bool(local and at and domain) and " " not in address


def _is_uri(text: str) -> bool:
    """An absolute URI or an absolute path."""
    if not text or any(letter < " " or letter in " \x7f" for letter in text):
        return False
    try:
        return text.startswith("/") or bool(urlsplit(text[:_MAX_URI_START_LENGTH]).scheme)
    except ValueError:
        return False


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(place * value for place, value in enumerate(values, start=1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = (int(digit) * 2 if place % 2 else int(digit) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_COLOR: Final = r"\s*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*"
_HEX4: Final = "[0-9a-f]{4}"
_BY_NAME: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matching(r"[0-9a-fA-F]{24}"),
    "byte": _matching(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matching(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_ip(text, "."),
    "ipv6": lambda text: _is_ip(text, ":"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: not long_name_problems(text),
    "k8sshortname": lambda text: not short_name_problems(text),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "password": lambda text: True,
    "rgbcolor": _matching(rf"rgb\({_COLOR},{_COLOR},{_COLOR}\)"),
    "ssn": lambda text: (
        len(text) == 11 and re.fullmatch(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None
    ),
    "uri": _is_uri,
    "uuid": _uuid(_HEX4, _HEX4),
    "uuid3": _uuid("3[0-9a-f]{3}", _HEX4),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
}
_OF_NUMBERS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def is_known(name: str, type_name: str) -> bool:
    """Whether values of a type are validated against a format; an unknown one gives a warning only."""
    if type_name in ("", "string"):
        return name.replace("-", "") in _BY_NAME
    return name in _OF_NUMBERS.get(type_name, ())


@cached_by_text(count=8192)
def conforms(text: str, name: str) -> bool:
    """Whether a text matches a format; formats of other types match every text."""
    check = _BY_NAME.get(name.replace("-", ""))
    return check is None or check(text)
