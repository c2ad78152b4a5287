"""Jobs to test with: a small sound one, and changes to it written as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mpi_trainer.api.errors import Path
from mpi_trainer.api.yaml import load

ROLES: Path = ("spec", "mpiReplicaSpecs")
POLICY: Path = ("spec", "runPolicy")
GANG: Path = (*POLICY, "schedulingPolicy")
POD: Path = (*ROLES, "Worker", "template", "spec")
LAUNCHER_POD: Path = (*ROLES, "Launcher", "template", "spec")
CONTAINER: Path = (*POD, "containers", 0)


def job(*changes: tuple[Path, Any]) -> dict[str, Any]:
    """The sound job with each (path, value) set in it."""
    data: dict[str, Any] = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "train"},
        "spec": {"mpiReplicaSpecs": {"Launcher": _role(), "Worker": {"replicas": 2, **_role()}}},
    }
    return changed(data, changes)


def changed(data: dict[str, Any], changes: Iterable[tuple[Path, Any]]) -> dict[str, Any]:
    """`data` itself, with each value at its path."""
    for path, value in changes:
        place: Any = data
        for part in path[:-1]:
            place = place[part] if isinstance(part, int) else place.setdefault(part, {})
        place[path[-1]] = value
    return data


def _role() -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/train:1"}
    return {"template": {"spec": {"containers": [container]}}}


def errors(*changes: tuple[Path, Any]) -> list[str]:
    return [str(error) for error in load.job(job(*changes)).errors]


def warnings(*changes: tuple[Path, Any]) -> list[str]:
    found = load.job(job(*changes))
    assert found.errors == ()
    return [str(warning) for warning in found.warnings]
