"""An API server for these tests alone: admission is for a whole cluster, other tests included."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.api.admission.serving import Server, install, remove, serving
from tests.api.running import free_port
from tests.cluster import Kubectl, api_spec, shared_cluster
from tools.cluster.spec import Spec


@pytest.fixture(scope="package")
def api_server() -> Iterator[Spec]:
    yield from shared_cluster(replace(api_spec("test-admission"), oldest=False))


@pytest.fixture(scope="package")
def webhook(api_server: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Admission in front of that server."""
    kubectl = Kubectl(api_server)
    install(kubectl)
    try:
        with serving(api_server, tmp_path_factory.mktemp("webhook"), free_port()) as server:
            yield server
    finally:
        remove(kubectl)
