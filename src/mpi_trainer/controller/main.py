"""`python -m mpi_trainer.controller`: the process that serves a cluster's MPIJobs and TrainJobs."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mpi_trainer.api.kinds.labels import LABEL_OPERATOR, MPI_OPERATOR
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import load
from mpi_trainer.controller import flags as command_line
from mpi_trainer.controller import other_controllers, stored_job, stored_pods, warmup
from mpi_trainer.controller.agent_scripts import AgentScripts, Times
from mpi_trainer.controller.decoded_jobs import DecodedJobs, with_schedule_timeout
from mpi_trainer.controller.dependents import Dependents
from mpi_trainer.controller.events import record_unreadable
from mpi_trainer.controller.flags import Flags
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob.apply import Writer
from mpi_trainer.controller.mpijob.log_tail import LogTails
from mpi_trainer.controller.mpijob.reconcile import Reconciler, Stores, Tools
from mpi_trainer.controller.mpijob.release import release_all
from mpi_trainer.controller.mpijob.wakeups import Wakeups
from mpi_trainer.controller.objects import POD_SECONDS, Job, Pod, StoredJob
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.controller.statusserver import server
from mpi_trainer.controller.trainjob import discovery, wiring
from mpi_trainer.controller.trainjob.wiring import Shared
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube import config
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.resources import JOBS, MPIJOBS, PODS, TRAINJOBS, Resource
from mpi_trainer.render.frame import Endpoint
from mpi_trainer.runtime import logs, metrics_server, shared_certificates
from mpi_trainer.runtime.certificates import Chain
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.job_metrics import MPIJobMetrics
from mpi_trainer.runtime.leases import Claim, Elector
from mpi_trainer.runtime.manager import Manager, Parts
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.probes import Probes
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.shared_certificates import SharedChain
from mpi_trainer.runtime.workers import Workers, WorkerSettings
from mpi_trainer.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

PARALLEL = 64
COMPONENT = "mpi-job-controller"
SCRIPTS = "agent-scripts"
OURS = f"{LABEL_OPERATOR}={MPI_OPERATOR}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit code."""
    flags = command_line.parse(sys.argv[1:] if arguments is None else arguments)
    logs.set_up(flags.log_level)
    for name in flags.ignored:
        log.info("--%s has no effect here", name)
    if flags.gang_scheduling:
        log.warning(
            "--gang-scheduling=%s has no effect yet: pods are scheduled one by one, and each job "
            "that sets minAvailable, minResources or priorityClass is told so",
            flags.gang_scheduling,
        )
    try:
        return asyncio.run(_run(flags))
    except (KubeError, other_controllers.UpstreamRuns) as error:
        log.error("%s", error)
        return 1


async def _run(flags: Flags) -> int:
    metrics = Metrics()
    target = config.load(kubeconfig=flags.kubeconfig or None, context=flags.context or None)
    observe = metrics.observe_call(target.server)
    async with (
        Client(target, observe=observe, parallel=PARALLEL) as client,
        # The lease is not renewed behind a queue of other calls.
        Client(target, observe=observe, parallel=2) as aside,
    ):
        if flags.release:
            return await release_all(client, flags.namespaces)
        if not flags.beside_upstream:
            await other_controllers.check(client, flags.lock_namespace)
        lacking = await discovery.missing(client) if flags.trainjobs else ()
        _tell(lacking)
        if flags.trainjobs and not lacking:
            await other_controllers.check_trainer(client, flags.lock_namespace)
        identity = f"{socket.gethostname()}_{other_controllers.MARK}_{uuid.uuid4().hex[:12]}"
        serves = flags.status_port if not lacking else 0
        kept = _certificates(flags, client)
        chain = await kept.current() if serves else None
        elector = _elector(flags, aside, metrics, identity)
        writer = client.until(elector.remaining) if elector else client
        shared = Shared(
            client=client,
            writer=writer,
            metrics=metrics,
            recorder=Recorder(writer, COMPONENT, identity, metrics),
            pace=WriteConcurrency(),
            scripts=_scripts(flags, writer, metrics),
            endpoint=_endpoint(flags, chain),
        )
        manager = Manager(_parts(flags, shared, elector, flags.trainjobs and not lacking))
        warmup.run()
        waiting = (
            asyncio.create_task(discovery.until_served(aside, manager.stop)) if lacking else None
        )
        try:
            async with (
                _secure_metrics(flags, metrics, client),
                _reports(client, kept, serves),
            ):
                return await manager.run()
        finally:
            if waiting is not None:
                waiting.cancel()


@asynccontextmanager
async def _secure_metrics(flags: Flags, metrics: Metrics, client: Client) -> AsyncIterator[None]:
    if not flags.secure_metrics:
        yield
        return
    async with (
        metrics_server.server_context(flags.metrics_cert_dir) as context,
        metrics_server.serve(metrics, client, context, flags.secure_metrics),
    ):
        yield


def _certificates(flags: Flags, client: Client) -> SharedChain:
    """Of the status endpoint; pods trust its authority for as long as they live."""
    place, service = flags.lock_namespace, flags.status_service
    return SharedChain(client, place, f"{service}-cert", (f"{service}.{place}.svc",))


def _endpoint(flags: Flags, chain: Chain | None) -> Endpoint | None:
    if chain is None:
        return None
    host = f"{flags.status_service}.{flags.lock_namespace}.svc"
    return Endpoint(f"https://{host}:{flags.status_port}", chain.bundle.decode())


@asynccontextmanager
async def _reports(client: Client, kept: SharedChain, port: int) -> AsyncIterator[None]:
    if not port:
        yield
        return
    async with (
        shared_certificates.server_context(kept) as context,
        server.serve(client, context, port),
    ):
        yield


def _tell(lacking: Sequence[Resource]) -> None:
    for one in lacking:
        log.warning(
            "TrainJobs are not served: the API server has no %s; install %s and they will be",
            f"{one.plural}.{one.group}",
            "the definitions in manifests/crds" if one is TRAINJOBS else "JobSet",
        )


def _parts(flags: Flags, shared: Shared, elector: Elector | None, trainjobs: bool) -> Parts:
    stores = Stores.empty()
    workers, reflectors = _mpijobs(flags, shared, stores)
    scripts = shared.scripts
    loops = [workers, Workers(SCRIPTS, scripts.queue, scripts.reconcile, shared.metrics)]
    if trainjobs:
        more, watched = wiring.parts(flags, shared, stores.mpijobs)
        loops.append(more)
        reflectors += watched
    return Parts(
        metrics=shared.metrics,
        probes=Probes(None if flags.secure_metrics else shared.metrics, ports=flags.ports),
        reflectors=reflectors,
        workers=loops,
        recorder=shared.recorder,
        elector=elector,
    )


def _mpijobs(
    flags: Flags, shared: Shared, stores: Stores
) -> tuple[Workers[Key], list[Reflector[Any]]]:
    client, metrics = shared.client, shared.metrics
    freshness: Freshness[Key, Resource] = Freshness(
        {MPIJOBS: stores.mpijobs, PODS: stores.pods, JOBS: stores.jobs}, time.monotonic
    )
    memories = JobMemories()
    furniture = Dependents(shared.writer, memories, shared.scripts)
    loop = Reconciler(
        stores,
        Tools(
            memories=memories,
            scripts=shared.scripts,
            jobs=DecodedJobs(
                MPIJob, load.job, memories, with_schedule_timeout(flags.schedule_timeout)
            ),
            furniture=furniture,
            hands=Writer(shared.writer, furniture, freshness, shared.pace),
            tails=LogTails(PodLogs(client), memories, flags.log_tail),
            recorder=shared.recorder,
            metrics=MPIJobMetrics(metrics.registry),
            pace=shared.pace,
            domain=flags.cluster_domain,
        ),
    )
    queue: WorkQueue[Key] = WorkQueue(observer=metrics.queue("mpijob"))
    workers = Workers(
        "mpijob",
        queue,
        loop.reconcile,
        metrics,
        fresh=freshness.fresh,
        settings=WorkerSettings(workers=flags.workers),
    )
    return workers, _reflectors(flags, shared, stores, Wakeups(queue, stores.mpijobs, stores.pods))


def _scripts(flags: Flags, writer: Client, metrics: Metrics) -> AgentScripts:
    queue: WorkQueue[Key] = WorkQueue(observer=metrics.queue(SCRIPTS))
    return AgentScripts(writer, queue, times=Times(keep=flags.scripts_keep))


def _elector(flags: Flags, client: Client, metrics: Metrics, identity: str) -> Elector | None:
    if not flags.leader_elect:
        return None
    name = other_controllers.MARK if flags.beside_upstream else other_controllers.LEASE
    return Elector(client, Claim(flags.lock_namespace, name, identity, *flags.lease), metrics)


def _reflectors(
    flags: Flags, shared: Shared, stores: Stores, wake: Wakeups
) -> list[Reflector[Any]]:
    found: list[Reflector[Any]] = []
    client = shared.client
    for place in flags.namespaces or ("",):
        found += [
            Reflector(
                client,
                MPIJOBS,
                StoredJob,
                stores.mpijobs,
                namespace=place,
                on_change=wake.mpijob,
                on_unreadable=record_unreadable(shared.recorder),
                keep=stored_job.mpijob,
            ),
            Reflector(
                client,
                PODS,
                Pod,
                stores.pods,
                labels=OURS,
                namespace=place,
                on_change=wake.pod,
                keep=stored_pods.pod,
                gather=POD_SECONDS,
            ),
            Reflector(
                client,
                JOBS,
                Job,
                stores.jobs,
                labels=OURS,
                namespace=place,
                on_change=wake.job,
                keep=stored_pods.job,
            ),
        ]
    return found
