"""TrainJobs whose JobSets end, and what is believed of it."""

from __future__ import annotations

from pathlib import Path

from tests.api.admin import Admin
from tests.api.refusing import RefusingProxy
from tests.api.running import Controller
from tests.api.test_ends import no_secret_goes
from tests.api.test_trainjob import pod_of
from tests.api.trainjob_lab import (
    OURS,
    SETS,
    admin,
    api_server,
    condition,
    controller,
    end,
    job_of,
    job_set,
    submit,
    train_job,
    until,
)
from tests.cluster import eventually

__all__ = ["admin", "api_server", "controller"]

KEY = "api/v1/secrets/pi-mpi-ssh-auth"
LOST = """mpi-agent 1
level full
ended Command 0
world size=2 started=2 ended=1 lost=1 runs=1
lost 1 pi-node-0-0
host pi-node-0-0 0-1 peak=- oom=-
"""


def test_a_job_is_not_run_again_when_its_completed_jobset_is_being_deleted(admin: Admin) -> None:
    """C-2: the JobSet's time to live was over while no controller looked."""
    with Controller.alone(admin.spec.kubeconfig, admin.namespace) as one:
        submit(admin, train_job())
        first = job_set(admin)
        one.kill()
        held = {"metadata": {"finalizers": ["tests.example/held"]}}
        admin.patch(f"{SETS}/jobsets/pi", held)
        end(admin, "Completed", "AllJobsCompleted")
        admin.delete(f"{SETS}/jobsets/pi")
        one.start()
        until(admin, "Complete")
        admin.patch(f"{SETS}/jobsets/pi", {"metadata": {"finalizers": None}})
        eventually("the JobSet is gone", lambda: admin.get(f"{SETS}/jobsets/pi") is None)
        submit(admin, train_job("later"))
        assert job_set(admin, "later")["metadata"]["uid"] != first["metadata"]["uid"]
        assert admin.get(f"{SETS}/jobsets/pi") is None


def test_ranks_are_asked_for_before_a_completed_jobset_is_believed(
    admin: Admin, controller: Controller
) -> None:
    """C-11: JobSet's clock is hours behind, and its end is seen before the launcher's."""
    submit(admin, train_job())
    launcher = pod_of(admin, job_set(admin), "launcher")
    said = {"exitCode": 0, "reason": "Completed", "message": LOST}
    main = {"name": "node", "ready": False, "restartCount": 0, "image": "x", "imageID": "x"}
    ended = [{**main, "state": {"terminated": said}}]
    admin.patch(
        f"{launcher}/status", {"status": {"phase": "Succeeded", "containerStatuses": ended}}
    )
    end(admin, "Completed", "AllJobsCompleted")
    assert until(admin, "Failed")["reason"] == "RanksLost"


def test_the_end_of_a_trainjob_does_not_wait_for_its_key(admin: Admin, tmp_path: Path) -> None:
    """C-13: also not across controllers, within minutes of the end."""
    with (
        RefusingProxy(admin.spec, no_secret_goes) as proxy,
        Controller.alone(proxy.kubeconfig(tmp_path), admin.namespace) as one,
    ):
        submit(admin, train_job())
        job_set(admin)
        end(admin, "Completed", "AllJobsCompleted")
        until(admin, "Complete")
        eventually("it was tried", lambda: len(proxy.refused) >= 1)
        one.kill()
        assert admin.get(KEY) is not None
        proxy.refuses = lambda method, path: False
        one.start()
        eventually("key is gone", lambda: admin.get(KEY) is None)


def test_a_trainjob_whose_pods_do_not_run_ends_at_the_administrators_limit(admin: Admin) -> None:
    """AC-16, W-4: with what the scheduler misses; 0 on the job means that it waits for ever."""
    config, place = admin.spec.kubeconfig, admin.namespace
    patient = {"annotations": {f"{OURS}/schedule-timeout-seconds": "0"}}
    why = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    unplaced = {"type": "PodScheduled", "status": "False", "message": why}
    with Controller.alone(config, place, "--schedule-timeout-default=12"):
        submit(admin, train_job())
        submit(admin, train_job("patient", metadata=patient))
        for name in ("pi", "patient"):
            path = pod_of(admin, job_set(admin, name), "node")
            admin.patch(f"{path}/status", {"status": {"conditions": [unplaced]}})
        failed = until(admin, "Failed")
        assert failed["reason"] == "SchedulingTimeout"
        told = "have no node: of 3 nodes 3 have too little nvidia.com/gpu left"
        assert told in failed["message"]
        eventually("its JobSet is gone", lambda: admin.get(f"{SETS}/jobsets/pi") is None)
        assert condition(admin, "Failed", "patient") is None
        waits = job_of(admin, "patient")["metadata"]["annotations"]
        assert told in waits[f"{OURS}/cause"]
        assert waits[f"{OURS}/phase"] == "Pending"
