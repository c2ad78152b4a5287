"""What only the API server knows about a TrainJob: its runtime, quotas, rights, its pods' chances.

Each question is bounded. A runtime that is not there refuses the job; one that could not be asked
for in time does not, because the controller looks again before it makes anything.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from mpi_trainer.api import load
from mpi_trainer.api.effective import Effective, effective
from mpi_trainer.api.errors import INVALID, FieldError, InvalidJob
from mpi_trainer.api.kueue import MULTIKUEUE
from mpi_trainer.api.runtime import CLUSTER, MPI, Runtime
from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.api.validation import fitting
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError, NotFound
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from mpi_trainer.layout.trainjob import layout
from mpi_trainer.render import trainjob as render
from mpi_trainer.webhook import asking, deputy, refusals
from mpi_trainer.webhook.asks import SECONDS, UNANSWERED, Asks, Findings
from mpi_trainer.webhook.review import User


class TrainAsks:
    """The questions about TrainJobs, over one client; `asks` knows those that all kinds share."""

    def __init__(self, client: Client, asks: Asks, seconds: float = SECONDS) -> None:
        self._client = client
        self._asks = asks
        self._seconds = seconds

    async def about(self, job: TrainJob, user: User) -> Findings:
        """Errors and warnings; of a job that runs on another cluster only what is known here."""
        try:
            async with asyncio.timeout(self._seconds):
                runtime = await self._runtime(job)
        except NotFound:
            return (_missing(job),), ()
        except (TimeoutError, KubeError):
            rule = f"the runtime could not be asked for in {self._seconds:g} s"
            remedy = "the job is taken; look at its status"
            return (), (FieldError(asking.RUNTIME, UNANSWERED, rule=rule, remedy=remedy),)
        errors = fitting.errors(job, runtime)
        if errors or job.spec.managed_by == MULTIKUEUE:
            return errors, ()
        whole = effective(job, runtime)
        found = await asyncio.gather(
            self._asks.room(asking.of_trainjob(job, whole), job.namespace),
            self._asks.held(deputy.train_claims(job, runtime), job.namespace, user),
            self._asks.bounded(
                self._pods(job, runtime, whole), "whether the cluster would take the pods"
            ),
        )
        asked = tuple(error for part, _ in found for error in part)
        told = tuple(warning for _, part in found for warning in part)
        return asked, (*told, *fitting.warnings(job, runtime))

    async def _pods(self, job: TrainJob, runtime: Runtime, whole: Effective) -> Findings:
        """A pod of each job, tried as the controller would have it made."""
        plan = layout(job, whole) if whole.policy == MPI else None
        try:
            made = render.children(job, whole, runtime, plan, render.Facts())
        except InvalidJob as invalid:
            return invalid.errors, ()
        parts = made.job_set["spec"]["replicatedJobs"]
        answers = await asyncio.gather(
            *(
                self._asks.refusal(job.namespace, part["template"]["spec"]["template"])
                for part in parts
            )
        )
        return tuple(
            fitting.in_pods(part["name"], error)
            for part, why in zip(parts, answers, strict=True)
            if why
            for error in refusals.at((), why)
        ), ()

    async def _runtime(self, job: TrainJob) -> Runtime:
        ref = job.spec.runtime_ref
        near = ref.kind != CLUSTER
        kind = TRAINING_RUNTIMES if near else CLUSTER_TRAINING_RUNTIMES
        asked = requests.get(kind, job.namespace if near else "", ref.name)
        data = await self._client.call(msgspec.structs.replace(asked, tries=1), dict[str, Any])
        found = load.runtime(data)
        return found.value if isinstance(found.value, Runtime) else Runtime()


def _missing(job: TrainJob) -> FieldError:
    ref = job.spec.runtime_ref
    kind = ref.kind or CLUSTER
    where = f" in the namespace {job.namespace}" if kind != CLUSTER else ""
    rule = f"there is no {kind} of this name{where}"
    remedy = f"create it first, or name one of `kubectl get {kind.lower()}s`"
    return FieldError(asking.RUNTIME, INVALID, ref.name, rule, remedy)
