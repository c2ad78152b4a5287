"""One life of a job by the public Kubeflow SDK, unmodified; every row is in full/."""

from __future__ import annotations

import json

import pytest

from tests.cluster import Kubectl, eventually
from tests.e2e.kubeflow_sdk import Sdk


@pytest.mark.timeout(700, func_only=True)
def test_the_public_sdk_runs_a_function_on_two_nodes(
    kubeflow_sdk: Sdk, shipped_runtimes: tuple[str, ...], namespace: Kubectl
) -> None:
    """API-2: train, wait for Running and Complete, follow the log, events, delete."""
    probe = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "probe"},
        "spec": {"runtimeRef": {"name": "mpi-openmpi-cpu"}, "trainer": {"command": ["true"]}},
    }
    words = ("create", "--dry-run=server", "-f", "-")
    # Kueue hears of new kinds a while after they were defined.
    eventually(
        "Kueue knows runtimes",
        lambda: not namespace.attempt(*words, data=json.dumps(probe)).returncode,
        120,
    )
    found, _ = kubeflow_sdk("function", namespace)
    assert found["running"]["status"] == "Running"
    assert found["done"]["status"] == "Complete"
    assert len({line for line in found["followed"] if line.startswith("rank ")}) == 2
    assert "Running" in found["events"]
    assert found["left"] == 0
