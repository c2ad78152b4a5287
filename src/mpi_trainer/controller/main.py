"""`python -m mpi_trainer.controller`: the process that serves a cluster's MPIJobs and TrainJobs."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mpi_trainer.controller import flags as command_line
from mpi_trainer.controller import other_controllers, warmup
from mpi_trainer.controller.agent_scripts import AgentScripts, Times
from mpi_trainer.controller.flags import Flags
from mpi_trainer.controller.mpijob import wiring as mpijob_wiring
from mpi_trainer.controller.mpijob.reconcile import Stores as MPIJobStores
from mpi_trainer.controller.mpijob.release import release_all
from mpi_trainer.controller.statusserver import server
from mpi_trainer.controller.trainjob import discovery
from mpi_trainer.controller.trainjob import wiring as trainjob_wiring
from mpi_trainer.controller.trainjob.reconcile import Stores as TrainJobStores
from mpi_trainer.controller.wiring import Shared
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube import config
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.resources import POD_GROUPS, Resource
from mpi_trainer.render.frame import Endpoint
from mpi_trainer.render.gang import pod_groups
from mpi_trainer.render.gang.model import GangSettings
from mpi_trainer.runtime import logs, metrics_server, shared_certificates
from mpi_trainer.runtime.certificates import Chain
from mpi_trainer.runtime.leases import Claim, Elector
from mpi_trainer.runtime.manager import Manager, Parts
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.probes import Probes
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.shared_certificates import SharedChain
from mpi_trainer.runtime.workers import Workers
from mpi_trainer.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

PARALLEL = 64
COMPONENT = "mpi-job-controller"
SCRIPTS = "agent-scripts"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit code."""
    flags = command_line.parse(sys.argv[1:] if arguments is None else arguments)
    logs.set_up(flags.log_level)
    for name in flags.ignored:
        log.info("--%s has no effect here", name)
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
        discovery.log_missing(lacking)
        if flags.trainjobs and not lacking:
            await other_controllers.check_trainer(client, flags.lock_namespace)
        unserved = await discovery.unserved(client, POD_GROUPS)
        settings = _gang(flags, unserved)
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
            concurrency=WriteConcurrency(),
            scripts=_scripts(flags, writer, metrics),
            endpoint=_endpoint(flags, chain),
            gang=settings,
            leading=lambda: elector is None or elector.leading,
        )
        manager = Manager(_parts(flags, shared, elector, flags.trainjobs and not lacking))
        warmup.run()
        changed = discovery.until_changed(aside, manager.stop, POD_GROUPS, unserved)
        waiting = [asyncio.create_task(changed)]
        if lacking:
            waiting.append(asyncio.create_task(discovery.until_served(aside, manager.stop)))
        try:
            async with (
                _secure_metrics(flags, metrics, client),
                _reports(client, kept, serves),
            ):
                return await manager.run()
        finally:
            for task in waiting:
                task.cancel()


@asynccontextmanager
async def _secure_metrics(flags: Flags, metrics: Metrics, client: Client) -> AsyncIterator[None]:
    if not flags.secure_metrics:
        yield
        return
    async with (
        metrics_server.server_context(flags.metrics_cert_dir) as context,
        metrics_server.serve(
            metrics,
            metrics_server.Access(metrics_server.asked_by_us(client)),
            context,
            flags.secure_metrics,
        ),
    ):
        yield


def _gang(flags: Flags, unserved: Sequence[Resource]) -> GangSettings:
    served = frozenset(one.group for one in POD_GROUPS if one not in unserved)
    settings = GangSettings(flags.gang_scheduling, served, flags.schedule_timeout)
    scheduler = pod_groups.mpijob_scheduler(settings)
    if scheduler is not None and scheduler.group not in served:
        log.warning("--gang-scheduling: %s; %s", scheduler.unserved, scheduler.install)
    return settings


def _certificates(flags: Flags, client: Client) -> SharedChain:
    """Of the status endpoint. Pods trust its authority for as long as they live."""
    namespace, service = flags.lock_namespace, flags.status_service
    return SharedChain(client, namespace, f"{service}-cert", (f"{service}.{namespace}.svc",))


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


def _parts(flags: Flags, shared: Shared, elector: Elector | None, trainjobs: bool) -> Parts:
    kinds = [one for one in POD_GROUPS if one.group in shared.gang.served]
    scripts, stores = shared.scripts, MPIJobStores.empty(kinds)
    loops = [mpijob_wiring.loop(flags, shared, stores)]
    if trainjobs:
        beside = TrainJobStores.beside(stores.mpijobs, kinds)
        loops.append(trainjob_wiring.loop(flags, shared, beside))
    return Parts(
        metrics=shared.metrics,
        probes=Probes(None if flags.secure_metrics else shared.metrics, ports=flags.ports),
        reflectors=[reflector for loop in loops for reflector in loop.reflectors],
        workers=[
            *(loop.workers for loop in loops),
            Workers(SCRIPTS, scripts.queue, scripts.reconcile, shared.metrics),
        ],
        recorder=shared.recorder,
        elector=elector,
    )


def _scripts(flags: Flags, writer: Client, metrics: Metrics) -> AgentScripts:
    queue: WorkQueue[Key] = WorkQueue(observer=metrics.queue(SCRIPTS))
    return AgentScripts(writer, queue, times=Times(keep=flags.scripts_keep))


def _elector(flags: Flags, client: Client, metrics: Metrics, identity: str) -> Elector | None:
    if not flags.leader_elect:
        return None
    name = other_controllers.MARK if flags.beside_upstream else other_controllers.LEASE
    return Elector(client, Claim(flags.lock_namespace, name, identity, *flags.lease), metrics)
