"""C-7 for TrainJobs: a JobSet's pods share the agent's scripts with the whole namespace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mpi_trainer.api.kinds.annotations import AGENT_SCRIPTS
from mpi_trainer.render import agent_scripts
from tests.api import trainjob_lab
from tests.api.admin import Admin
from tests.api.running import Controller
from tests.api.trainjob_lab import TRAIN, admin, api_server
from tests.cluster import eventually

__all__ = ["admin", "api_server"]

SHARED = f"api/v1/configmaps/{agent_scripts.name()}"


@pytest.fixture
def controller(admin: Admin) -> Iterator[Controller]:
    keep = "--agent-scripts-keep=3"
    with Controller.alone(admin.spec.kubeconfig, admin.namespace, keep) as one:
        yield one
        assert '"logger":"mpi_trainer.runtime.workers","msg":"failed' not in one.log(), one.log()


@pytest.mark.timeout(200)
@pytest.mark.usefixtures("controller")
def test_scripts_come_when_the_job_goes_on_and_go_after_its_end(admin: Admin) -> None:
    trainjob_lab.submit(admin, trainjob_lab.train_job(suspend=True))
    made = trainjob_lab.job_set(admin)
    assert made["metadata"]["annotations"][AGENT_SCRIPTS] == agent_scripts.version()
    assert admin.get(SHARED) is None
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"suspend": False}})
    eventually("the scripts", lambda: admin.get(SHARED) is not None)
    found = admin.get(SHARED)
    assert found is not None
    assert found["data"] == agent_scripts.data()
    own = admin.get("api/v1/configmaps/pi-mpi-hostfile")
    assert own is not None
    assert set(own["data"]) == {"hostfile", "hosts", "settings"}
    trainjob_lab.end(admin, "Completed", "AllJobsCompleted")
    trainjob_lab.until(admin, "Complete")
    eventually("they are gone", lambda: admin.get(SHARED) is None, 30)


@pytest.mark.timeout(200)
@pytest.mark.usefixtures("controller")
def test_a_job_without_mpi_needs_none(admin: Admin) -> None:
    trainjob_lab.submit(admin, trainjob_lab.train_job("t", "torch"))
    trainjob_lab.job_set(admin, "t")
    assert admin.get(SHARED) is None
