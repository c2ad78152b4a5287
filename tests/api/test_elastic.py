"""A running job is made larger and smaller, and its launcher hears of it (C-14)."""

from __future__ import annotations

from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]

TOLD = "mpi-trainer.opendatahub.io/workers"


def resize(admin: Admin, workers: int) -> None:
    change = {"Worker": {"replicas": workers}}
    admin.patch(f"{JOBS}/mpijobs/pi", {"spec": {"mpiReplicaSpecs": change}})


def hosts(admin: Admin) -> list[str]:
    """The first word of every line of the hostfile, as far as the first dot."""
    found = admin.get("api/v1/configmaps/pi-config")
    text = "" if found is None else found["data"]["hostfile"]
    return [line.partition(".")[0] for line in text.splitlines()]


def launcher(admin: Admin) -> Object:
    (one,) = admin.pods("launcher")
    return one


def test_the_launcher_of_a_running_job_hears_of_hosts_that_come_and_go(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(2))
    until(admin, "Running")
    before = {p["metadata"]["uid"] for p in admin.pods()}
    resize(admin, 4)
    eventually("it is told", lambda: launcher(admin)["metadata"]["annotations"][TOLD] == "4")
    assert hosts(admin) == [f"pi-worker-{n}" for n in range(4)]
    found = admin.get("api/v1/configmaps/pi-config")
    assert found is not None
    assert "pi-worker-3" in found["data"]["discover_hosts.sh"]
    assert before < {p["metadata"]["uid"] for p in admin.pods()}
    resize(admin, 1)
    eventually("they are gone", lambda: len(admin.pods("worker")) == 1)
    assert launcher(admin)["metadata"]["annotations"][TOLD] == "1"
    assert hosts(admin) == ["pi-worker-0"]
    assert admin.holds("Running")
    kubelet.exit(launcher(admin))
    until(admin, "Succeeded")
    assert not [e for e in admin.events() if e[0] == "Warning"]
