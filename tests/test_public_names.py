"""What people import from `moorage` is there and explained; tests/stability/interface/python.txt pins it."""

from __future__ import annotations

import re

import pytest

import moorage


@pytest.mark.parametrize("name", sorted(moorage.__all__))
def test_a_public_name_is_there_and_explained_where_it_is_imported_from(name: str) -> None:
    assert hasattr(moorage, name)
    assert name == "__version__" or name in re.findall(r"\w+", moorage.__doc__ or "")
