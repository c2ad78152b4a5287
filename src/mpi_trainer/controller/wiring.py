"""What the loops of both kinds share in one process, and what each kind's wiring gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from mpi_trainer.controller.agent_scripts import AgentScripts
from mpi_trainer.controller.kept_children import KeptStores, kept_child
from mpi_trainer.controller.objects import KeptChild
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube.client import Client
from mpi_trainer.render.frame import Endpoint
from mpi_trainer.render.gang.model import GangSettings
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.reflector import OnChange, Reflector
from mpi_trainer.runtime.workers import Result, Workers, WorkerSettings
from mpi_trainer.runtime.workqueue import WorkQueue


class Shared(msgspec.Struct, frozen=True):
    """`writer` sends nothing past the lease. `endpoint` is where training programs report their
    progress, if anywhere."""

    client: Client
    writer: Client
    metrics: Metrics
    recorder: Recorder
    concurrency: WriteConcurrency
    scripts: AgentScripts
    endpoint: Endpoint | None = None
    gang: GangSettings = GangSettings()
    leading: Callable[[], bool] = lambda: True


class Loop(NamedTuple):
    """What serves one kind of job; the reflectors fill its stores."""

    workers: Workers[Key]
    reflectors: list[Reflector[Any]]


def kept_reflectors(
    client: Client, stores: KeptStores, labels: str, namespace: str, on_change: OnChange
) -> list[Reflector[KeptChild]]:
    """Of one namespace, or of all; `labels` are those of one kind's jobs."""
    return [
        Reflector(
            client,
            resource,
            KeptChild,
            store,
            labels=labels,
            namespace=namespace,
            on_change=on_change,
            keep=kept_child,
        )
        for resource, store in stores.items()
    ]


def workers_of(
    name: str,
    reconcile: Callable[[Key], Awaitable[Result]],
    fresh: Callable[[Key], bool],
    shared: Shared,
    count: int,
) -> tuple[WorkQueue[Key], Workers[Key]]:
    """The queue of one kind and the workers that empty it; `name` is theirs in the metrics."""
    queue: WorkQueue[Key] = WorkQueue(observer=shared.metrics.queue(name))
    settings = WorkerSettings(workers=count)
    return queue, Workers(name, queue, reconcile, shared.metrics, fresh=fresh, settings=settings)
