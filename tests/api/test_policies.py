"""Every policy of an MPIJob, by the real controller on a real API server (CTL-2)."""

from __future__ import annotations

import json
import time

import pytest

from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet, is_launcher, is_worker
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]

LATE = {"launcherCreationPolicy": "WaitForWorkersReady"}
NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
NO_NODE = "have no node: of 3 nodes 3 have too little nvidia.com/gpu left"


def finished(pod: Object) -> int | None:
    return 0 if is_launcher(pod) else None


@pytest.mark.parametrize(
    ("policy", "left"), [("None", (2, 1)), ("Running", (0, 1)), ("All", (0, 0))]
)
def test_pods_are_cleaned_up_as_the_policy_says(
    admin: Admin,
    kubelet: Kubelet,
    controller: Controller,
    policy: str,
    left: tuple[int, int],
) -> None:
    """AC-4: `All` includes the launcher, which upstream leaves."""
    kubelet.finish = finished
    submit(admin, job(2, cleanPodPolicy=policy))
    until(admin, "Succeeded")
    eventually("cleaned up", lambda: _counts(admin) == left, 60)
    time.sleep(1.0)  # long enough for one pod too many to go
    assert _counts(admin) == left
    gone = admin.get("apis/batch/v1/jobs/pi-launcher") is None
    assert gone == (policy == "All")


def test_the_job_itself_is_removed_after_its_time(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-4: upstream removes the launcher's Job and keeps the MPIJob for ever."""
    kubelet.finish = finished
    submit(admin, job(1, ttlSecondsAfterFinished=10))
    until(admin, "Succeeded")
    assert admin.get(f"{JOBS}/mpijobs/pi") is not None
    eventually("job removed", lambda: admin.get(f"{JOBS}/mpijobs/pi") is None, 60)
    eventually("pods removed", lambda: not admin.pods(), 60)


def test_the_deadline_counts_from_the_start_and_not_from_the_launcher(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """A job whose workers never come does not wait for ever."""
    kubelet.hold = is_worker
    submit(admin, job(1, activeDeadlineSeconds=2, spec=LATE))
    failed = until(admin, "Failed")
    assert failed["reason"] == "DeadlineExceeded"
    assert not admin.pods("launcher")
    eventually("nothing pending", lambda: not admin.pods())


def test_a_launcher_that_still_runs_at_the_deadline_is_stopped(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(1, activeDeadlineSeconds=20, cleanPodPolicy="None"))
    until(admin, "Running")
    until(admin, "Failed")
    eventually("launcher stopped", lambda: not admin.pods("launcher"))


def test_suspending_frees_everything_that_costs_and_resuming_starts_anew(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(2))
    until(admin, "Running")
    before = {p["metadata"]["uid"] for p in admin.pods()}
    admin.change(suspend=True)
    until(admin, "Suspended")
    eventually("no pods", lambda: not admin.pods())
    status = admin.job()["status"]
    assert "startTime" not in status
    assert admin.conditions()["Running"]["reason"] == "MPIJobSuspended"
    assert admin.get("api/v1/secrets/pi-ssh") is not None
    admin.change(suspend=False)
    until(admin, "Running")
    assert not before & {p["metadata"]["uid"] for p in admin.pods()}
    assert admin.conditions()["Suspended"]["status"] == "False"
    assert "startTime" in admin.job()["status"]
    reasons = [reason for _, reason, _ in admin.events()]
    assert "MPIJobSuspended" in reasons
    assert "MPIJobResumed" in reasons


def test_the_quota_of_a_preempted_job_is_free_as_soon_as_its_pods_are_gone(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """C-10: Kueue gives it to others once nothing is active; that took up to ten seconds."""

    def active() -> int:
        counts = admin.job()["status"].get("replicaStatuses", {})
        return sum(one.get("active", 0) for one in counts.values())

    submit(admin, job(2))
    until(admin, "Running")
    kubelet.keep = lambda pod: True
    admin.change(suspend=True)
    until(admin, "Suspended")
    kubelet.keep = lambda pod: False
    eventually("no pods", lambda: not admin.pods())
    eventually("nothing active", lambda: not active(), 2)


def test_a_job_made_suspended_has_no_pods_until_it_is_resumed(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """Kueue's way: also what it puts into the templates meanwhile reaches the pods."""
    submit(admin, job(1, suspend=True))
    until(admin, "Suspended")
    time.sleep(1.0)  # long enough for a pod to come, were it not held back
    assert not admin.pods()
    template = {"spec": {"nodeSelector": {"pool": "gpu"}}, "metadata": {"labels": {"team": "x"}}}
    change = {"spec": {"mpiReplicaSpecs": {"Worker": {"template": template}}}}
    admin.patch(f"{JOBS}/mpijobs/pi", change)
    admin.change(suspend=False)
    until(admin, "Running")
    (worker,) = admin.pods("worker")
    assert worker["spec"]["nodeSelector"] == {"pool": "gpu"}
    assert worker["metadata"]["labels"]["team"] == "x"


def test_new_suspended_job_can_be_changed_by_who_created_it(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """U-3: the first status write came within milliseconds, and made the update a conflict."""
    submit(admin, job(1, name="first"))
    until(admin, "Running", "first")
    for number in range(5):
        made = submit(admin, job(1, name=f"pi-{number}", suspend=True))
        time.sleep(0.2)  # a client that thinks; the controller has long seen the job by now
        made["spec"]["slotsPerWorker"] = 2
        path = f"{JOBS}/mpijobs/pi-{number}"
        code, answer = admin.attempt("PUT", path, json.dumps(made).encode())
        assert code == 200, answer
        until(admin, "Suspended", f"pi-{number}", 10)


def test_a_late_launcher_comes_when_all_workers_are_ready_at_every_resume(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-2: upstream forgets the policy once a job was suspended."""
    kubelet.unready = lambda pod: bool(pod["metadata"]["name"] == "pi-worker-1")
    submit(admin, job(2, suspend=True, spec=LATE))
    until(admin, "Suspended")
    for _ in range(2):
        kubelet.unready = lambda pod: bool(pod["metadata"]["name"] == "pi-worker-1")
        admin.change(suspend=False)
        eventually("both run", lambda: _running(admin) == 2)
        time.sleep(1.0)  # long enough for a launcher that does not wait
        assert not admin.pods("launcher")
        assert admin.get("apis/batch/v1/jobs/pi-launcher") is None
        kubelet.unready = lambda pod: False
        until(admin, "Running")
        admin.change(suspend=True)
        eventually("suspended", lambda: admin.holds("Suspended") and not admin.pods())


def test_a_job_that_another_controller_manages_is_not_touched(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(1, managedBy="kueue.x-k8s.io/multikueue"))
    submit(admin, job(1, "own", managedBy="kubeflow.org/mpi-operator"))
    until(admin, "Running", "own")
    assert "status" not in admin.job()
    names = {p["metadata"]["labels"]["training.kubeflow.org/job-name"] for p in admin.pods()}
    assert names == {"own"}


def test_a_job_that_finds_no_place_fails_in_time_and_leaves_no_pod_pending(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-16, AC-2."""
    kubelet.why = NO_GPU
    kubelet.hold = lambda pod: bool(pod["metadata"]["name"] != "pi-worker-0")
    submit(admin, job(2, schedulingPolicy={"scheduleTimeoutSeconds": 10}))
    failed = until(admin, "Failed")
    assert failed["reason"] == "SchedulingTimeout"
    assert NO_NODE in failed["message"]
    wanted = ("Warning", "SchedulingTimeout")
    eventually("it is told", lambda: wanted in [(e[0], e[1]) for e in admin.events()])
    eventually("none pending", lambda: _pending(admin) == 0)
    time.sleep(1.0)  # long enough for a new pod, were the job tried again
    assert _pending(admin) == 0


def test_the_administrators_limit_holds_for_jobs_without_one(
    admin: Admin, kubelet: Kubelet
) -> None:
    """AC-16: 0 in the job means that it waits for ever."""
    kubelet.hold = lambda pod: True
    config, place = admin.spec.kubeconfig, admin.namespace
    with Controller.alone(config, place, "--schedule-timeout-default=3"):
        submit(admin, job(1))
        submit(admin, job(1, "patient", schedulingPolicy={"scheduleTimeoutSeconds": 0}))
        until(admin, "Failed")
        assert not admin.holds("Failed", "patient")


@pytest.mark.timeout(180, func_only=True)
def test_a_waiting_job_says_every_30_seconds_what_is_missing(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-16, SC-012."""
    kubelet.why = NO_GPU
    kubelet.hold = lambda pod: bool(pod["metadata"]["name"] == "pi-worker-1")
    submit(admin, job(2))

    def said() -> str:
        text: str = admin.conditions().get("Running", {}).get("message", "")
        return text

    eventually("a first message", lambda: bool(said()), 60)
    first = said()
    assert first.startswith(f"1 of 3 pods {NO_NODE} (pi-worker-1), after ")
    eventually("a second one", lambda: said() != first, 60)
    kubelet.hold = lambda pod: False
    until(admin, "Running")


def _counts(admin: Admin) -> tuple[int, int]:
    return len(admin.pods("worker")), len(admin.pods("launcher"))


def _running(admin: Admin) -> int:
    return sum(1 for p in admin.pods("worker") if p["status"].get("phase") == "Running")


def _pending(admin: Admin) -> int:
    return sum(1 for p in admin.pods() if p["status"].get("phase") == "Pending")
