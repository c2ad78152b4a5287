"""A new TrainJob on the cluster, with a runtime that must be there already."""

from __future__ import annotations

from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob, to_wire
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Forbidden, NotFound
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAINJOBS
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
    body = to_wire(with_ranks(job, runtime))
    body.pop("status", None)
    return TRAINJOB.view(await home.call(requests.submit(TRAINJOBS, key.namespace, body)))
