"""What `odh` says of a cluster that lacks something, and to people who may not see all of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mpi_trainer.cli.verbs import doctor_cluster
from mpi_trainer.kube.config import load
from tests.api.admin import JOBS, Admin, Object
from tests.api.clients.test_cli import odh, someone, viewer
from tests.api.lab import admin, served
from tests.api.odh import Odh
from tests.api.running import job

__all__ = ["admin", "odh", "served", "viewer"]


def test_doctor_says_what_the_cluster_has_and_what_one_may_not(
    odh: Odh, admin: Admin, viewer: str, tmp_path: Path
) -> None:
    ended = odh("doctor", "-o", "json", code=1)
    found: list[Object] = json.loads(ended.stdout)
    by_name = {each["what"]: each for each in found}
    assert by_name["MPIJob"]["level"] == "ok"
    assert by_name["login"]["says"].startswith("admin")
    assert by_name["dns"]["level"] == "missing"
    assert by_name["dns"]["fix"]
    limited = someone(admin, tmp_path, viewer)("doctor").stdout
    assert "you may not submit jobs" in limited
    assert "ask an administrator for the role mpijob-user" in limited


def test_doctor_says_where_no_controller_runs(
    odh: Odh, admin: Admin, viewer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W-8: by leases, and for who may not see them by jobs that nobody has answered."""

    def said(by: Odh = odh) -> tuple[str, str]:
        config = load(by.kubeconfig, namespace=admin.namespace)
        found = next(c for c in doctor_cluster.examine(config) if c.what == "controller")
        return found.level, found.says

    def renewed(moment: datetime) -> Object:
        at = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"spec": {"holderIdentity": "mpi-trainer-0", "renewTime": at}}

    now, leases = datetime.now(UTC), "apis/coordination.k8s.io/v1/leases"
    admin.create(leases, {"metadata": {"name": "mpi-trainer"}, **renewed(now)})
    assert said() == ("ok", f"mpi-trainer-0 leads, in namespace {admin.namespace}")
    admin.patch(f"{leases}/mpi-trainer", renewed(now - timedelta(minutes=5)))
    assert said()[0] == "missing", said()
    limited = someone(admin, tmp_path, viewer)
    admin.create(f"{JOBS}/mpijobs", job(1, "held", suspend=True))
    assert said(limited)[1].startswith("is not yours to see; no job in")
    admin.create(f"{JOBS}/mpijobs", job(1, "left"))
    assert said(limited)[0] == "ok"
    monkeypatch.setattr(doctor_cluster, "_SILENT", timedelta(seconds=-60))
    assert said(limited) == (
        "missing",
        "none has answered job left, which is more than a minute old",
    )


def test_a_kind_that_the_cluster_does_not_have_is_no_matter_of_rights(
    odh: Odh, admin: Admin, viewer: str, tmp_path: Path
) -> None:
    """W-8: an API server looks at rights first, and refuses what it does not know at all."""
    assert admin.attempt("GET", "/apis/kubeflow.org/v1")[0] == 404, "whoever defines it forgets it"
    limited = someone(admin, tmp_path, viewer)
    assert "pytorchjobs" not in limited("training", "list").stderr
    refused = odh("training", "list", "pytorchjob", code=2).stderr
    assert "this cluster does not know pytorchjobs.kubeflow.org" in refused


def test_who_may_not_impersonate_is_not_told_to_ask_for_a_role_of_ours(
    admin: Admin, viewer: str, tmp_path: Path
) -> None:
    """W-8: none of them has that right."""
    limited = someone(admin, tmp_path, viewer)
    refused = limited("--as", "boss", "mpijob", "list", code=2).stderr
    assert "may not impersonate users\n" in refused
    assert "Leave out --as, or ask" in refused
    assert "role" not in refused
