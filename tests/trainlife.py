"""The life of a TrainJob by the SDK: the same tests, wherever they run.

As `tests/lifecycle.py`, whose programs these jobs run, for jobs that are TrainJobs because they
were described role by role. Their launcher is a node (SC-004, AC-9, AC-17).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from mpi_trainer.sdk.code import functions
from openshift_ai_sdk.training import (
    AsyncTrainingClient,
    Event,
    JobExists,
    JobFailed,
    JobNotFound,
    JobTimeout,
    LogLine,
    MPIJob,
    MPIJobSpec,
    PodStatus,
    ReplicaSpec,
    RuntimeNotFound,
    TrainingClient,
    TrainJob,
    TrainJobClient,
    TrainJobSpec,
)
from openshift_ai_sdk.training import train as training_function
from tests.lifecycle import PATIENCE, begun, broken, reached, train, until


def described(program: Callable[..., None], *args: object, slots: int = 1) -> MPIJobSpec:
    """Two nodes on which every rank calls the function."""
    command = functions.command(functions.program(program, args, {}), "python")
    return MPIJobSpec(
        launcher=ReplicaSpec(command=command),
        worker=ReplicaSpec(replicas=2),
        slots_per_worker=slots,
    )


def submitted(name: str, spec: MPIJobSpec) -> MPIJob:
    return TrainingClient().create_mpi_job(spec, name=name)


def hosts(name: str) -> tuple[str, str]:
    """What only a TrainJob calls its pods."""
    return f"{name}-launcher-0-0", f"{name}-node-0-0"


def test_life_of_a_trainjob() -> None:
    """Create, watch, logs by rank, suspend, resume, restart, delete."""
    job = submitted("train-life", described(train, 40, 0.1, slots=2))
    begun(job)
    until("running", lambda: job.status.state == "Running")
    assert sorted(pod.role for pod in job.describe().pods) == ["launcher", "worker"]
    with pytest.raises(JobExists, match="train-life"):
        TrainingClient().create_mpi_job(described(train, 1), name="train-life")

    job.suspend()
    until("suspended", lambda: job.status.state == "Suspended")
    until("no pods", lambda: not job.describe().pods)
    job.resume()
    last = job.wait(timeout=PATIENCE)
    assert last.succeeded and last.progress is not None and last.progress.fraction == 1.0
    assert job.get_metrics().metrics["loss"] == pytest.approx(4 / 40, abs=1e-3)

    for rank in range(4):
        lines = [*job.logs(rank=rank)]
        assert {line.rank for line in lines} == {rank}
        assert f"rank {rank} of 4 on {hosts(job.name)[rank // 2]}" in lines[-1].text
    placed = {one.rank: one.pod for one in job.describe().ranks}
    assert placed == {rank: hosts(job.name)[rank // 2] for rank in range(4)}

    job.restart()
    assert not job.status.finished
    seen = [(state.state, state.progress and state.progress.step) for state in job.watch()]
    assert seen[-1] == ("Succeeded", 40.0)
    assert len({step for state, step in seen if state == "Running" and step}) > 1
    job.delete()
    with pytest.raises(JobNotFound, match=f"{job.namespace}/train-life"):
        job.get_status()


def test_life_of_a_trainjob_asynchronously() -> None:
    async def live() -> None:
        client = AsyncTrainingClient()
        job = await client.create_mpi_job(described(train, 40, 0.05), name="train-async")
        lines: list[LogLine] = []
        heard = asyncio.Event()

        async def follow() -> None:
            async for line in client.get_job_logs("train-async", follow=True):
                lines.append(line)
                heard.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(follow())
            await asyncio.wait_for(heard.wait(), PATIENCE)
            await job.suspend()
            await reached(job, "Suspended")
            await job.resume()
            ended = await client.wait_for_job_completion("train-async", timeout=PATIENCE)
            assert ended.succeeded
        assert {line.rank for line in lines if "rank " in line.text} == {0, 1}
        await client.restart_job("train-async")
        assert (await job.wait(timeout=PATIENCE)).succeeded
        assert (await client.list_jobs()).names == ["train-async"]
        assert {rank.pod for rank in (await job.describe()).ranks} == {*hosts("train-async")}
        await client.delete_job("train-async")
        with pytest.raises(JobNotFound):
            await client.get_job("train-async")

    asyncio.run(live())


def test_failure_of_a_trainjob_is_told_at_once_with_rank_and_reason() -> None:
    """SC-006."""
    job = submitted("train-bad", described(broken, 3, slots=2))
    with pytest.raises(JobFailed) as caught:
        job.wait(timeout=PATIENCE)
    assert f"rank 3 on {hosts(job.name)[1]}" in str(caught.value)
    log = "\n".join(line.text for line in job.logs(rank=3))
    assert 'raise ValueError("bad data in row 7")' in log


def test_trainjob_that_is_waited_for_in_vain_runs_on_until_it_is_deleted() -> None:
    """The wait that is over leaves it running; its deletion ends whoever follows it."""
    job = submitted("train-long", described(train, 100000, 0.05))
    begun(job)
    with pytest.raises(JobTimeout, match=r"within 0.5 seconds; it is Running"):
        job.wait(timeout=0.5)
    assert job.status.state == "Running"
    seen: list[str] = []

    def follow() -> None:
        seen.extend(line.text for line in job.logs(follow=True))

    follower = threading.Thread(target=follow)
    follower.start()
    until("it follows", lambda: bool(seen) or not follower.is_alive())
    TrainingClient().delete_job("train-long")
    follower.join(PATIENCE)
    assert not follower.is_alive()
    assert any("epoch 1/" in line for line in seen)


def test_trainjobs_have_a_client_and_a_class_of_their_own() -> None:
    """Create, get, list, wait, logs, events, delete; an MPIJob of the name is not meant."""
    client = TrainJobClient()
    other = MPIJob("other", workers=1, command=["true"]).create()
    command = functions.command(functions.program(train, [2], {}), "python")
    job = TrainJob("own", "mpi-openmpi-cpu", num_nodes=2, command=["mpirun", *command]).create()
    assert job.get_status() in ("Created", "Running", "Succeeded")
    assert client.list().names == ["own"]
    with pytest.raises(JobNotFound, match=f"{job.namespace}/other not found"):
        TrainJob.get(other.name)
    with pytest.raises(JobNotFound):
        client.delete(other.name)
    assert TrainJob.get("own").wait_for_completion(timeout=PATIENCE) == "Succeeded"
    found = client.get("own")
    assert found.spec.runtime_ref.name == "mpi-openmpi-cpu"
    assert {one.type for one in found.trainjob_status.conditions} == {"Complete"}
    assert "rank 1 of 2 on own-node-0-0" in found.get_logs() == job.get_logs()
    assert [line.rank for line in client.logs("own", rank=1)] == [1]
    # They are recorded beside what they tell of, and may come a moment after it.
    until("it has events", lambda: bool(client.events("own")))
    happened: list[Event] = [*client.events("own")]
    assert all(event.reason for event in happened)
    pods: tuple[PodStatus, ...] = found.describe().pods
    assert {pod.role for pod in pods} <= {"launcher", "worker"}
    with pytest.raises(JobExists, match=r"/own already exists"):
        client.create(TrainJobSpec(found.spec.runtime_ref, trainer=found.spec.trainer), name="own")
    client.delete("own")
    with pytest.raises(JobNotFound, match="not found"):
        client.get("own")
    other.delete()


def test_function_is_trained_on_the_nodes_of_a_runtime() -> None:
    """`train(func, runtime=…, num_nodes=…)`, as Kubeflow's users know it."""
    found = {one.name: one for one in TrainJobClient().list_runtimes()}
    assert found["mpi-openmpi-cpu"].framework == "mpi"
    assert TrainingClient().get_runtime("mpi-openmpi-cpu") == found["mpi-openmpi-cpu"]
    with pytest.raises(RuntimeNotFound, match="ClusterTrainingRuntime none not found"):
        training_function(train, runtime="none")
    job = training_function(
        train, runtime="mpi-openmpi-cpu", num_nodes=2, func_args={"epochs": 3, "text": "$(HOME) é"}
    )
    assert job.name.startswith("train-") and job.spec.trainer is not None
    assert job.spec.trainer.num_nodes == 2
    assert job.wait(timeout=PATIENCE, show=True).succeeded
    lines = {line.rank: line.text for line in job.logs(grep="^rank")}
    assert lines == {
        rank: f"rank {rank} of 2 on {hosts(job.name)[rank]} $(HOME) é" for rank in range(2)
    }
    job.delete()
