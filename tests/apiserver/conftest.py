from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.client import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.close()
