"""API-6: a hundred jobs at once on one control plane, and one of 64 workers among them.

`bench/mpijob.py` measures times and costs; `tests/e2e/full/test_many_jobs.py` has real nodes.
"""

from __future__ import annotations

import pytest

from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import admin, controller, kubelet, served, submit
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]

MANY = 100
WORKERS = 64


@pytest.mark.timeout(400, func_only=True)
def test_a_hundred_jobs_at_once_all_succeed_at_their_first_attempt(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    kubelet.finish = lambda pod: 0 if is_launcher(pod) else None
    submit(admin, job(WORKERS, "large", cleanPodPolicy="None"))
    for number in range(MANY):
        submit(admin, job(1, f"small-{number}", cleanPodPolicy="None"))

    def ended() -> list[str]:
        found = admin.every(f"{JOBS}/mpijobs")
        return [one["metadata"]["name"] for one in found if holds(one, "Succeeded")]

    eventually("all jobs succeed", lambda: len(ended()) == MANY + 1, 300)
    assert "MPIJobRestarting" not in {reason for _, reason, _ in admin.events()}
    config = admin.get("api/v1/configmaps/large-config")
    assert config is not None
    hosts = config["data"]["hostfile"].splitlines()
    assert hosts[-1].startswith(f"large-worker-{WORKERS - 1}.")
    assert len(hosts) == WORKERS
    assert len(admin.pods("worker")) == WORKERS + MANY


def holds(one: Object, kind: str) -> bool:
    conditions = one.get("status", {}).get("conditions", [])
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)
