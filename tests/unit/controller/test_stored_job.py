"""What the store keeps of jobs, and how soon they are looked at."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.annotations import ATTEMPTS
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_ROLE
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.controller import stored_job
from mpi_trainer.controller.decoded_jobs import DecodedJobs
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob import record
from mpi_trainer.controller.mpijob.wakeups import BY_JOB, Wakeups
from mpi_trainer.controller.objects import Job, Pod, StoredJob
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.store import Store, by_label
from mpi_trainer.runtime.workqueue import WorkQueue
from tests.unit.runtime.fake_time import now, run_in_fake_time

POLICY = {"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 60, "managedBy": "x"}
ENV = [{"name": f"A{i}", "value": "b" * 100} for i in range(100)]
POD = {"spec": {"containers": [{"name": "c", "image": "i", "env": ENV}]}}
SPEC = {
    "runPolicy": {**POLICY, "backoffLimit": 3},
    "mpiReplicaSpecs": {"Launcher": {"template": POD}, "Worker": {"replicas": 2, "template": POD}},
}


def job(name: str, *holds: str, spec: Any = SPEC, status: Any = None) -> StoredJob:
    told = [{"type": kind, "status": "True"} for kind in ("Created", *holds)]
    meta = {
        "name": name,
        "namespace": "lab",
        "uid": name,
        "labels": {"team": "x" * 60},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "x" * 10_000,
            "mpi-trainer.opendatahub.io/record": '{"attempt":2}',
        },
    }
    whole = {"metadata": meta, "spec": spec, "status": status or {"conditions": told}}
    return msgspec.json.decode(msgspec.json.encode(whole), type=StoredJob)


def test_of_a_job_that_has_ended_little_is_kept() -> None:
    """C-1: and all that is still to do for it can be done with that."""
    kept = stored_job.kept_mpijob(job("done", "Succeeded"))
    assert kept.finished
    assert len(msgspec.json.encode(kept)) < 1000
    loaded = DecodedJobs(MPIJob, load.job, JobMemories()).load(kept)
    policy = loaded.job.spec.run_policy
    assert loaded.errors == ()
    assert (policy.clean_pod_policy, policy.ttl_seconds_after_finished) == ("Running", 60)
    assert policy.managed_by == "x"
    assert [one.type for one in loaded.job.status.conditions] == ["Created", "Succeeded"]
    assert list(loaded.job.metadata.annotations) == ["mpi-trainer.opendatahub.io/record"]


def test_of_a_trainjob_that_has_ended_its_runtime_is_known() -> None:
    spec = {"runtimeRef": {"name": "torch"}, "managedBy": "me", "trainer": {"env": ENV}}
    kept = stored_job.kept_trainjob(job("done", "Complete", spec=spec))
    assert kept.finished
    loaded = DecodedJobs(TrainJob, load.train_job, JobMemories()).load(kept)
    assert loaded.job.spec.runtime_ref.name == "torch"
    assert loaded.job.spec.managed_by == "me"


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(job("runs", "Running"), id="running"),
        pytest.param(job("new", status={"conditions": None}), id="odd-status"),
        pytest.param(job("odd", "Succeeded", spec={"runPolicy": 5}), id="odd-spec"),
        pytest.param(
            msgspec.structs.replace(job("runs", "Running"), finished=True), id="says-so-itself"
        ),
    ],
)
def test_any_other_job_is_kept_whole(one: StoredJob) -> None:
    kept = stored_job.kept_mpijob(one)
    assert not kept.finished
    assert bytes(kept.spec) == bytes(one.spec)
    ours = {"mpi-trainer.opendatahub.io/record": '{"attempt":2}'}
    assert kept.metadata == msgspec.structs.replace(one.metadata, annotations=ours)


def test_last_words_of_attempts_are_kept_of_jobs_under_way_only() -> None:
    """W-7: a cluster may keep ten thousand failed jobs, and nobody here reads their words."""
    for state, there in (("Running", True), ("Failed", False)):
        one = job("spoke", state)
        one.metadata.annotations[ATTEMPTS] = "[]"  # type: ignore[index]
        assert (ATTEMPTS in stored_job.kept_mpijob(one).metadata.annotations) is there


def test_of_a_spec_that_is_too_large_little_is_kept_and_the_job_is_invalid() -> None:
    """S-15, W-7: 370 suspended jobs of 1.4 MB took all the memory that the controller has."""
    spec = {**SPEC, "x": "y" * 1_400_000}
    kept = stored_job.kept_mpijob(job("large", spec=spec))
    assert len(msgspec.json.encode(kept)) < 1000
    loaded = DecodedJobs(MPIJob, load.job, JobMemories()).load(kept)
    assert loaded.job.spec.run_policy.managed_by == "x", "another's job stays another's"
    (error,) = loaded.errors
    assert f"spec: Too long: has {len(msgspec.json.encode(spec))} bytes as JSON" in str(error)
    assert "at most 262144 (256 KiB) are read; move scripts and data" in str(error)


def test_spec_nested_too_deeply_is_invalid_and_not_decoded() -> None:
    """S-3."""
    deep = msgspec.Raw(b'{"a":' * 500 + b"1" + b"}" * 500)
    kept = stored_job.kept_mpijob(job("deep", spec={**SPEC, "x": deep}))
    (error,) = DecodedJobs(MPIJob, load.job, JobMemories()).load(kept).errors
    assert "is nested 501 levels deep, and at most 100 are read" in str(error)


def test_long_spec_is_read_beside_the_event_loop() -> None:
    """S-15: and `load` finds it read."""
    threads: list[bool] = []

    def read(data: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return load.job(data)

    async def run() -> None:
        memories = JobMemories()
        jobs = DecodedJobs(MPIJob, read, memories)
        for name, size in (("short", 10), ("long", 100_000)):
            meta = msgspec.structs.replace(job(name).metadata, generation=1)
            memories.begin(Key("lab", name), name)
            kept = stored_job.kept_mpijob(job(name, spec={"x": "y" * size}))
            kept = msgspec.structs.replace(kept, metadata=meta)
            await jobs.prepare(kept)
            assert jobs.load(kept).errors

    asyncio.run(run())
    assert threads == [True, False]


def test_annotations_take_no_more_room_than_they_may() -> None:
    one = job("noted")
    many = {f"mpi-trainer.opendatahub.io/{n}": "x" for n in range(10_000)}
    large = {"mpi-trainer.opendatahub.io/record": "x" * 200_000}
    for notes in (many, large):
        meta = msgspec.structs.replace(one.metadata, annotations=notes)
        kept = stored_job.kept_mpijob(msgspec.structs.replace(one, metadata=meta))
        assert len(msgspec.json.encode(kept.metadata)) < 20_000
    with pytest.raises(record.UnreadableRecord, match="more than 16384 characters"):
        record.read(kept.metadata.annotations)


@pytest.mark.parametrize("holds", ["Running", "Succeeded"])
def test_what_is_kept_does_not_hold_the_page_that_it_came_with(holds: str) -> None:
    """C-8: forty jobs that stayed held 161 MB."""
    page = msgspec.json.encode([job("one", holds), job("two", holds)])
    before = sys.getrefcount(page)
    items = msgspec.json.decode(page, type=list[StoredJob])
    assert sys.getrefcount(page) > before
    kept = [stored_job.kept_mpijob(one) for one in items]
    del items
    assert sys.getrefcount(page) == before
    assert len(kept) == 2


def test_a_mpijob_does_not_end_as_a_trainjob_does() -> None:
    assert not stored_job.kept_mpijob(job("x", "Complete")).finished
    assert not stored_job.kept_trainjob(job("x", "Succeeded")).finished


def order(*told: Any) -> list[str]:
    """The names of jobs in the order in which they are looked at, after so many changes."""

    async def run() -> list[str]:
        store: Store[StoredJob] = Store()
        queue: WorkQueue[Key] = WorkQueue()
        wake = Wakeups(queue, store, Store({BY_JOB: by_label(LABEL_JOB)}))
        for old, new in told:
            kept = None if new is None else stored_job.kept_mpijob(new)
            if kept is not None:
                store.put(kept)
            wake.job_changed(None if old is None else stored_job.kept_mpijob(old), kept)
        names = []
        while queue.depth(urgent=True) or queue.depth(urgent=False):
            key = await queue.get()
            names.append(key.name)
            queue.done(key)
        return names

    return asyncio.run(run())


def test_new_and_running_jobs_go_before_those_that_had_ended() -> None:
    """C-1: also when the controller starts and everything is new to it."""
    found = order(
        *((None, job(f"done-{i}", "Succeeded")) for i in range(5)),
        (None, job("new")),
        (None, job("runs", "Running")),
        (job("ends", "Running"), job("ends", "Failed")),
        (job("gone", "Failed"), None),
    )
    assert found[:4] == ["new", "runs", "ends", "gone"]
    assert len(found) == 9


def test_what_finished_jobs_left_does_not_make_them_urgent() -> None:
    async def run() -> None:
        store: Store[StoredJob] = Store()
        queue: WorkQueue[Key] = WorkQueue()
        wake = Wakeups(queue, store, Store({BY_JOB: by_label(LABEL_JOB)}))
        labels = {"training.kubeflow.org/job-role": "launcher"}
        for name, end in (("done", "Succeeded"), ("runs", "Running")):
            store.put(stored_job.kept_mpijob(job(name, end)))
        for name in ("done", "runs", "unknown"):
            meta = {
                "name": name,
                "namespace": "lab",
                "labels": {**labels, "training.kubeflow.org/job-name": name},
            }
            wake.pod_changed(None, msgspec.convert({"metadata": meta}, Pod))
            wake.launcher_job_changed(None, msgspec.convert({"metadata": meta}, Job))
        assert (queue.depth(urgent=True), queue.depth(urgent=False)) == (1, 2)
        assert (await queue.get()).name == "runs"

    asyncio.run(run())


@pytest.mark.parametrize(("workers", "seconds"), [(10, 0.05), (2000, 0.5)])
def test_changes_of_workers_are_gathered_the_longer_the_more_there_are(
    workers: int, seconds: float
) -> None:
    """P-3: every look sees every pod; a job of thousands has not twenty of them in a second."""

    async def scenario() -> None:
        jobs: Store[StoredJob] = Store()
        pods: Store[Pod] = Store({BY_JOB: by_label(LABEL_JOB)})
        queue: WorkQueue[Key] = WorkQueue()
        wake = Wakeups(queue, jobs, pods)
        jobs.put(stored_job.kept_mpijob(job("large", "Running")))
        for number in range(workers):
            labels = {LABEL_JOB: "large", LABEL_ROLE: "worker"}
            meta = {"name": f"w{number}", "namespace": "lab", "uid": str(number), "labels": labels}
            pods.put(msgspec.convert({"metadata": meta}, Pod))
        began = now()
        wake.pod_changed(None, next(iter(pods)))
        assert await queue.get() == Key("lab", "large")
        assert now() - began == pytest.approx(seconds)

    run_in_fake_time(scenario())


@pytest.mark.parametrize(
    "policy",
    [{"ttlSecondsAfterFinished": -1}, {"ttlSecondsAfterFinished": 10**12}, {"cleanPodPolicy": "x"}],
)
def test_an_ended_job_with_an_invalid_policy_is_kept_whole(policy: dict[str, object]) -> None:
    """It was refused for that; to act upon it would delete the job before anybody reads why."""
    status = {"conditions": [{"type": "Failed", "status": "True"}]}
    kept = stored_job.kept_mpijob(
        StoredJob(
            spec=msgspec.Raw(msgspec.json.encode({"runPolicy": policy})),
            status=msgspec.Raw(msgspec.json.encode(status)),
        )
    )
    assert not kept.finished
