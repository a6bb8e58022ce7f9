"""The fingerprint of a set of pods, as agents compute it: XXH64 of the sorted XXH64 of their names.

The hash of a pod is that of its name, seeded with the hash of its namespace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

PREFIX: Final = "pfp0v001"
"""The version of fingerprints that is computed here."""

_PRIMES: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK: Final = (1 << 64) - 1


def pod_hash(namespace: str, name: str) -> int:
    """The hash of a pod in fingerprints."""
    return xxh64(name.encode(), xxh64(namespace.encode()))


def fingerprint(hashes: Iterable[int]) -> str:
    """The fingerprint of pods, given their hashes in any order."""
    data = b"".join(each.to_bytes(8, "little") for each in sorted(hashes))
    return f"{PREFIX}{xxh64(data):016x}"


def xxh64(data: bytes, seed: int = 0) -> int:
    """The 64-bit xxHash of some bytes."""
    first, second, third, fourth, fifth = _PRIMES
    length, at = len(data), 0
    if length >= 32:
        lanes = [seed + first + second, seed + second, seed, seed - first]
        while at <= length - 32:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        turns = (1, 7, 12, 18)
        hashed = sum(_rotated(lane & _MASK, turn) for lane, turn in zip(lanes, turns, strict=True)) & _MASK
        for lane in lanes:
            hashed = ((hashed ^ _round(0, lane)) * first + fourth) & _MASK
    else:
        hashed = (seed + fifth) & _MASK
    hashed = (hashed + length) & _MASK
    while at <= length - 8:
        hashed ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        hashed = (_rotated(hashed, 27) * first + fourth) & _MASK
        at += 8
    if at <= length - 4:
        hashed ^= int.from_bytes(data[at : at + 4], "little") * first & _MASK
        hashed = (_rotated(hashed, 23) * second + third) & _MASK
        at += 4
    for byte in data[at:]:
        hashed ^= byte * fifth & _MASK
        hashed = _rotated(hashed, 11) * first & _MASK
    hashed = (hashed ^ hashed >> 33) * second & _MASK
    hashed = (hashed ^ hashed >> 29) * third & _MASK
    return hashed ^ hashed >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
