"""Random documents that are small enough to meet each other."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "a/b", "~"])
SCALARS = st.sampled_from([0, 1, -1, 1.5, 10**20, True, False, "", "x", "y"])
JSON = st.recursive(
    SCALARS | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
FULL = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
"""Without nulls."""
DOCUMENTS = st.dictionaries(NAMES, FULL, max_size=4)
GARBAGE = JSON | st.text(max_size=3)
