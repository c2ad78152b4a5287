"""The parts that serve TrainJobs, put together."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from mpi_trainer.api.kinds.labels import LABEL_TRAINJOB
from mpi_trainer.api.kinds.trainjob import KIND, TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.controller import stored_job, stored_pods
from mpi_trainer.controller.agent_scripts import AgentScripts
from mpi_trainer.controller.decoded_jobs import DecodedJobs
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.events import record_unreadable
from mpi_trainer.controller.flags import Flags
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.objects import POD_SECONDS, Pod, StoredJob
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.controller.statusserver.log_progress import LogProgress
from mpi_trainer.controller.statusserver.writes import ReportWrites
from mpi_trainer.controller.trainjob.apply import Writer
from mpi_trainer.controller.trainjob.log_tail import LogTails
from mpi_trainer.controller.trainjob.objects import ENDED, JobSet
from mpi_trainer.controller.trainjob.pods import AllPods, PodOwners
from mpi_trainer.controller.trainjob.reconcile import Reconciler, Stores, Tools
from mpi_trainer.controller.trainjob.runtimes import Runtimes
from mpi_trainer.controller.trainjob.wakeups import Wakeups
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import JOBSETS, PODS, TRAINJOBS, Resource
from mpi_trainer.render.frame import Endpoint, Facts
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.job_metrics import TrainJobMetrics
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workers import Workers, WorkerSettings
from mpi_trainer.runtime.workqueue import WorkQueue


class Shared(msgspec.Struct, frozen=True):
    """What all loops of the process share. `writer` sends nothing past the lease. `endpoint` is
    where training programs tell their progress, if anywhere."""

    client: Client
    writer: Client
    metrics: Metrics
    recorder: Recorder
    pace: WriteConcurrency
    scripts: AgentScripts
    endpoint: Endpoint | None = None


def parts(
    flags: Flags, shared: Shared, mpijobs: Store[StoredJob]
) -> tuple[Workers[Key], list[Reflector[Any]]]:
    stores, writer = Stores.beside(mpijobs), shared.writer
    freshness: Freshness[Key, Resource] = Freshness(
        {TRAINJOBS: stores.trainjobs, JOBSETS: stores.jobsets}, time.monotonic
    )
    memories = JobMemories()
    furniture = Dependents(writer, memories, shared.scripts, KIND)
    runtimes = Runtimes(writer, memories)
    all_pods = AllPods(shared.client)
    ownership = PodOwners(shared.client, memories)
    logs = PodLogs(shared.client)
    loop = Reconciler(
        stores,
        Tools(
            memories=memories,
            scripts=shared.scripts,
            jobs=DecodedJobs(TrainJob, load.train_job, memories),
            runtimes=runtimes,
            furniture=furniture,
            all_pods=all_pods,
            ownership=ownership,
            words=LogTails(logs, all_pods, ownership, flags.log_tail),
            reading=LogProgress(shared.client, logs, ownership, memories, ReportWrites(writer)),
            hands=Writer(writer, runtimes, furniture, freshness, shared.pace),
            pace=shared.pace,
            recorder=shared.recorder,
            metrics=TrainJobMetrics(shared.metrics.registry),
            facts=Facts(domain=flags.cluster_domain, endpoint=shared.endpoint),
            only=frozenset(flags.runtimes),
            schedule_timeout=flags.schedule_timeout,
        ),
    )
    queue: WorkQueue[Key] = WorkQueue(observer=shared.metrics.queue("trainjob"))
    workers = Workers(
        "trainjob",
        queue,
        loop.reconcile,
        shared.metrics,
        fresh=freshness.fresh,
        settings=WorkerSettings(workers=flags.workers),
    )
    return workers, _reflectors(flags, shared, stores, Wakeups(queue, stores.trainjobs))


def _reflectors(
    flags: Flags, shared: Shared, stores: Stores, wake: Wakeups
) -> list[Reflector[Any]]:
    found: list[Reflector[Any]] = []
    client = shared.client
    for place in flags.namespaces or ("",):
        jobs, sets = stores.trainjobs, stores.jobsets
        found += [
            Reflector(
                client,
                TRAINJOBS,
                StoredJob,
                jobs,
                namespace=place,
                on_change=wake.trainjob,
                on_unreadable=record_unreadable(shared.recorder),
                keep=stored_job.trainjob,
            ),
            Reflector(client, JOBSETS, JobSet, sets, namespace=place, on_change=wake.jobset),
            Reflector(
                client,
                PODS,
                Pod,
                stores.ended_pods,
                labels=LABEL_TRAINJOB,
                fields=ENDED,
                namespace=place,
                on_change=wake.ended_pod,
                keep=stored_pods.pod,
                gather=POD_SECONDS,
            ),
        ]
    return found
