"""One client for training jobs of every kind: list, get, wait, suspend, delete (AC-17)."""

from __future__ import annotations

import asyncio
import json
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.kinds.runtime import to_wire as runtime_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.sdk import event_loop
from mpi_trainer.sdk.backends.backend import Key
from openshift_ai_sdk.training import (
    JobError,
    JobExists,
    JobNotFound,
    RuntimeNotFound,
    RuntimeRef,
    TrainingClient,
    TrainJob,
    TrainJobClient,
    TrainJobSpec,
    connect,
)
from tests.api.admin import JOBS, Admin, Object, Refusal
from tests.api.lab import admin, served
from tests.api.running import job
from tests.cluster import Kubectl, eventually
from tools.cluster.spec import Spec

__all__ = ["admin", "served"]

CRDS = Path(__file__).parents[3] / "manifests/crds"
RUNTIME = Path(__file__).parents[3] / "src/mpi_trainer/local/runtimes/mpi-openmpi-cpu.yaml"
TRAIN = "apis/trainer.kubeflow.org/v1alpha1"
OLDER = "apis/kubeflow.org/v1"


def definition(kind: str) -> Object:
    """One of the training operator's older kinds, as far as our reading of them needs it."""
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
        "subresources": {"status": {}},
    }
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def every_kind(served: Spec) -> Iterator[Spec]:
    kubectl = Kubectl(served)
    kubectl("apply", "--server-side", "-k", str(CRDS))
    kubectl.apply(definition("PyTorchJob"))
    for plural in ("trainjobs", "pytorchjobs"):
        eventually(plural, lambda p=plural: not kubectl.attempt("get", p).returncode)  # type: ignore[misc]
    yield served
    kubectl("delete", "crd", "pytorchjobs.kubeflow.org")


@pytest.fixture
def client(every_kind: Spec, admin: Admin) -> TrainingClient:
    """With an MPIJob, a TrainJob and a PyTorchJob in its namespace."""
    admin.create(f"{JOBS}/mpijobs", job(name="mpi"))
    train: Object = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "train"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 3}},
    }
    admin.create(f"{TRAIN}/trainjobs", train)
    torch: Object = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "torch"},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}},
    }
    admin.create(f"{OLDER}/pytorchjobs", torch)
    backend = connect(kubeconfig=every_kind.kubeconfig, namespace=admin.namespace)
    return TrainingClient(backend=backend)


def holds(kind: str, **more: Any) -> Object:
    time = "2026-01-31T12:00:00Z"
    return {
        "type": kind,
        "status": "True",
        "reason": "R",
        "message": "m",
        "lastTransitionTime": time,
        **more,
    }


def test_one_list_has_jobs_of_every_kind(client: TrainingClient) -> None:
    found = {one.key.name: (one.kind, one.state, one.workers) for one in client.list_jobs()}
    assert found == {
        "mpi": ("MPIJob", "Created", 2),
        "train": ("TrainJob", "Created", 3),
        "torch": ("PyTorchJob", "Created", 3),
    }


def test_state_of_each_is_told_in_the_same_words(client: TrainingClient, admin: Admin) -> None:
    counts = {"ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    running = {"status": {"jobsStatus": [{"name": "node", **counts}]}}
    admin.patch(f"{TRAIN}/trainjobs/train/status", running)
    assert client.get_job_status("train").state == "Running"
    admin.patch(f"{TRAIN}/trainjobs/train/status", {"status": {"conditions": [holds("Complete")]}})
    ended = client.wait_for_job_completion("train", timeout=60)
    assert ended.succeeded and ended.completed is not None
    failed = {"status": {"conditions": [holds("Failed", message="exit code 3")]}}
    admin.patch(f"{OLDER}/pytorchjobs/torch/status", failed)
    with pytest.raises(RuntimeError, match="exit code 3"):
        client.wait_for_job_completion("torch", timeout=60)


def test_each_is_suspended_where_its_kind_has_it(client: TrainingClient, admin: Admin) -> None:
    for name in ("train", "torch"):
        client.suspend_job(name)
    train, torch = admin.get(f"{TRAIN}/trainjobs/train"), admin.get(f"{OLDER}/pytorchjobs/torch")
    assert train is not None and train["spec"]["suspend"] is True
    assert torch is not None and torch["spec"]["runPolicy"]["suspend"] is True


def test_finished_job_is_run_anew_as_what_it_is(client: TrainingClient, admin: Admin) -> None:
    admin.patch(f"{TRAIN}/trainjobs/train/status", {"status": {"conditions": [holds("Complete")]}})
    before = admin.get(f"{TRAIN}/trainjobs/train")
    client.restart_job("train")
    after = admin.get(f"{TRAIN}/trainjobs/train")
    assert before is not None and after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"] == before["spec"] and "status" not in after


def test_a_job_that_ended_while_it_was_suspended_is_run_anew_and_runs(
    client: TrainingClient, admin: Admin
) -> None:
    over = {"status": {"conditions": [holds("Complete")]}}
    admin.patch(f"{TRAIN}/trainjobs/train", {"spec": {"suspend": True}})
    admin.patch(f"{TRAIN}/trainjobs/train/status", over)
    client.restart_job("train")
    after = admin.get(f"{TRAIN}/trainjobs/train")
    assert after is not None and not after["spec"].get("suspend")


JOB = f"{TRAIN}/trainjobs/train"


def slow_to_go(admin: Admin) -> Object:
    """The job, ended, and such that its deletion waits for us."""
    admin.patch(f"{JOB}/status", {"status": {"conditions": [holds("Complete")]}})
    return admin.patch(JOB, {"metadata": {"finalizers": ["example.com/slow"]}})


async def going_restart(client: TrainingClient, admin: Admin) -> asyncio.Future[Any]:
    """A restart whose old job is on its way out."""
    work = asyncio.ensure_future(client.backend.restart(Key(admin.namespace, "train")))
    going = lambda: "deletionTimestamp" in (admin.get(JOB) or {})["metadata"]  # noqa: E731
    await asyncio.to_thread(eventually, "it goes", going)
    return work


def test_a_restart_that_is_interrupted_does_not_lose_the_job(
    client: TrainingClient, admin: Admin
) -> None:
    """Ctrl-C while the old one is on its way out."""
    old = slow_to_go(admin)

    async def interrupted() -> None:
        work = await going_restart(client, admin)
        work.cancel()
        await asyncio.sleep(0.2)
        await asyncio.to_thread(admin.patch, JOB, {"metadata": {"finalizers": None}})
        with pytest.raises(asyncio.CancelledError):
            await work

    event_loop.run(interrupted())
    new = admin.get(JOB)
    assert new is not None and new["metadata"]["uid"] != old["metadata"]["uid"]


def test_whoever_cannot_wait_for_a_restart_is_told_where_the_job_is_kept(
    client: TrainingClient,
    admin: Admin,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A second Ctrl-C ends the making, and the old one is going already."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    slow_to_go(admin)

    async def interrupted() -> None:
        work = await going_restart(client, admin)
        for _ in range(2):
            work.cancel()
            await asyncio.sleep(0.2)  # the work hears of each
        with pytest.raises(asyncio.CancelledError):
            await work
        await asyncio.sleep(0.1)
        left = {getattr(one.get_coro(), "__qualname__", "") for one in asyncio.all_tasks()}
        assert "replace_job" not in left, "nothing makes the job behind its user's back"

    event_loop.run(interrupted())
    admin.patch(JOB, {"metadata": {"finalizers": None}})
    (kept,) = tmp_path.iterdir()
    assert f"kept in {kept}" in capfd.readouterr().err
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    eventually("it is gone", lambda: admin.get(JOB) is None)
    admin.create(f"{TRAIN}/trainjobs", json.loads(kept.read_text()))


def test_what_kueue_wrote_into_a_job_is_not_submitted_again(
    client: TrainingClient, admin: Admin
) -> None:
    """Kueue puts its patch into every new TrainJob itself, and two of one manager are refused."""
    own = {"manager": "me.example.com/mine", "trainingRuntimeSpec": {}}
    patches = [own, {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {}}]
    admin.patch(f"{TRAIN}/trainjobs/train", {"spec": {"runtimePatches": patches}})
    admin.patch(f"{TRAIN}/trainjobs/train/status", {"status": {"conditions": [holds("Complete")]}})
    client.restart_job("train")
    after = admin.get(f"{TRAIN}/trainjobs/train")
    assert after is not None
    assert [one["manager"] for one in after["spec"]["runtimePatches"]] == [own["manager"]]


def test_a_job_that_would_be_refused_now_is_not_deleted_for_its_restart(
    client: TrainingClient, admin: Admin
) -> None:
    policies = "/apis/admissionregistration.k8s.io/v1"
    here = {"matchLabels": {"kubernetes.io/metadata.name": admin.namespace}}
    rule = {
        "apiGroups": ["trainer.kubeflow.org"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["trainjobs"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
        "validations": [{"expression": "false", "message": "no more of these"}],
    }
    bound = {"policyName": admin.namespace, "validationActions": ["Deny"]}
    named = {"metadata": {"name": admin.namespace}}
    before = admin.get(f"{TRAIN}/trainjobs/train")
    assert before is not None
    copy = {**before, "metadata": {"name": "copy"}}

    def in_force() -> bool:
        try:
            admin.create(f"{TRAIN}/trainjobs", copy)
        except Refusal as refusal:
            return "no more of these" in str(refusal)
        admin.delete(f"{TRAIN}/trainjobs/copy")
        return False

    admin.call("POST", f"{policies}/validatingadmissionpolicies", {**named, "spec": spec})
    admin.call("POST", f"{policies}/validatingadmissionpolicybindings", {**named, "spec": bound})
    try:
        eventually("the policy is in force", in_force)
        over = {"status": {"conditions": [holds("Complete")]}}
        admin.patch(f"{TRAIN}/trainjobs/train/status", over)
        with pytest.raises(JobError, match="no more of these"):
            client.restart_job("train")
    finally:
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            admin.call("DELETE", f"{policies}/{kind}/{admin.namespace}")
    after = admin.get(f"{TRAIN}/trainjobs/train")
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def test_each_is_deleted_and_its_logs_are_empty_without_pods(
    client: TrainingClient, admin: Admin
) -> None:
    for name in ("mpi", "train", "torch"):
        assert list(client.get_job_logs(name)) == []
        client.delete_job(name)
        with pytest.raises(JobNotFound, match=f"{admin.namespace}/{name}"):
            client.get_job(name)
    assert client.list_jobs() == ()


def test_pruning_clears_away_mpijobs_only(client: TrainingClient, admin: Admin) -> None:
    ended = {"conditions": [holds("Succeeded")], "completionTime": "2026-01-31T12:00:00Z"}
    for path in (f"{JOBS}/mpijobs/mpi", f"{OLDER}/pytorchjobs/torch"):
        admin.patch(f"{path}/status", {"status": ended})
    gone = event_loop.run(client.backend.prune(admin.namespace, 60))
    assert [key.name for key in gone] == ["mpi"]
    assert {*client.list_jobs().names} == {"train", "torch"}


def test_manifest_is_the_kind_s_own(client: TrainingClient, admin: Admin) -> None:
    found = event_loop.run(client.backend.get(Key(admin.namespace, "train"))).manifest
    assert (found["kind"], found["spec"]["trainer"]) == ("TrainJob", {"numNodes": 3})


def test_client_for_trainjobs_never_means_an_mpijob_of_the_name(
    client: TrainingClient, admin: Admin
) -> None:
    admin.create(f"{JOBS}/mpijobs", job(name="train"))
    trains = TrainJobClient(backend=client.backend)
    assert trains.list().names == ["train"]
    found = trains.get("train")
    assert found.spec.trainer is not None and found.spec.trainer.num_nodes == 3
    admin.patch(f"{TRAIN}/trainjobs/train/status", {"status": {"conditions": [holds("Complete")]}})
    assert found.wait_for_completion(timeout=60) == "Succeeded" == trains.status("train").state
    assert client.get_job_status("train").state == "Created"
    with pytest.raises(JobNotFound, match=f"job {admin.namespace}/mpi not found"):
        TrainJob.get("mpi", admin.namespace, backend=client.backend)
    with pytest.raises(JobExists, match="/train already exists"):
        trains.create(TrainJobSpec(RuntimeRef(name="torch-distributed")), name="train")
    trains.delete("train")
    assert admin.get(f"{TRAIN}/trainjobs/train") is None
    assert admin.get(f"{JOBS}/mpijobs/train") is not None


def test_runtimes_of_the_namespace_come_before_the_cluster_s(
    client: TrainingClient, admin: Admin, every_kind: Spec
) -> None:
    with pytest.raises(RuntimeNotFound, match="ClusterTrainingRuntime mine not found"):
        client.get_runtime("mine")
    (shipped,) = load.objects(RUNTIME.read_text(), "runtime").runtimes
    kubectl = Kubectl(every_kind, admin.namespace)
    common: Object = {**runtime_wire(shipped), "metadata": {"name": "mine"}}
    own: Object = {**common, "kind": "TrainingRuntime"}
    own["metadata"] = {"name": "mine", "namespace": admin.namespace}
    kubectl.apply(common, own)
    try:
        listed = [one for one in client.list_runtimes() if one.name == "mine"]
        assert [one.kind for one in listed] == ["TrainingRuntime", "ClusterTrainingRuntime"]
        assert client.get_runtime("mine") == listed[0]
        assert client.get_runtime("mine", kind="ClusterTrainingRuntime") == listed[1]
        assert (listed[0].framework, listed[0].num_nodes) == ("mpi", 1)
        trained = client.train(print_number, runtime="mine", num_nodes=2, func_args={"number": 7})
        stored = admin.get(f"{TRAIN}/trainjobs/{trained.name}")
        assert stored is not None
        assert stored["spec"]["runtimeRef"]["kind"] == "TrainingRuntime"
        words = stored["spec"]["trainer"]["command"]
        assert words[:3] == ["mpirun", "-n", "2"] and '{"number": 7}' in words[-1]
    finally:
        kubectl("delete", "clustertrainingruntime", "mine")


def print_number(number: int) -> None:
    print(number)
