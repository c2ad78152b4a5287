"""A cluster's jobs by single requests, without an event loop: what `create`, `list` and `get` need.

The same requests, values and words as the SDK's backend; only the transport is the small one,
because starting the large one takes longer than everything else that these commands do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.kube import requests
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import AlreadyExists, ApiError, KubeError
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    MPIJOBS,
    SECRETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    Resource,
)
from mpi_trainer.sdk.backends.backend import JobSummary, JobView, Key
from mpi_trainer.sdk.backends.cluster.errors import told, translated

if TYPE_CHECKING:
    from mpi_trainer.api.kinds.runtime import Runtime
    from mpi_trainer.api.kinds.trainjob import TrainJob
    from mpi_trainer.sdk.backends.cluster.namespace_limits import Demands

_REFUSALS = (400, 403, 422)
_COMPANIONS = {"ConfigMap": CONFIGMAPS, "Secret": SECRETS}


class Quick:
    """One connection to one cluster."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._server = OneShot(config)

    def create(self, job: MPIJob, *, dry_run: bool = False) -> JobView:
        """Submits; the server says at once whatever is wrong, unknown fields included."""
        key = Key(job.namespace or self.config.namespace, job.name)
        from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB

        with told(key):
            return MPIJOB.view(self._server.call(creation(key, job, dry_run=dry_run)))

    def demanded(self, namespace: str) -> Demands:
        """What the namespace demands of containers, as far as the caller may see it. Whether the
        server is there at all, the job itself will tell."""
        from msgspec.structs import replace

        from mpi_trainer.sdk.backends.cluster import namespace_limits

        answers: list[dict[str, Any]] = []
        for request in namespace_limits.questions(namespace):
            try:
                answers.append(self._server.call(replace(request, tries=1), dict[str, Any]))
            except ApiError:
                answers.append({})
            except KubeError:
                return namespace_limits.Demands()
        return namespace_limits.demands(*answers)

    def create_train(self, job: TrainJob) -> JobView:
        """Submits a TrainJob; as the server has it."""
        from mpi_trainer.sdk.backends.cluster.kinds import TRAINJOB

        key = Key(job.namespace or self.config.namespace, job.name)
        request = self._train_creation(key, job, dry_run=False)
        with told(key):
            return TRAINJOB.view(self._server.call(request))

    def _train_creation(self, key: Key, job: TrainJob, *, dry_run: bool) -> Request:
        from mpi_trainer.api.kinds.trainjob import to_wire
        from mpi_trainer.sdk.backends.cluster.defaults import with_ranks

        runtime = self._runtime(job, key.namespace)
        body = to_wire(job if runtime is None else with_ranks(job, runtime))
        return _posted(TRAINJOBS, key, body, dry_run=dry_run)

    def _runtime(self, job: TrainJob, namespace: str) -> Runtime | None:
        """None where we cannot have it; whether it is there at all is the server's to say."""
        from mpi_trainer.api.kinds.runtime import NAMESPACED, Runtime

        of_namespace = job.spec.runtime_ref.kind == NAMESPACED
        resource = TRAINING_RUNTIMES if of_namespace else CLUSTER_TRAINING_RUNTIMES
        place = namespace if of_namespace else ""
        try:
            found = self._server.call(requests.get(resource, place, job.spec.runtime_ref.name))
        except KubeError:
            return None
        return decode(Runtime, found).value

    def refusals(self, job: MPIJob | TrainJob) -> tuple[str, ...]:
        """What the server would refuse the job for; nothing is made."""
        key = Key(job.namespace or self.config.namespace, job.name)
        try:
            if isinstance(job, MPIJob):
                request = creation(key, job, dry_run=True)
            else:
                request = self._train_creation(key, job, dry_run=True)
            self._server.call(request, None)
        except AlreadyExists:
            return ()
        except ApiError as error:
            if error.code not in _REFUSALS:
                raise translated(error, key) from error
            from mpi_trainer.diagnose.refusals import lines

            return lines(error.message, error.details.get("causes") or ())
        except KubeError as error:
            raise translated(error, key) from error
        return ()

    def companion(self, body: dict[str, Any]) -> bool:
        """Makes a ConfigMap or Secret of a job file; whether it was not there before."""
        resource = _COMPANIONS[body["kind"]]
        meta = body["metadata"]
        namespace = meta.get("namespace") or self.config.namespace
        with told():
            try:
                self._server.call(requests.create(resource, namespace, body), None)
            except AlreadyExists:
                return False
        return True

    def get(self, key: Key) -> JobView:
        from mpi_trainer.sdk.backends.cluster.kinds import MPIJOB

        with told(key):
            return MPIJOB.view(self._server.call(requests.get(MPIJOBS, key.namespace, key.name)))

    def list(self, namespace: str | None) -> Sequence[JobSummary]:
        """Newest first; of every namespace where none is named."""
        from mpi_trainer.cli.listing import listed

        with told():
            return listed(self._server, namespace or "")


def creation(key: Key, job: MPIJob, *, dry_run: bool = False) -> Request:
    """The request that submits a job, as the user wrote it and never with a status."""
    return _posted(MPIJOBS, key, to_wire(job), dry_run=dry_run)


def _posted(resource: Resource, key: Key, body: dict[str, Any], *, dry_run: bool) -> Request:
    body.pop("status", None)
    body["metadata"]["namespace"] = key.namespace
    return requests.submit(resource, key.namespace, body, dry_run=dry_run)
