"""The parts that serve MPIJobs, put together."""

from __future__ import annotations

import time
from typing import Any, Final

from mpi_trainer.api.kinds.labels import LABEL_OPERATOR, MPI_OPERATOR
from mpi_trainer.api.kinds.mpijob import KIND, MPIJob
from mpi_trainer.api.validation.worker_limits import WorkerLimits
from mpi_trainer.api.yaml import load
from mpi_trainer.controller import stored_job, stored_pods
from mpi_trainer.controller.decoded_jobs import DecodedJobs, with_schedule_timeout
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.events import record_unreadable
from mpi_trainer.controller.flags import Flags
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.kept_children import KeptChildren
from mpi_trainer.controller.mpijob.apply import Writer
from mpi_trainer.controller.mpijob.log_tail import LogTails
from mpi_trainer.controller.mpijob.reconcile import Reconciler, Stores, Tools
from mpi_trainer.controller.mpijob.suspicions import Suspicions
from mpi_trainer.controller.mpijob.wakeups import Wakeups
from mpi_trainer.controller.objects import POD_SECONDS, Job, Pod, StoredJob
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.controller.wiring import Loop, Shared, kept_reflectors, workers_of
from mpi_trainer.kube.resources import JOBS, MPIJOBS, PODS, Resource
from mpi_trainer.render.frame import Facts
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.job_metrics import MPIJobMetrics, PresentMPIJobs
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.store import Store

NAME: Final = "mpijob"
OURS: Final = f"{LABEL_OPERATOR}={MPI_OPERATOR}"


def loop(flags: Flags, shared: Shared, stores: Stores) -> Loop:
    watched: dict[Resource, Store[Any]] = {
        MPIJOBS: stores.mpijobs,
        PODS: stores.pods,
        JOBS: stores.jobs,
        **stores.kept,
    }
    freshness: Freshness[Key, Resource] = Freshness(watched, time.monotonic)
    shared.metrics.registry.register(PresentMPIJobs(stores.mpijobs, shared.leading))
    memories, logs = JobMemories(), PodLogs(shared.client)
    dependents = Dependents(shared.writer, memories, shared.scripts, key_type=flags.ssh_key_type)
    reconciler = Reconciler(
        stores,
        Tools(
            memories=memories,
            jobs=DecodedJobs(
                MPIJob, load.job, memories, with_schedule_timeout(flags.schedule_timeout)
            ),
            scripts=shared.scripts,
            dependents=dependents,
            writer=Writer(shared.writer, dependents, freshness, shared.concurrency),
            kept=_kept(shared, stores, freshness),
            log_tails=LogTails(logs, memories, flags.log_tail),
            suspicions=Suspicions(logs, memories),
            recorder=shared.recorder,
            metrics=MPIJobMetrics(shared.metrics.registry),
            concurrency=shared.concurrency,
            facts=Facts(domain=flags.cluster_domain, isolation=flags.isolation, gang=shared.gang),
            limits=WorkerLimits(most=flags.max_workers),
        ),
    )
    queue, workers = workers_of(NAME, reconciler.reconcile, freshness.fresh, shared, flags.workers)
    wakeups = Wakeups(queue, stores.mpijobs, stores.pods)
    return Loop(workers, _reflectors(flags, shared, stores, wakeups))


def _kept(shared: Shared, stores: Stores, freshness: Freshness[Key, Resource]) -> KeptChildren:
    writes = GuardedWrites(shared.writer, MPIJOBS, freshness, shared.concurrency)
    return KeptChildren(shared.writer, writes, freshness, stores.kept, KIND)


def _reflectors(
    flags: Flags, shared: Shared, stores: Stores, wakeups: Wakeups
) -> list[Reflector[Any]]:
    found: list[Reflector[Any]] = []
    client = shared.client
    for namespace in flags.namespaces or ("",):
        found += [
            Reflector(
                client,
                MPIJOBS,
                StoredJob,
                stores.mpijobs,
                namespace=namespace,
                on_change=wakeups.job_changed,
                on_unreadable=record_unreadable(shared.recorder),
                keep=stored_job.kept_mpijob,
            ),
            Reflector(
                client,
                PODS,
                Pod,
                stores.pods,
                labels=OURS,
                namespace=namespace,
                on_change=wakeups.pod_changed,
                keep=stored_pods.kept_pod,
                gather=POD_SECONDS,
            ),
            Reflector(
                client,
                JOBS,
                Job,
                stores.jobs,
                labels=OURS,
                namespace=namespace,
                on_change=wakeups.launcher_job_changed,
                keep=stored_pods.kept_job,
            ),
            *kept_reflectors(client, stores.kept, OURS, namespace, wakeups.kept_child_changed),
        ]
    return found
