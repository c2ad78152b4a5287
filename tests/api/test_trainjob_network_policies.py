"""The NetworkPolicies of a TrainJob on a real API server (CTL-6)."""

from __future__ import annotations

from mpi_trainer.api.kinds.annotations import NETWORK_EGRESS
from tests.api.admin import Admin
from tests.api.running import Controller
from tests.api.test_network_policies import NAMES, POLICIES, annotated, names, policies, set_policy
from tests.api.trainjob_lab import (
    TRAIN,
    admin,
    api_server,
    controller,
    job_set,
    submit,
    train_job,
)
from tests.cluster import eventually

__all__ = ["admin", "api_server", "controller"]


def test_a_trainjob_has_its_policies_before_its_jobset_and_keeps_them(
    admin: Admin, controller: Controller
) -> None:
    """CTL-6: an annotation that changes alone is followed too."""
    submit(admin, annotated(train_job(), **{NETWORK_EGRESS: "none"}))
    made = job_set(admin)
    assert names(admin) == NAMES
    latest = max(int(one["metadata"]["resourceVersion"]) for one in policies(admin))
    assert latest < int(made["metadata"]["resourceVersion"])
    wanted = [one["spec"] for one in policies(admin)]
    admin.delete(f"{POLICIES}/pi-workers")
    eventually("made anew", lambda: names(admin) == NAMES)
    set_policy(admin, "none", f"{TRAIN}/trainjobs/pi")
    eventually("opened", lambda: names(admin) == [])
    set_policy(admin, "restricted", f"{TRAIN}/trainjobs/pi")
    eventually("closed", lambda: names(admin) == NAMES)
    assert [one["spec"] for one in policies(admin)] == wanted


def test_a_job_of_one_kind_of_pods_has_one_policy(admin: Admin, controller: Controller) -> None:
    """CTL-6."""
    submit(admin, annotated(train_job(runtime="torch", trainer={"command": ["true"]})))
    job_set(admin)
    assert names(admin) == ["pi-workers"]
