"""Shapes that are not asked for after a failure: each time twice as long, until one succeeds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from moorage import Offer


def key_of(offer: Offer) -> Hashable:
    """Equal for equal offers."""
    return offer.shape.name, offer.zone


class Backoff:
    """Until when each offer is left alone."""

    def __init__(self, initial_seconds: float, max_seconds: float) -> None:
        self._initial = initial_seconds
        self._max = max_seconds
        self._pauses: dict[Hashable, float] = {}
        self._until: dict[Hashable, float] = {}

    def failed(self, offer: Offer, now: float) -> float:
        """An offer failed; returns when it may be asked for again. Failures during a pause count once."""
        name = key_of(offer)
        if self._until.get(name, 0.0) <= now:
            self._pauses[name] = min(2 * self._pauses.get(name, self._initial / 2), self._max)
            self._until[name] = now + self._pauses[name]
        return self._until[name]

    def succeeded(self, offer: Offer) -> None:
        """A node of an offer has come."""
        self._pauses.pop(key_of(offer), None)
        self._until.pop(key_of(offer), None)

    def refusal(self, offer: Offer, now: float) -> str:
        """Why an offer is not asked for; empty: it may be."""
        return f"{offer.prefix} in backoff after failure" if self._until.get(key_of(offer), 0.0) > now else ""

    def end(self, offers: Iterable[Offer], now: float) -> float | None:
        """When the first of some offers that may not be asked for may be; None: all may be."""
        ends = (self._until.get(key_of(offer), 0.0) for offer in offers)
        return min((end for end in ends if end > now), default=None)
