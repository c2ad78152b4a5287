"""Amounts that quotas will count."""

from __future__ import annotations

from mpi_trainer.api.yaml import load
from tests.unit.api.building import job

LAUNCHER_POD = ("spec", "mpiReplicaSpecs", "Launcher", "template", "spec")


def test_an_overhead_that_is_no_quantity_is_refused() -> None:
    """Quota arithmetic would fail over it."""
    errors = load.job(job(((*LAUNCHER_POD, "overhead"), {"cpu": ""}))).errors
    assert any("overhead.cpu" in str(error) and "quantity" in str(error) for error in errors)
    assert not load.job(job(((*LAUNCHER_POD, "overhead"), {"cpu": "100m"}))).errors
