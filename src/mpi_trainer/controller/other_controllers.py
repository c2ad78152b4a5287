"""Whether a public controller of our kinds runs here: two controllers would fight over each job.

The MPI operator is found by its Lease, renewed a moment ago by a holder that is not one of ours,
or by its Deployment with pods; the trainer by its Lease alone. What our rights do not let us see
cannot be found; the Lease in our own lock namespace always can. Clocks may differ: a Lease counts
as fresh for a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import ApiError
from mpi_trainer.kube.resources import DEPLOYMENTS, LEASES
from mpi_trainer.runtime.leases import Lease
from mpi_trainer.runtime.partial import Meta, Partial

T = TypeVar("T")

LEASE = "mpi-operator"
NAMESPACE = "mpi-operator"
TRAINER_LEASE = "trainer.kubeflow.org"
TRAINER_NAMESPACES = ("kubeflow-system", "opendatahub", "redhat-ods-applications")
"""where the trainer is installed by its own manifests and by OpenShift AI's"""
MARK = "mpi-trainer"
"""is part of the identity of each of our processes"""
FRESH = timedelta(minutes=1)


class _Container(Partial, frozen=True, gc=False):
    image: str = ""


class _Spec(Partial, frozen=True, gc=False):
    containers: tuple[_Container, ...] = ()


class _Template(Partial, frozen=True, gc=False):
    spec: _Spec = _Spec()


class _DeploymentSpec(Partial, frozen=True, gc=False):
    template: _Template = _Template()


class _DeploymentStatus(Partial, frozen=True, gc=False):
    ready_replicas: int = 0


class Deployment(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    spec: _DeploymentSpec = _DeploymentSpec()
    status: _DeploymentStatus = _DeploymentStatus()


class UpstreamRuns(Exception):
    """Another controller of our kinds is at work."""

    def __init__(self, who: str, what: str, otherwise: str) -> None:
        super().__init__(
            f"the public {who} is at work here: {what}; scale it down first (its jobs are taken "
            f"over as they are), or say {otherwise}"
        )


OPERATOR = ("MPI operator", "--beside-upstream and give it namespaces of its own")
# Not --trainjob-runtimes: the trainer does not know of it, and takes every TrainJob that it sees.
TRAINER = ("trainer", "--trainjobs=off to leave TrainJobs to it")


async def check(client: Client, lock_namespace: str) -> None:
    """Raises UpstreamRuns where it does."""
    for namespace in dict.fromkeys((lock_namespace, NAMESPACE)):
        lease = await _read(client, requests.get(LEASES, namespace, LEASE), Lease)
        if lease is not None and holds(lease, datetime.now(UTC)):
            holder = lease.spec.holder_identity
            who, otherwise = OPERATOR
            raise UpstreamRuns(who, f"lease {namespace}/{LEASE} is held by {holder}", otherwise)
        found = await _read(client, requests.get(DEPLOYMENTS, namespace, LEASE), Deployment)
        if found is not None and serves(found):
            who, otherwise = OPERATOR
            raise UpstreamRuns(who, f"deployment {namespace}/{LEASE} has pods", otherwise)


async def check_trainer(client: Client, lock_namespace: str) -> None:
    """Raises UpstreamRuns where the public trainer has a live Lease."""
    for namespace in dict.fromkeys((lock_namespace, *TRAINER_NAMESPACES)):
        lease = await _read(client, requests.get(LEASES, namespace, TRAINER_LEASE), Lease)
        if lease is not None and holds(lease, datetime.now(UTC)):
            who, otherwise = TRAINER
            held = f"lease {namespace}/{TRAINER_LEASE} is held by {lease.spec.holder_identity}"
            raise UpstreamRuns(who, held, otherwise)


def holds(lease: Lease, now: datetime) -> bool:
    """Whether somebody who is not of ours renewed it lately."""
    holder, renewed = lease.spec.holder_identity, _time(lease.spec.renew_time)
    if not holder or MARK in holder or renewed is None:
        return False
    lasts = timedelta(seconds=lease.spec.lease_duration_seconds or 0)
    return abs(now - renewed) < max(lasts, FRESH) if lasts > timedelta(seconds=1) else False


def serves(deployment: Deployment) -> bool:
    """Whether it has pods, and they are not ours under upstream's name."""
    labels: Mapping[str, str] = deployment.metadata.labels
    images = [c.image for c in deployment.spec.template.spec.containers]
    ours = any(MARK in image for image in images) or MARK in labels.values()
    return bool(deployment.status.ready_replicas and not ours)


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None


async def _read(client: Client, request: requests.Request, kind: type[T]) -> T | None:
    try:
        return await client.call(request, kind)
    except ApiError:
        return None
