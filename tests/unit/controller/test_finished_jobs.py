"""Finished jobs by the thousand, through the real loop: cheap, and in nobody's way."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from typing import Any

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.controller import stored_job
from mpi_trainer.controller.agent_scripts import AgentScripts
from mpi_trainer.controller.decoded_jobs import DecodedJobs, with_schedule_timeout
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.kept_children import KeptChildren, KeptStores
from mpi_trainer.controller.mpijob import apply as mpijob_apply
from mpi_trainer.controller.mpijob import log_tail as mpijob_log_tail
from mpi_trainer.controller.mpijob import reconcile as mpijob_reconcile
from mpi_trainer.controller.mpijob.suspicions import Suspicions
from mpi_trainer.controller.mpijob.wakeups import Wakeups
from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.controller.statusserver.log_progress import LogProgress
from mpi_trainer.controller.statusserver.writes import ReportWrites
from mpi_trainer.controller.trainjob import apply as trainjob_apply
from mpi_trainer.controller.trainjob import log_tail as trainjob_log_tail
from mpi_trainer.controller.trainjob import reconcile as trainjob_reconcile
from mpi_trainer.controller.trainjob.pods import AllPods, PodOwners
from mpi_trainer.controller.trainjob.runtimes import Runtimes
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube.resources import JOBS, MPIJOBS, PODS, TRAINJOBS, Resource
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.job_metrics import MPIJobMetrics, TrainJobMetrics
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.workers import Result, Workers, WorkerSettings
from mpi_trainer.runtime.workqueue import WorkQueue

MANY = 600
WORKERS = 32
T0 = "2026-01-01T00:00:00Z"
ENV = [{"name": f"A{i}", "value": "b" * 60} for i in range(100)]
POD = {"spec": {"containers": [{"name": "c", "image": "x", "env": ENV}]}}
SPEC = {
    "runPolicy": {"cleanPodPolicy": "Running"},
    "mpiReplicaSpecs": {"Launcher": {"template": POD}, "Worker": {"replicas": 4, "template": POD}},
}


def job(number: int, *ends: str) -> StoredJob:
    meta = {"name": f"job-{number}", "namespace": "lab", "uid": f"u{number}", "generation": 1}
    meta |= {"resourceVersion": str(number + 1), "creationTimestamp": T0}
    told = [
        {"type": kind, "status": "True", "lastTransitionTime": T0} for kind in ("Created", *ends)
    ]
    status = {
        "conditions": told,
        "startTime": T0,
        "completionTime": T0,
        "lastReconcileTime": T0,
        "replicaStatuses": {"Launcher": {"succeeded": 1}, "Worker": {}},
    }
    raw = msgspec.json.encode({"metadata": meta, "spec": SPEC, "status": status})
    return stored_job.kept_mpijob(msgspec.json.decode(raw, type=StoredJob))


class Nobody:
    """An API server that is not to be asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def call(self, request: Any, kind: Any) -> Any:
        self.asked.append(request)
        raise AssertionError(f"asked for {request}")


def kept(
    server: Any, freshness: Freshness[Key, Resource], stores: KeptStores, kind: Resource
) -> KeptChildren:
    writes = GuardedWrites(server, kind, freshness, WriteConcurrency())
    return KeptChildren(server, writes, freshness, stores, kind.kind)


class Scene:
    def __init__(self) -> None:
        self.stores, self.memories, metrics = (
            mpijob_reconcile.Stores.empty(),
            JobMemories(),
            Metrics(),
        )
        self.server = Nobody()
        server: Any = self.server
        freshness: Freshness[Key, Resource] = Freshness(
            {MPIJOBS: self.stores.mpijobs, PODS: self.stores.pods, JOBS: self.stores.jobs},
            time.monotonic,
        )
        scripts = AgentScripts(server, WorkQueue())
        dependents, concurrency = Dependents(server, self.memories, scripts), WriteConcurrency()
        self.loop = mpijob_reconcile.Reconciler(
            self.stores,
            mpijob_reconcile.Tools(
                memories=self.memories,
                jobs=DecodedJobs(MPIJob, load.job, self.memories, with_schedule_timeout(300)),
                dependents=dependents,
                scripts=scripts,
                writer=mpijob_apply.Writer(server, dependents, freshness, concurrency),
                kept=kept(server, freshness, self.stores.kept, MPIJOBS),
                log_tails=mpijob_log_tail.LogTails(PodLogs(server), self.memories),
                suspicions=Suspicions(PodLogs(server), self.memories),
                recorder=Recorder(server, "x", "y", metrics),
                metrics=MPIJobMetrics(metrics.registry),
                concurrency=concurrency,
            ),
        )
        self.looks: list[str] = []
        self.queue: WorkQueue[Key] = WorkQueue()
        self.wake = Wakeups(self.queue, self.stores.mpijobs, self.stores.pods)
        settings = WorkerSettings(workers=WORKERS)
        self.workers = Workers("mpijob", self.queue, self.look, metrics, settings=settings)

    async def look(self, key: Key) -> Result:
        self.looks.append(key.name)
        return await self.loop.reconcile(key)

    def add(self, one: StoredJob) -> None:
        self.stores.mpijobs.put(one)
        self.wake.job_changed(None, one)


def test_each_has_one_look_that_asks_nobody_and_the_loop_goes_on_beside() -> None:
    """C-1: three thousand of them stalled the loop for 8 to 16 s, and the lease was lost."""

    async def run() -> None:
        scene = Scene()
        for number in range(MANY):
            scene.add(job(number, "Succeeded" if number % 2 else "Failed"))
        working = asyncio.create_task(scene.workers.run())
        turns = 0
        while len(scene.looks) < MANY:
            turns += 1
            await asyncio.sleep(0)
        scene.queue.close()
        await working
        assert turns >= MANY // WORKERS
        assert len(scene.looks) == MANY
        assert scene.queue.delayed() == 0
        assert scene.server.asked == []
        assert len(scene.memories) == 0, "C-9: nothing is remembered of them"

    asyncio.run(run())


def test_the_plan_of_a_trainjob_is_dropped_at_its_end() -> None:
    """C-9: plans of ended TrainJobs were kept for ever, 22 to 142 KB each."""

    async def run() -> None:
        server: Any = Nobody()
        stores = trainjob_reconcile.Stores.beside(mpijob_reconcile.Stores.empty().mpijobs)
        memories, metrics = JobMemories(), Metrics()
        scripts = AgentScripts(server, WorkQueue())
        dependents, runtimes = Dependents(server, memories, scripts), Runtimes(server, memories)
        freshness: Freshness[Key, Resource] = Freshness({}, time.monotonic)
        concurrency, all_pods = WriteConcurrency(), AllPods(server)
        pod_owners = PodOwners(server, memories)
        tools = trainjob_reconcile.Tools(
            memories=memories,
            jobs=DecodedJobs(TrainJob, load.train_job, memories),
            scripts=scripts,
            runtimes=runtimes,
            dependents=dependents,
            all_pods=all_pods,
            pod_owners=pod_owners,
            log_tails=trainjob_log_tail.LogTails(PodLogs(server), all_pods, pod_owners),
            log_progress=LogProgress(
                server, PodLogs(server), pod_owners, memories, ReportWrites(server)
            ),
            writer=trainjob_apply.Writer(server, runtimes, dependents, freshness, concurrency),
            kept=kept(server, freshness, stores.kept, TRAINJOBS),
            concurrency=concurrency,
            recorder=Recorder(server, "x", "y", metrics),
            metrics=TrainJobMetrics(metrics.registry),
        )
        key = Key("lab", "train")
        memories.begin(key, "u")
        memories.part("u", trainjob_reconcile._Noted).plan = trainjob_reconcile._Plan(1, None)
        told = [{"type": "Complete", "status": "True", "lastTransitionTime": T0}]
        raw = {
            "metadata": {"name": "train", "namespace": "lab", "uid": "u", "generation": 1},
            "spec": {"runtimeRef": {"name": "torch"}},
            "status": {"conditions": told},
        }
        whole = msgspec.json.decode(msgspec.json.encode(raw), type=StoredJob)
        stores.trainjobs.put(stored_job.kept_trainjob(whole))
        await trainjob_reconcile.Reconciler(stores, tools).reconcile(key)
        assert len(memories) == 0
        assert server.asked == []

    asyncio.run(run())


def test_little_memory_is_held_by_each() -> None:
    """C-1: however large its spec is."""
    scene = Scene()
    scene.stores.mpijobs.put(job(0, "Succeeded"))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1, MANY + 1):
            scene.stores.mpijobs.put(job(number, "Succeeded"))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(scene.stores.mpijobs) == MANY + 1
    assert len(msgspec.json.encode(SPEC)) > 10_000
    assert (after - before) / MANY < 3_000
