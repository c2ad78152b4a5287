"""The fixtures of `tests/cluster.py`, for the tests in this folder."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cluster import (
    Kubectl,
    api_server,
    cluster,
    image,
    limit_tests_alone,
    namespace,
    report_failure,
)
from tests.e2e.kubeflow_sdk import kubeflow_sdk, shipped_runtimes
from tests.e2e.operator import operator, restricted_home
from tools.cluster.spec import Spec

__all__ = [
    "api_server",
    "cluster",
    "image",
    "kubeflow_sdk",
    "namespace",
    "operator",
    "restricted_home",
    "shipped_runtimes",
]


@pytest.fixture
def kubectl(cluster: Spec) -> Kubectl:
    """kubectl for what the tests in this folder run against."""
    return Kubectl(cluster)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the logs of every component when a test fails."""
    return (yield from report_failure(item, call))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A cold machine builds Kubernetes before the first test. Kueue takes a while to learn of new
    kinds, so what waits for that comes last."""
    limit_tests_alone(items, Path(__file__).parent)
    items.sort(key=lambda item: item.path.name in ("test_kubeflow_sdk.py", "test_kueue.py"))
