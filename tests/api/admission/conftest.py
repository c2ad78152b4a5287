"""An API server for these tests alone: admission is for a whole cluster, other tests included."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import shared_cluster
from tools.cluster.spec import Spec


@pytest.fixture(scope="session")
def api_server() -> Iterator[Spec]:
    yield from shared_cluster(Spec(name="test-admission", profile="api"))
