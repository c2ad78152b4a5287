"""The parts that serve TrainJobs, put together."""

from __future__ import annotations

import time
from typing import Any, Final

from mpi_trainer.api.kinds.labels import LABEL_TRAINJOB
from mpi_trainer.api.kinds.trainjob import KIND, TrainJob
from mpi_trainer.api.validation.worker_limits import WorkerLimits
from mpi_trainer.api.yaml import load
from mpi_trainer.controller import stored_job, stored_pods
from mpi_trainer.controller.decoded_jobs import DecodedJobs
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.events import record_unreadable
from mpi_trainer.controller.flags import Flags
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.kept_children import KeptChildren
from mpi_trainer.controller.objects import POD_SECONDS, JobSet, Pod, StoredJob
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.controller.statusserver.log_progress import LogProgress
from mpi_trainer.controller.statusserver.writes import ReportWrites
from mpi_trainer.controller.trainjob.apply import Writer
from mpi_trainer.controller.trainjob.log_tail import LogTails
from mpi_trainer.controller.trainjob.pods import AllPods, PodOwners
from mpi_trainer.controller.trainjob.reconcile import Reconciler, Stores, Tools
from mpi_trainer.controller.trainjob.runtimes import Runtimes
from mpi_trainer.controller.trainjob.wakeups import Wakeups
from mpi_trainer.controller.wiring import Loop, Shared, kept_reflectors, workers_of
from mpi_trainer.kube.resources import JOBSETS, PODS, TRAINJOBS, Resource
from mpi_trainer.render.frame import Facts
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.job_metrics import PresentTrainJobs, TrainJobMetrics
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.reflector import Reflector

NAME: Final = "trainjob"
_ENDED: Final = "status.phase!=Pending,status.phase!=Running"


def loop(flags: Flags, shared: Shared, stores: Stores) -> Loop:
    freshness: Freshness[Key, Resource] = Freshness(
        {TRAINJOBS: stores.trainjobs, JOBSETS: stores.jobsets, **stores.kept}, time.monotonic
    )
    shared.metrics.registry.register(PresentTrainJobs(stores.trainjobs, shared.leading))
    memories = JobMemories()
    client, writer = shared.client, shared.writer
    dependents = Dependents(writer, memories, shared.scripts, KIND, flags.ssh_key_type)
    runtimes = Runtimes(writer, memories)
    all_pods, pod_owners = AllPods(client), PodOwners(client, memories)
    logs = PodLogs(client)
    reconciler = Reconciler(
        stores,
        Tools(
            memories=memories,
            jobs=DecodedJobs(TrainJob, load.train_job, memories),
            scripts=shared.scripts,
            runtimes=runtimes,
            dependents=dependents,
            all_pods=all_pods,
            pod_owners=pod_owners,
            log_tails=LogTails(logs, all_pods, pod_owners, flags.log_tail),
            log_progress=LogProgress(client, logs, pod_owners, memories, ReportWrites(writer)),
            writer=Writer(writer, runtimes, dependents, freshness, shared.concurrency),
            kept=_kept(shared, stores, freshness),
            concurrency=shared.concurrency,
            recorder=shared.recorder,
            metrics=TrainJobMetrics(shared.metrics.registry),
            facts=Facts(
                domain=flags.cluster_domain,
                endpoint=shared.endpoint,
                isolation=flags.isolation,
                gang=shared.gang,
            ),
            only=frozenset(flags.runtimes),
            schedule_timeout=flags.schedule_timeout,
            limits=WorkerLimits(most=flags.max_workers),
        ),
    )
    queue, workers = workers_of(NAME, reconciler.reconcile, freshness.fresh, shared, flags.workers)
    return Loop(workers, _reflectors(flags, shared, stores, Wakeups(queue, stores.trainjobs)))


def _kept(shared: Shared, stores: Stores, freshness: Freshness[Key, Resource]) -> KeptChildren:
    writes = GuardedWrites(shared.writer, TRAINJOBS, freshness, shared.concurrency)
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
                TRAINJOBS,
                StoredJob,
                stores.trainjobs,
                namespace=namespace,
                on_change=wakeups.job_changed,
                on_unreadable=record_unreadable(shared.recorder),
                keep=stored_job.kept_trainjob,
            ),
            Reflector(
                client,
                JOBSETS,
                JobSet,
                stores.jobsets,
                namespace=namespace,
                on_change=wakeups.jobset_changed,
            ),
            Reflector(
                client,
                PODS,
                Pod,
                stores.ended_pods,
                labels=LABEL_TRAINJOB,
                fields=_ENDED,
                namespace=namespace,
                on_change=wakeups.ended_pod_changed,
                keep=stored_pods.kept_pod,
                gather=POD_SECONDS,
            ),
            *kept_reflectors(
                client, stores.kept, LABEL_TRAINJOB, namespace, wakeups.kept_child_changed
            ),
        ]
    return found
