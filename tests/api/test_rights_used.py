"""CTL-7: the controller has the rights that it uses, and no others.

The real controller, with the real token of the installed account, lives through a job that fails,
is suspended, resumed, succeeds and is deleted by its TTL, meets names that are taken, takes over a
job of the public operator, and lets go.
What it asked for is read from the API server's audit log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mpi_trainer.api.kinds.annotations import NETWORK_POLICY
from tests.api import test_takeover, trainjob_lab
from tests.api.accounts import Account, with_token
from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.running import Controller, ask_metrics, free_port, job
from tests.api.test_gang_scheduling import COSCHEDULING, VOLCANO, define, foreign, spec
from tests.api.trainjob_lab import TRAIN
from tests.cluster import Kubectl, api_spec, eventually, shared_cluster
from tools.cluster.spec import Spec

__all__ = ["admin", "kubelet", "served"]

MANIFESTS = Path(__file__).parents[2] / "manifests"
HOME = "mpi-trainer"
USER = f"system:serviceaccount:{HOME}:{HOME}"
BY_ADMISSION = {
    ("kubeflow.org", "mpijobs/finalizers", "update"),
    ("trainer.kubeflow.org", "trainjobs/finalizers", "update"),
}
"""never asked for: checked by the API server when a child blocks the deletion of its owner"""

_FOLLOWED = set(test_takeover.LABELS)

POLICIES = "apis/networking.k8s.io/v1/networkpolicies"
Right = tuple[str, str, str]
"""API group, resource with its part, verb"""


@pytest.fixture(scope="session")
def api_server() -> Iterator[Spec]:
    """An API server that writes down what the controller asks for."""
    yield from shared_cluster(api_spec("test-rights", (USER,)))


@pytest.fixture
def installed(admin: Admin) -> Account:
    trainjob_lab.install(Kubectl(admin.spec))
    define(Kubectl(admin.spec))
    kubectl = Kubectl(admin.spec, HOME)
    kubectl("apply", "-k", str(MANIFESTS / "overlays" / "kubernetes"))
    return with_token(kubectl, HOME)


def granted() -> set[Right]:
    """What the manifests give, resource names aside."""
    rights = MANIFESTS / "rights/cluster"
    files = (rights / "rights.yaml", rights / "metrics.yaml", MANIFESTS / "base/leases.yaml")
    rules = [rule for file in files for rule in next(yaml.safe_load_all(file.read_text()))["rules"]]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def asked(spec: Spec) -> tuple[set[Right], list[str]]:
    """What was asked for, and what of it was refused."""
    used: set[Right] = set()
    refused = []
    for line in (spec.state / "log" / "audit.log").read_text().splitlines():
        event = json.loads(line)
        place = event.get("objectRef", {})
        if "resource" not in place:
            continue
        resource = "/".join(filter(None, (place["resource"], place.get("subresource", ""))))
        used.add((place.get("apiGroup", ""), resource, event["verb"]))
        if event.get("responseStatus", {}).get("code") == 403:
            refused.append(f"{event['verb']} {event['requestURI']}")
    return used, refused


@pytest.mark.timeout(400, func_only=True)
def test_the_controller_uses_each_of_its_rights_and_misses_none(
    admin: Admin, kubelet: Kubelet, installed: Account, tmp_path: Path
) -> None:
    config = installed.kubeconfig(tmp_path)
    lock = f"--lock-namespace={HOME}"
    port = free_port()
    flags = (lock, "--secure-metrics", f"--metrics-port={port}", "--gang-scheduling=volcano")
    with Controller(config, *flags) as controller:
        # Known, and without the right: both reviews are asked for.
        assert ask_metrics(port, f"Bearer {installed.token}")[0] == 403
        _fail_suspend_resume_succeed(admin, kubelet)
        _meet_taken_names(admin)
        _keep_closed(admin)
        _gangs(admin)
        _train(admin)
        submit(admin, job(1, "handed-over"))
        until(admin, "Running", "handed-over")
        assert '"logger":"mpi_trainer.runtime.workers","msg":"failed' not in controller.log()
    test_takeover.begin(admin, "Running")
    with Controller(config, lock):
        eventually("it is followed", lambda: test_takeover.labels(admin) >= _FOLLOWED)
        _succeed(admin, kubelet, "handed-over")
        submit(admin, job(1, "held"))
        until(admin, "Running", "held")
    with Controller(config, lock, "--release", wait=False) as releasing:
        assert releasing.process is not None
        assert releasing.process.wait(120) == 0
    used, refused = asked(admin.spec)
    assert refused == []
    assert used | BY_ADMISSION == granted()


def _fail_suspend_resume_succeed(admin: Admin, kubelet: Kubelet) -> None:
    submit(admin, job(2, backoffLimit=3, cleanPodPolicy="All", ttlSecondsAfterFinished=0))
    until(admin, "Running")
    admin.patch(f"{JOBS}/mpijobs/pi", {"spec": {"slotsPerWorker": 2}})
    kubelet.exit(_launcher(admin, "pi"), 1)
    until(admin, "Restarting")
    until(admin, "Running", seconds=90)
    admin.change(suspend=True)
    until(admin, "Suspended")
    eventually("no pods", lambda: not admin.pods())
    admin.change(suspend=False)
    until(admin, "Running", seconds=90)
    kubelet.exit(_launcher(admin, "pi"))
    eventually("deleted by its TTL", lambda: admin.get(f"{JOBS}/mpijobs/pi") is None)
    eventually("its files went", lambda: admin.get("api/v1/configmaps/pi-config") is None)
    eventually("its name is free", lambda: admin.get("api/v1/services/pi") is None)


def _train(admin: Admin) -> None:
    """A TrainJob that rests, goes on and is deleted by its TTL, one past its deadline, and one
    whose name is taken."""
    of_cluster = {**trainjob_lab.runtime("rights-used", {}), "kind": "ClusterTrainingRuntime"}
    admin.call("POST", "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes", of_cluster)
    admin.create(f"{TRAIN}/trainingruntimes", trainjob_lab.mpi_runtime())
    ttl = {"annotations": {f"{trainjob_lab.OURS}/ttl-seconds-after-finished": "0"}}
    trainjob_lab.submit(admin, trainjob_lab.train_job("trained", suspend=True, metadata=ttl))
    trainjob_lab.until(admin, "Suspended", name="trained")
    trainjob_lab.job_set(admin, "trained")
    admin.patch(f"{TRAIN}/trainjobs/trained", {"spec": {"suspend": False}})
    trainjob_lab.until(admin, "Suspended", "False", "trained")
    trainjob_lab.end(admin, "Completed", "AllJobsCompleted", "trained")
    eventually("deleted by its TTL", lambda: admin.get(f"{TRAIN}/trainjobs/trained") is None)
    late = trainjob_lab.train_job("late", "rights-used", activeDeadlineSeconds=10)
    late["spec"]["runtimeRef"] = {"name": "rights-used"}
    trainjob_lab.submit(admin, late)
    trainjob_lab.job_set(admin, "late")
    trainjob_lab.until(admin, "Failed", name="late")
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    theirs = {**kind, "metadata": {"name": "theirs"}, "spec": {"replicatedJobs": []}}
    admin.create(f"{trainjob_lab.SETS}/jobsets", theirs)
    trainjob_lab.submit(admin, trainjob_lab.train_job("theirs"))
    trainjob_lab.until(admin, "Failed", name="theirs")


def _succeed(admin: Admin, kubelet: Kubelet, name: str) -> None:
    kubelet.exit(_launcher(admin, name))
    until(admin, "Succeeded", name)


def _launcher(admin: Admin, name: str) -> Object:
    label = "training.kubeflow.org/job-name"

    def found() -> Object | None:
        mine = (p for p in admin.pods("launcher") if p["metadata"]["labels"][label] == name)
        return next(mine, None)

    eventually(f"launcher of {name}", lambda: found() is not None)
    pod = found()
    assert pod is not None
    return pod


def _keep_closed(admin: Admin) -> None:
    """A policy that is changed, one that is surplus, and one whose name is taken."""
    closed = job(1, "closed")
    closed["metadata"]["annotations"] = {NETWORK_POLICY: "restricted"}
    submit(admin, closed)
    until(admin, "Running", "closed")
    path = f"{POLICIES}/closed-workers"
    before = admin.get(path)
    assert before is not None
    admin.patch(path, {"spec": {"ingress": [{}]}})
    eventually("put right", lambda: (admin.get(path) or {}).get("spec") == before["spec"])
    opened = {"metadata": {"annotations": {NETWORK_POLICY: "none"}}}
    admin.patch(f"{JOBS}/mpijobs/closed", opened)
    eventually("opened", lambda: admin.get(path) is None)
    anybody = {"podSelector": {}, "policyTypes": ["Ingress"]}
    admin.create(POLICIES, {"metadata": {"name": "shut-workers"}, "spec": anybody})
    submit(admin, {**closed, "metadata": {**closed["metadata"], "name": "shut"}})
    until(admin, "Failed", "shut")


def _gangs(admin: Admin) -> None:
    """PodGroups of both kinds: changed, suspended, and with a name that is taken."""
    gang = trainjob_lab.runtime("gang", {"torch": {}})
    gang["spec"]["podGroupPolicy"] = {"coscheduling": {}}
    admin.create(f"{trainjob_lab.TRAIN}/trainingruntimes", gang)
    submit(admin, job(1, "gang"))
    trainjob_lab.submit(admin, trainjob_lab.train_job("crew", "gang"))
    jobs = (f"{JOBS}/mpijobs/gang", {"runPolicy": {"suspend": True}})
    trains = (f"{trainjob_lab.TRAIN}/trainjobs/crew", {"suspend": True})
    groups = ((VOLCANO, "gang", jobs), (COSCHEDULING, "crew", trains))
    for path, name, (one, suspended) in groups:
        eventually("a group", lambda at=f"{path}/{name}": admin.get(at) is not None)  # type: ignore[misc]
        admin.patch(f"{path}/{name}", {"spec": {"minMember": 9}})
        eventually("put right", lambda p=path, n=name: spec(admin, n, p)["minMember"] < 9)  # type: ignore[misc]
        admin.patch(one, {"spec": suspended})
        eventually("no group", lambda at=f"{path}/{name}": admin.get(at) is None)  # type: ignore[misc]
        foreign(admin, path, "foreign", 1)
    submit(admin, job(1, "foreign"))
    until(admin, "Failed", "foreign")
    admin.delete(f"{JOBS}/mpijobs/foreign")
    trainjob_lab.submit(admin, trainjob_lab.train_job("foreign", "gang"))
    trainjob_lab.until(admin, "Failed", name="foreign")


def _meet_taken_names(admin: Admin) -> None:
    pod = {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}
    mine = {"metadata": {"name": "taken-worker-0", "labels": {"mine": "yes"}}, "spec": pod}
    admin.create("api/v1/pods", mine)
    admin.create(
        "apis/batch/v1/jobs",
        {
            "metadata": {"name": "alone-launcher"},
            "spec": {"suspend": True, "template": {"spec": pod}},
        },
    )
    submit(admin, job(1, "taken"))
    submit(admin, job(0, "alone"))
    for name in ("taken", "alone"):
        eventually(
            f"{name} is refused",
            lambda name=name: any(  # type: ignore[misc]
                "already exists" in text and name in text for _, _, text in admin.events()
            ),
        )
