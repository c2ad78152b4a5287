"""`python -m mpi_trainer.controller`: the process that serves MPIJobs on a cluster."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
import uuid
from collections.abc import Sequence
from typing import Any

from mpi_trainer.controller import flags as command_line
from mpi_trainer.controller import guard
from mpi_trainer.controller.apply import Hands
from mpi_trainer.controller.flags import Flags
from mpi_trainer.controller.furniture import Furniture
from mpi_trainer.controller.jobs import Jobs
from mpi_trainer.controller.mpijob import MPIJobs, Stores, Tools
from mpi_trainer.controller.objects import Job, Pod, StoredJob
from mpi_trainer.controller.pace import Pace
from mpi_trainer.controller.release import release_all
from mpi_trainer.controller.tails import Tails
from mpi_trainer.controller.wakeups import Wakeups
from mpi_trainer.kube import config
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.resources import JOBS, MPIJOBS, PODS, Resource
from mpi_trainer.layout.mpijob import LABEL_OPERATOR
from mpi_trainer.runtime import logs
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.jobmetrics import JobMetrics
from mpi_trainer.runtime.leases import Claim, Elector
from mpi_trainer.runtime.manager import Manager, Parts
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.probes import Probes
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.workers import Settings, Workers
from mpi_trainer.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

PARALLEL = 64
COMPONENT = "mpi-job-controller"
OURS = f"{LABEL_OPERATOR}=mpi-operator"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit code."""
    flags = command_line.parse(sys.argv[1:] if arguments is None else arguments)
    logs.set_up(flags.log_level)
    for name in flags.ignored:
        log.info("--%s has no effect here", name)
    if flags.gang_scheduling:
        log.warning("--gang-scheduling has no effect yet: pods are scheduled one by one")
    try:
        return asyncio.run(_run(flags))
    except (KubeError, guard.UpstreamRuns) as error:
        log.error("%s", error)
        return 1


async def _run(flags: Flags) -> int:
    metrics = Metrics()
    server = config.load(kubeconfig=flags.kubeconfig or None, context=flags.context or None)
    observe = metrics.observe_call(server.server)
    async with (
        Client(server, observe=observe, parallel=PARALLEL) as client,
        # The lease is not renewed behind a queue of other calls.
        Client(server, observe=observe, parallel=2) as aside,
    ):
        if flags.release:
            return await release_all(client, flags.namespaces)
        if not flags.beside_upstream:
            await guard.check(client, flags.lock_namespace)
        identity = f"{socket.gethostname()}_{guard.MARK}_{uuid.uuid4().hex[:12]}"
        elector = _elector(flags, aside, metrics, identity)
        return await Manager(_parts(flags, client, metrics, identity, elector)).run()


def _parts(
    flags: Flags, client: Client, metrics: Metrics, identity: str, elector: Elector | None
) -> Parts:
    writer = client.until(elector.remaining) if elector else client
    stores, recorder = Stores.empty(), Recorder(writer, COMPONENT, identity, metrics)
    freshness: Freshness[Key, Resource] = Freshness(
        {MPIJOBS: stores.mpijobs, PODS: stores.pods, JOBS: stores.jobs}, time.monotonic
    )
    furniture = Furniture(writer)
    loop = MPIJobs(
        stores,
        Tools(
            jobs=Jobs(flags.schedule_timeout),
            furniture=furniture,
            hands=Hands(writer, furniture, freshness, Pace()),
            tails=Tails(client, flags.log_tail),
            recorder=recorder,
            metrics=JobMetrics(metrics.registry),
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
        settings=Settings(workers=flags.workers),
    )
    return Parts(
        metrics=metrics,
        probes=Probes(metrics, ports=flags.ports),
        reflectors=_reflectors(flags, client, stores, Wakeups(queue)),
        workers=[workers],
        recorder=recorder,
        elector=elector,
    )


def _elector(flags: Flags, client: Client, metrics: Metrics, identity: str) -> Elector | None:
    if not flags.leader_elect:
        return None
    name = guard.MARK if flags.beside_upstream else guard.LEASE
    return Elector(client, Claim(flags.lock_namespace, name, identity, *flags.lease), metrics)


def _reflectors(
    flags: Flags, client: Client, stores: Stores, wake: Wakeups
) -> list[Reflector[Any]]:
    found: list[Reflector[Any]] = []
    for place in flags.namespaces or ("",):
        found += [
            Reflector(
                client, MPIJOBS, StoredJob, stores.mpijobs, namespace=place, on_change=wake.mpijob
            ),
            Reflector(
                client, PODS, Pod, stores.pods, labels=OURS, namespace=place, on_change=wake.pod
            ),
            Reflector(
                client, JOBS, Job, stores.jobs, labels=OURS, namespace=place, on_change=wake.job
            ),
        ]
    return found
