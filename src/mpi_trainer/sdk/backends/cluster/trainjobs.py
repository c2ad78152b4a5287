"""A new TrainJob on the cluster, with a runtime that must be there already."""

from __future__ import annotations

from mpi_trainer.api.kinds.runtime import NAMESPACED, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob, to_wire
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Forbidden, KubeError, NotFound
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS
from mpi_trainer.sdk.backends.backend import JobView, Key
from mpi_trainer.sdk.backends.cluster.connections import Home
from mpi_trainer.sdk.backends.cluster.defaults import with_ranks
from mpi_trainer.sdk.backends.cluster.kinds import TRAINJOB


async def create(home: Home, key: Key, job: TrainJob) -> JobView | None:
    """None where its API, or its runtime, is not there for us."""
    wanted = requests.get(CLUSTER_TRAINING_RUNTIMES, "", job.spec.runtime_ref.name)
    try:
        runtime = decode(Runtime, await home.call(wanted)).value
    except (NotFound, Forbidden):
        return None
    return await _sent(home, key, with_ranks(job, runtime))


async def submit(home: Home, key: Key, job: TrainJob, *, dry_run: bool = False) -> JobView:
    """The job with the ranks of its runtime where we may read that; whether it is there at all is
    the server's to say."""
    local = job.spec.runtime_ref.kind == NAMESPACED
    resource = TRAINING_RUNTIMES if local else CLUSTER_TRAINING_RUNTIMES
    namespace = key.namespace if local else ""
    try:
        found = await home.call(requests.get(resource, namespace, job.spec.runtime_ref.name))
    except KubeError:
        return await _sent(home, key, job, dry_run=dry_run)
    return await _sent(home, key, with_ranks(job, decode(Runtime, found).value), dry_run=dry_run)


async def _sent(home: Home, key: Key, job: TrainJob, *, dry_run: bool = False) -> JobView:
    body = to_wire(job)
    body.pop("status", None)
    body["metadata"]["namespace"] = key.namespace
    request = requests.submit(TRAINJOBS, key.namespace, body, dry_run=dry_run)
    return TRAINJOB.view(await home.call(request))
