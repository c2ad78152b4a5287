"""Bad input and bad days: what the controller does when it is not asked nicely (CTL-3, CTL-7)."""

from __future__ import annotations

import time
from pathlib import Path

import yaml

from tests.api.accounts import with_token
from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import Kubectl, eventually

__all__ = ["admin", "controller", "kubelet", "served"]

ROOT = Path(__file__).parents[2]
LEASE = "apis/coordination.k8s.io/v1/leases"


def finished(pod: Object) -> int | None:
    return 0 if is_launcher(pod) else None


def test_an_invalid_job_is_told_all_that_is_wrong_and_has_no_children(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """Upstream says it in an event, and nothing in the status."""
    bad = job(2, cleanPodPolicy="Sometimes", ttlSecondsAfterFinished=-1)
    bad["spec"]["mpiReplicaSpecs"]["Launcher"]["replicas"] = 2
    submit(admin, bad)
    failed = until(admin, "Failed")
    assert failed["reason"] == "ValidationError"
    for field in ("cleanPodPolicy", "ttlSecondsAfterFinished", "Launcher.replicas"):
        assert field in failed["message"]
    version = admin.job()["metadata"]["resourceVersion"]
    time.sleep(2.0)  # long enough for a loop to write again, were there one
    assert admin.job()["metadata"]["resourceVersion"] == version, "no loop"
    assert not admin.pods()
    for path in ("services/pi", "configmaps/pi-config", "secrets/pi-ssh"):
        assert admin.get(f"api/v1/{path}") is None
    assert admin.get("apis/batch/v1/jobs/pi-launcher") is None


def test_a_slip_in_a_running_job_is_told_and_does_not_harm_it(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(1))
    until(admin, "Running")
    before = {p["metadata"]["uid"] for p in admin.pods()}
    admin.change(cleanPodPolicy="Never")
    eventually("told", lambda: "ValidationError" in [e[1] for e in admin.events()])
    assert {p["metadata"]["uid"] for p in admin.pods()} == before
    admin.change(cleanPodPolicy="None")
    kubelet.finish = finished
    until(admin, "Succeeded")


def test_a_name_that_is_taken_ends_the_job_and_the_other_object_stays(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    foreign: dict[str, Object] = {
        "services/a": {"spec": {"ports": [{"port": 80}]}},
        "configmaps/b-config": {"data": {"mine": "1"}},
        "secrets/c-ssh": {"stringData": {"mine": "1"}},
    }
    before = {}
    for path, content in foreign.items():
        kind, _, name = path.partition("/")
        made = admin.create(f"api/v1/{kind}", {"metadata": {"name": name}, **content})
        before[path] = made["metadata"]["resourceVersion"]
    for name in ("a", "b", "c"):
        submit(admin, job(1, name))
        failed = until(admin, "Failed", name)
        assert failed["reason"] == "ErrResourceExists"
        assert "already exists and is not managed by this MPIJob" in failed["message"]
    time.sleep(1.0)  # long enough for a late write to what is not ours
    for path, version in before.items():
        found = admin.get(f"api/v1/{path}")
        assert found is not None, path
        assert found["metadata"]["resourceVersion"] == version, path
    assert not admin.pods()


def test_a_foreign_pod_or_job_of_a_childs_name_stays(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    container = [{"name": "c", "image": "x"}]
    plain = {"metadata": {"name": "d-worker-0"}, "spec": {"containers": container}}
    pod = admin.create("api/v1/pods", {**plain, "metadata": {"name": "d-worker-0", "labels": {}}})
    template = {"spec": {"containers": container, "restartPolicy": "Never"}}
    admin.create(
        "apis/batch/v1/jobs",
        {"metadata": {"name": "e-launcher"}, "spec": {"suspend": True, "template": template}},
    )
    for name in ("d", "e"):
        submit(admin, job(1, name))
        assert until(admin, "Failed", name)["reason"] == "ErrResourceExists"
    still = admin.get("api/v1/pods/d-worker-0")
    assert still is not None
    assert still["metadata"]["uid"] == pod["metadata"]["uid"]
    assert admin.get("apis/batch/v1/jobs/e-launcher") is not None


def test_a_pod_that_security_rules_forbid_is_refused_with_their_words(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """AC-20."""
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    path = f"/api/v1/namespaces/{admin.namespace}"
    merge = "application/merge-patch+json"
    admin.call("PATCH", path, {"metadata": {"labels": label}}, merge)
    forbidden = job(1)
    worker = forbidden["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"][0]["securityContext"] = {"privileged": True}
    submit(admin, forbidden)
    failed = until(admin, "Failed")
    assert "violates PodSecurity" in failed["message"]
    assert not admin.pods()


def test_a_job_over_quota_waits_says_so_and_runs_when_there_is_room(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    hard = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    admin.create("api/v1/resourcequotas", hard)
    eventually(
        "quota counted",
        lambda: "hard" in (admin.get("api/v1/resourcequotas/q") or {}).get("status", {}),
    )
    submit(admin, job(2))

    def said() -> str:
        text: str = admin.conditions().get("Running", {}).get("message", "")
        return text

    eventually("told", lambda: "quota exceeded: `q` has no room" in said(), 60)
    admin.delete("api/v1/resourcequotas/q")
    until(admin, "Running")


def test_two_controllers_by_mistake_make_nothing_twice(admin: Admin, kubelet: Kubelet) -> None:
    """CTL-3: preconditions and fixed names protect what a lease should have."""
    kubelet.finish = finished
    config, place = admin.spec.kubeconfig, admin.namespace
    with Controller.alone(config, place), Controller.alone(config, place):
        seen: dict[str, set[str]] = {}
        for number in range(4):
            submit(admin, job(2, f"j{number}"))
        deadline = time.monotonic() + 60
        while not all(admin.holds("Succeeded", f"j{n}") for n in range(4)):
            assert time.monotonic() < deadline
            for pod in admin.pods():
                name = pod["metadata"]["name"]
                role = name if "worker" in name else name.rpartition("-")[0]
                seen.setdefault(role, set()).add(pod["metadata"]["uid"])
            time.sleep(0.05)  # a look; the loop has a deadline
    assert len(seen) == 12
    assert all(len(uids) == 1 for uids in seen.values()), seen


def test_the_next_leader_takes_over_and_the_old_one_ends(admin: Admin, kubelet: Kubelet) -> None:
    """CTL-3: by a Lease in the lock namespace."""
    config, place = admin.spec.kubeconfig, admin.namespace
    flags = (
        *(f"--namespaces={place}", f"--lock-namespace={place}", "--lease-duration=12s"),
        *("--renew-deadline=10s", "--retry-period=3s"),
    )
    with Controller(config, *flags) as first:
        submit(admin, job(1))
        until(admin, "Running")
        with Controller(config, *flags) as second:
            leads = 'leader_election_master_status{name="mpi-operator"}'
            assert (first.metric(leads), second.metric(leads)) == (1.0, 0.0)
            first.kill()
            eventually("second leads", lambda: second.metric(leads) == 1.0, 60)
            kubelet.finish = finished
            until(admin, "Succeeded")
            assert second.stop() == 0
        lease = admin.get(f"{LEASE}/mpi-operator")
        assert lease is not None
        assert not lease["spec"].get("holderIdentity"), "released"


def test_it_refuses_to_run_beside_a_live_upstream_operator(admin: Admin) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    spec = {"holderIdentity": "mpi-operator-7d9f_uuid", "leaseDurationSeconds": 15}
    lease = {"metadata": {"name": "mpi-operator"}, "spec": {**spec, "renewTime": now}}
    admin.create(LEASE, lease)
    config, place = admin.spec.kubeconfig, admin.namespace
    flags = (f"--namespaces={place}", f"--lock-namespace={place}")
    code, said = Controller(config, *flags, wait=False).outcome()
    assert code == 1
    assert "the public MPI operator is at work here" in said
    with Controller(config, *flags, "--beside-upstream"):
        pass


def test_the_shipped_rights_are_enough_and_hold_no_list_of_secrets(
    admin: Admin, kubelet: Kubelet, tmp_path: Path
) -> None:
    """CTL-7: a whole life, with a retry, suspension and removal, as the shipped account."""
    kubectl = Kubectl(admin.spec, admin.namespace)
    rights = ROOT / "manifests/rights/namespace/rights.yaml"
    documents = [d for d in yaml.safe_load_all(rights.read_text()) if d]
    for document in documents:
        for subject in document.get("subjects", ()):
            subject["namespace"] = admin.namespace
        for rule in document.get("rules", ()):
            if "secrets" in rule["resources"]:
                assert not {"list", "watch", "*"} & set(rule["verbs"])
    kubectl("create", "serviceaccount", "mpi-trainer")
    kubectl.apply(*documents)
    account = with_token(kubectl, "mpi-trainer")
    eventually("rights", lambda: account.may("watch", "mpijobs", admin.namespace))
    config = account.kubeconfig(tmp_path)
    codes = {"1": 1}
    kubelet.finish = lambda pod: (
        codes.get(pod["metadata"]["annotations"]["mpi-trainer.opendatahub.io/attempt"], 0)
        if is_launcher(pod)
        else None
    )
    with Controller.alone(config, admin.namespace) as one:
        submit(admin, job(2, cleanPodPolicy="All", backoffLimit=1))
        until(admin, "Succeeded")
        eventually("cleaned", lambda: not admin.pods())
        submit(admin, job(1, "short", ttlSecondsAfterFinished=0, backoffLimit=1))
        eventually("removed", lambda: admin.get(f"{JOBS}/mpijobs/short") is None, 60)
        assert one.answered(200)
        assert one.answered(403) == [], one.log()


def test_uninstalling_lets_go_of_every_launcher_pod(admin: Admin, kubelet: Kubelet) -> None:
    """No pod may be impossible to delete once the controller is gone."""
    config, place = admin.spec.kubeconfig, admin.namespace
    with Controller.alone(config, place):
        submit(admin, job(1))
        until(admin, "Running")
    (pod,) = admin.pods("launcher")
    assert "mpi-trainer.opendatahub.io/evidence" in pod["metadata"]["finalizers"]
    code, said = Controller.alone(config, place, "--release", wait=False).outcome()
    assert code == 0, said
    admin.delete(f"{JOBS}/mpijobs/pi")
    eventually("all gone", lambda: not admin.pods(), 60)
