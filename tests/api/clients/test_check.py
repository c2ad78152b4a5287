"""`odh runtime test` on an API server: what a namespace demands, and what a time-out leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.errors import Path as FieldPath
from tests.api.admin import Admin
from tests.api.lab import admin, controller, served
from tests.api.odh import Odh
from tests.api.running import Controller
from tests.unit.api import building

__all__ = ["admin", "controller", "served"]


@pytest.fixture
def odh(admin: Admin) -> Odh:
    return Odh(admin.spec.kubeconfig, admin.namespace)


def written(folder: Path, *changes: tuple[FieldPath, Any]) -> str:
    path = folder / "job.json"
    path.write_text(json.dumps(building.job(*changes)))
    return str(path)


def test_a_namespace_that_enforces_the_restricted_profile_is_read(
    admin: Admin, odh: Odh, tmp_path: Path
) -> None:
    path = written(tmp_path)
    assert "nothing wrong was found" in odh("runtime", "test", path, "--lint-only").stdout
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    place = f"/api/v1/namespaces/{admin.namespace}"
    admin.call("PATCH", place, {"metadata": {"labels": labels}}, "application/merge-patch+json")
    page = odh("runtime", "test", path, code=1).stdout
    assert "containers[0].securityContext.allowPrivilegeEscalation: Forbidden" in page
    assert "MPIJob train cannot work as it is written" in page
    assert admin.pods() == []
    notes = {"openshift.io/sa.scc.uid-range": "1000740000/10000"}
    admin.call("PATCH", place, {"metadata": {"annotations": notes}}, "application/merge-patch+json")
    assert "nothing wrong was found" in odh("runtime", "test", path, "--lint-only").stdout


def test_a_job_that_never_runs_is_given_up_and_removed(
    admin: Admin, controller: Controller, odh: Odh, tmp_path: Path
) -> None:
    """There is no kubelet here, so no pod ever runs."""
    path = written(tmp_path)
    ended = odh("runtime", "test", path, "--timeout", "5s", "-o", "json", code=1, seconds=120)
    report = json.loads(ended.stdout)
    assert "it has not ended within 5 s" in report["problem"]
    assert odh.json("mpijob", "list")["items"] == []


def test_a_job_whose_check_fails_is_not_created(
    admin: Admin, controller: Controller, odh: Odh, tmp_path: Path
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    place = f"/api/v1/namespaces/{admin.namespace}"
    admin.call("PATCH", place, {"metadata": {"labels": labels}}, "application/merge-patch+json")
    said = odh("mpijob", "create", "-f", written(tmp_path), "--check-first", code=1)
    assert "error: job train was not created" in said.stderr
    assert odh.json("mpijob", "list")["items"] == []
