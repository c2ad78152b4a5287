"""The launcher Job that the public operator made for a job which is ours now.

Its Job has none of the labels that we watch ours by, and tries again by itself. One of which a pod
has ever run is given the labels, so that it is watched to its end; its ttlSecondsAfterFinished is
removed, because the Job could be deleted before anybody has seen its end. A Job that never ran, as
of every suspended job, is deleted by its uid: it would wait for ever, under the name of ours.
"""

from __future__ import annotations

import logging

from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_OPERATOR, MPI_OPERATOR
from mpi_trainer.api.kinds.pod_status import Condition
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, NotFound
from mpi_trainer.kube.resources import JOBS
from mpi_trainer.layout.hosts import launcher_name
from mpi_trainer.runtime.partial import Key, Meta, Partial

log = logging.getLogger(__name__)


class _Spec(Partial, frozen=True, gc=False):
    suspend: bool = False


class _Status(Partial, frozen=True, gc=False):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


class _Job(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class TakeOver:
    def __init__(self, client: Client, writes: GuardedWrites) -> None:
        self._client = client
        self._writes = writes

    async def launcher_job(self, owner: Meta) -> bool:
        """Sees to the Job of the MPIJob `owner`; whether anything was changed."""
        key, name = Key(owner.namespace, owner.name), launcher_name(owner.name)
        try:
            found = await self._client.call(requests.get(JOBS, owner.namespace, name), _Job)
        except NotFound:
            return False
        holder = found.metadata.controller()
        if holder is None or holder.uid != owner.uid or LABEL_OPERATOR in found.metadata.labels:
            return False
        if found.metadata.deletion_timestamp is not None:
            return False
        if _ran(found):
            await self._mark(key, found.metadata)
        else:
            await self._remove(key, found.metadata)
        return True

    async def _mark(self, key: Key, meta: Meta) -> None:
        log.info("following the launcher Job of another controller: %s", key)
        labels = {LABEL_OPERATOR: MPI_OPERATOR, LABEL_JOB: key.name}
        body = {
            "metadata": {"uid": meta.uid, "labels": labels},
            "spec": {"ttlSecondsAfterFinished": None},
        }
        request = requests.patch(JOBS, meta.namespace, meta.name, body, "merge")
        await self._writes.patch_child(key, JOBS, requests.brief(request))

    async def _remove(self, key: Key, meta: Meta) -> None:
        log.info("removing the launcher Job of another controller, which never ran: %s", key)
        request = requests.delete(
            JOBS, meta.namespace, meta.name, meta.uid, propagation="Foreground"
        )
        try:
            await self._client.call(request, None)
        except (NotFound, Conflict):
            return


def _ran(job: _Job) -> bool:
    status = job.status
    if job.spec.suspend and not status.conditions:
        return False
    return bool(status.active or status.succeeded or status.failed or status.conditions)
