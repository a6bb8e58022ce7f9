"""Semantic versions (semver 2.0.0), as device attributes and `semver()` have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from moorage.api.text_cache import cached_by_text

_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+")
_ASCII_DIGITS = re.compile(r"[0-9]+")

_UINT64_LIMIT = 1 << 64

Identifier = tuple[int, int, str]
"""A prerelease identifier, ordered: numbers before words, numbers by value, words lexically."""


@dataclass(frozen=True, slots=True)
class Semver:
    """A version. Build metadata is dropped: comparisons ignore it."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[Identifier, ...] = ()

    def compare(self, other: Self) -> int:
        """-1, 0 or 1."""
        mine, theirs = self._order(), other._order()
        return (mine > theirs) - (mine < theirs)

    def _order(self) -> tuple[int, int, int, bool, tuple[Identifier, ...]]:
        """A release comes after all of its prereleases."""
        return (self.major, self.minor, self.patch, not self.prerelease, self.prerelease)


@cached_by_text(count=4096)
def parse_semver(text: str) -> Semver:
    """A version in its strict form, or ValueError."""
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    patch, plus, build = parts[2].partition("+")
    patch, dash, prerelease = patch.partition("-")
    version = Semver(
        _number("major", parts[0]),
        _number("minor", parts[1]),
        _number("patch", patch),
        tuple(map(_identifier, prerelease.split("."))) if dash else (),
    )
    if plus:
        for part in build.split("."):
            _check_build(part)
    return version


def parse_semver_leniently(text: str) -> Semver:
    """A version that may have a prefix `v`, leading zeros, and no minor or patch number; or ValueError."""
    parts = text.removeprefix("v").split(".", 2)
    parts = [_without_leading_zeros(part) for part in parts]
    if len(parts) < 3 and any(sign in parts[-1] for sign in "+-"):
        raise ValueError("Short version cannot contain PreRelease/Build meta data")
    return parse_semver(".".join(parts + ["0"] * (3 - len(parts))))


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped and stripped[0] in "123456789" else "0" + stripped


def _number(what: str, text: str) -> int:
    if text and not _ASCII_DIGITS.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in {what} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f'{what.capitalize()} number must not contain leading zeroes "{text}"')
    if not text or int(text) >= _UINT64_LIMIT:
        raise ValueError(f'Invalid {what} number "{text}"')
    return int(text)


def _identifier(text: str) -> Identifier:
    if not text:
        raise ValueError("Prerelease is empty")
    if _ASCII_DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
        return (0, int(text), "")
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in prerelease "{text}"')
    return (1, 0, text)


def _check_build(text: str) -> None:
    if not text:
        raise ValueError("Build meta data is empty")
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in build meta data "{text}"')
