"""The life of an MPIJob under the real controller, on a real API server (CTL-1, CTL-3, CTL-11)."""

from __future__ import annotations

import time

from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet, is_launcher, is_worker
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]


def names(pods: list[Object]) -> list[str]:
    return sorted(p["metadata"]["name"] for p in pods)


def uids(pods: list[Object]) -> dict[str, str]:
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods}


def launcher(admin: Admin) -> Object:
    eventually("a launcher pod", lambda: bool(admin.pods("launcher")))
    return admin.pods("launcher")[0]


def reasons(admin: Admin) -> list[str]:
    return [reason for _, reason, _ in admin.events()]


def test_a_job_goes_from_created_to_succeeded(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-1, AC-4, AC-8, AC-10."""
    submit(admin, job())
    until(admin, "Running")
    running = admin.job()["status"]
    assert running["replicaStatuses"] == {"Launcher": {"active": 1}, "Worker": {"active": 2}}
    assert running["startTime"]
    kubelet.exit(launcher(admin))
    until(admin, "Succeeded")
    status = admin.job()["status"]
    assert status["completionTime"] >= status["startTime"]
    assert status["replicaStatuses"]["Launcher"] == {"succeeded": 1}
    told = {kind: c["status"] for kind, c in admin.conditions().items()}
    assert told == {"Created": "True", "Running": "False", "Succeeded": "True"}
    wanted = ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]
    eventually("events", lambda: reasons(admin) == wanted)
    assert all(kind == "Normal" for kind, _, _ in admin.events())


def test_children_have_upstreams_names_and_the_job_as_owner(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-1, CTL-7, CTL-8."""
    made = submit(admin, job(2))
    until(admin, "Running")
    paths = (
        "api/v1/services/pi",
        "api/v1/configmaps/pi-config",
        "api/v1/secrets/pi-ssh",
        "api/v1/pods/pi-worker-0",
        "api/v1/pods/pi-worker-1",
        "apis/batch/v1/jobs/pi-launcher",
    )
    for path in paths:
        child = admin.get(path)
        assert child is not None, path
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
    for pod in admin.pods():
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
        assert pod["spec"]["subdomain"] == "pi"
    assert [p["spec"]["hostname"] for p in admin.pods("worker")] == names(admin.pods("worker"))


def test_the_key_is_gone_when_the_job_has_ended(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-19."""
    submit(admin, job(1))
    until(admin, "Running")
    secret = admin.get("api/v1/secrets/pi-ssh")
    assert secret is not None
    assert secret["type"] == "kubernetes.io/ssh-auth"
    assert {"ssh-privatekey", "ssh-publickey"} <= set(secret["data"])
    kubelet.exit(launcher(admin))
    until(admin, "Succeeded")
    eventually("key is gone", lambda: admin.get("api/v1/secrets/pi-ssh") is None)


def test_a_job_without_workers_is_its_launcher(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(0, spec={"runLauncherAsWorker": True}))
    until(admin, "Running")
    kubelet.exit(launcher(admin))
    until(admin, "Succeeded")


def test_launcher_failure_is_told_with_its_exit_code(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-15."""
    submit(admin, job(1, backoffLimit=0, cleanPodPolicy="Running"))
    until(admin, "Running")
    kubelet.exit(launcher(admin), 137, reason="OOMKilled")
    failed = until(admin, "Failed")
    assert failed["reason"] == "LauncherPodFailed"
    assert "exit code 137 (OOMKilled)" in failed["message"]
    eventually("workers gone", lambda: not admin.pods("worker"))
    eventually("it is told", lambda: bool(_told(admin, "LauncherPodFailed")))
    told = _told(admin, "LauncherPodFailed")
    assert [(kind, "exit code 137" in text) for kind, _, text in told] == [("Warning", True)]


def _told(admin: Admin, reason: str) -> list[tuple[str, str, str]]:
    return [event for event in admin.events() if event[1] == reason]


def test_a_secret_in_the_last_words_is_not_shown(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """OBS-4."""
    submit(admin, job(1, backoffLimit=0))
    until(admin, "Running")
    words = "loading https://me:hunter2@data.example/x\nAPI_TOKEN=abc123def failed: disk full"
    kubelet.exit(launcher(admin), 1, message=words)
    message = until(admin, "Failed")["message"]
    assert "disk full" in message
    assert "hunter2" not in message
    assert "abc123def" not in message


def test_a_failed_worker_is_replaced_and_counted_until_the_budget_is_spent(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-14, CTL-11: healthy workers are kept, the launcher is fresh."""
    submit(admin, job(2, backoffLimit=1))
    until(admin, "Running")
    before = uids(admin.pods())
    kubelet.exit(admin.pods("worker")[0], 1)
    restarting = until(admin, "Restarting")
    assert "retry 1 of 1" in restarting["message"]
    assert not admin.holds("Failed")
    until(admin, "Running")
    after = uids(admin.pods())
    assert after["pi-worker-1"] == before["pi-worker-1"]
    assert after["pi-worker-0"] != before["pi-worker-0"]
    assert not set(names(admin.pods("launcher"))) & set(before)
    for pod in admin.pods():
        assert pod["metadata"]["annotations"]["mpi-trainer.opendatahub.io/attempt"] == "2"
    kubelet.exit(admin.pods("worker")[1], 1)
    failed = until(admin, "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"
    assert "2 attempts failed; the last: Worker pi-worker-1" in failed["message"]
    assert admin.job()["status"]["replicaStatuses"]["Worker"]["failed"] == 1


def test_an_evicted_worker_ends_the_attempt(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-11: upstream leaves the launcher running and cleans nothing up."""
    submit(admin, job(2, backoffLimit=0, cleanPodPolicy="All"))
    until(admin, "Running")
    kubelet.evict(admin.pods("worker")[0])
    failed = until(admin, "Failed")
    assert failed["reason"] == "MPIJobEvicted"
    assert "low on resource: memory" in failed["message"]
    eventually("all pods gone", lambda: not admin.pods())


def test_a_lost_nodes_pod_keeps_its_name_and_is_waited_for(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-11: never forced, since it may still run where nobody can see it."""
    submit(admin, job(2))
    until(admin, "Running")
    lost = admin.pods("worker")[0]
    kubelet.keep = lambda pod: bool(pod["metadata"]["uid"] == lost["metadata"]["uid"])
    admin.delete("api/v1/pods/pi-worker-0")
    until(admin, "Restarting")
    eventually("the old launcher gone", lambda: not admin.pods("launcher"))
    time.sleep(2.0)  # long enough for a new pod, were it not waited for
    still = admin.get("api/v1/pods/pi-worker-0")
    assert still is not None
    assert still["metadata"]["uid"] == lost["metadata"]["uid"]
    assert not admin.pods("launcher")
    kubelet.keep = lambda pod: False
    until(admin, "Running")
    again = admin.get("api/v1/pods/pi-worker-0")
    assert again is not None
    assert again["metadata"]["uid"] != lost["metadata"]["uid"]


def test_a_running_job_does_not_notice_that_its_controller_restarts(
    admin: Admin, kubelet: Kubelet
) -> None:
    """CTL-3."""
    with Controller.alone(admin.spec.kubeconfig, admin.namespace) as first:
        submit(admin, job(2))
        until(admin, "Running")
        before = uids(admin.pods())
        first.kill()
        first.start()
        eventually("the second looked", lambda: first.metric(RECONCILED) >= 1)
        assert uids(admin.pods()) == before
        kubelet.exit(launcher(admin))
        until(admin, "Succeeded")


RECONCILED = 'controller_runtime_reconcile_total{controller="mpijob",result="success"}'


def test_a_deleted_job_leaves_nothing_behind(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-1: the launcher pod's finalizer never holds a deletion up."""
    submit(admin, job(2))
    until(admin, "Running")
    admin.delete(f"{JOBS}/mpijobs/pi")
    paths = ("pods", "services/pi", "configmaps/pi-config", "secrets/pi-ssh")
    eventually("pods gone", lambda: not admin.pods(), 60)
    for path in paths[1:]:
        eventually(path, lambda path=path: admin.get(f"api/v1/{path}") is None)  # type: ignore[misc]


def test_a_successor_of_the_same_name_waits_for_its_predecessor(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-3: it neither adopts nor harms what the other leaves."""
    submit(admin, job(2))
    until(admin, "Running")
    old = {p["metadata"]["uid"] for p in admin.pods()}
    admin.delete(f"{JOBS}/mpijobs/pi")
    made = submit(admin, job(2))
    until(admin, "Running")
    assert not old & {p["metadata"]["uid"] for p in admin.pods()}
    for pod in admin.pods("worker"):
        assert pod["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert "Failed" not in admin.conditions()


def test_metrics_count_each_job_once(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-12, AC-10."""
    here = f'{{namespace="{admin.namespace}"}}'
    submit(admin, job(1, "good"))
    submit(admin, job(1, "bad", backoffLimit=0))
    submit(admin, job(1, "held", suspend=True))
    until(admin, "Running", "good")
    until(admin, "Running", "bad")
    until(admin, "Suspended", "held")
    running = f"training_operator_mpijob_running_total{here}"
    queued = f"training_operator_mpijob_queued_total{here}"
    eventually(
        "two run, one waits",
        lambda: [controller.metric(running), controller.metric(queued)] == [2.0, 1.0],
    )
    for pod in admin.pods("launcher"):
        kubelet.exit(pod, 0 if "good" in pod["metadata"]["name"] else 3)
    until(admin, "Succeeded", "good")
    until(admin, "Failed", "bad")
    for name, value in (
        (f"training_operator_mpijob_created_total{here}", 3.0),
        (f"training_operator_mpijob_succeeded_total{here}", 1.0),
        (f"training_operator_mpijob_failed_total{here}", 1.0),
        (f"training_operator_mpijob_duration_seconds_count{here}", 2.0),
        (f"training_operator_mpijob_time_to_running_seconds_count{here}", 2.0),
        ("mpi_operator_jobs_created_total", 3.0),
        ("mpi_operator_jobs_successful_total", 1.0),
        ("mpi_operator_jobs_failed_total", 1.0),
    ):
        assert controller.metric(name) == value, name
    eventually("none runs", lambda: controller.metric(running) == 0.0)
    for state in ("Succeeded", "Failed", "Suspended"):
        labels = f'{{namespace="{admin.namespace}",state="{state}"}}'
        assert controller.metric(f"training_operator_mpijobs{labels}") == 1.0, state
    info = f'mpi_operator_job_info{{launcher="good-launcher",namespace="{admin.namespace}"}}'
    assert controller.metric(info) == 1.0
    admin.delete(f"{JOBS}/mpijobs/good")
    eventually("series gone", lambda: controller.metric(info) == 0.0)


def test_many_jobs_at_once_each_have_their_own(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    kubelet.finish = lambda pod: 0 if is_launcher(pod) else None
    count = 8
    for number in range(count):
        submit(admin, job(3, f"j{number}", cleanPodPolicy="All"))
    for number in range(count):
        until(admin, "Succeeded", f"j{number}", 60)
    eventually("no pod left", lambda: not any(map(is_worker, admin.pods())))
