"""The fixtures of `tests/cluster.py`, for the tests in this folder."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.api.trainjob_lab import train_server
from tests.cluster import (
    Kubectl,
    api_server,
    cluster,
    image,
    limit_tests_alone,
    namespace,
    report_failure,
)
from tools.cluster.spec import Spec

__all__ = ["api_server", "cluster", "image", "namespace", "train_server"]


@pytest.fixture
def kubectl(api_server: Spec) -> Kubectl:
    """kubectl for what the tests in this folder run against."""
    return Kubectl(api_server)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the logs of every component when a test fails."""
    return (yield from report_failure(item, call))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A cold machine builds Kubernetes before the first test."""
    limit_tests_alone(items, Path(__file__).parent)
