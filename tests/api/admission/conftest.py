"""An API server for these tests alone: admission is for a whole cluster, other tests included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.api.admission.serving import Server, install, remove, serving
from tests.cluster import Kubectl, shared_cluster
from tools.cluster.spec import Spec

PORT: Final = 19443


@pytest.fixture(scope="package")
def api_server() -> Iterator[Spec]:
    yield from shared_cluster(Spec(name="test-admission", profile="api"))


@pytest.fixture(scope="package")
def webhook(api_server: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Admission in front of that server."""
    kubectl = Kubectl(api_server)
    install(kubectl)
    try:
        with serving(api_server, tmp_path_factory.mktemp("webhook"), PORT) as server:
            yield server
    finally:
        remove(kubectl)
