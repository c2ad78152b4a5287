"""What only the API server knows about a TrainJob: its runtime, quotas, rights, its pods' chances.

Each question is bounded. A runtime that is not there refuses the job, and so does one that could
not be read in time: nobody could say then whose rights the job would borrow. A job that only
starts needs no runtime here: what it asks for has been asked before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgspec

from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.errors import FORBIDDEN, INVALID, FieldError, InvalidJob
from mpi_trainer.api.kinds.managers import MULTIKUEUE
from mpi_trainer.api.kinds.runtime import CLUSTER, MPI, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.yaml import load
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError, NotFound
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from mpi_trainer.layout.trainjob import layout
from mpi_trainer.render.trainjob import children as render
from mpi_trainer.runtime.off_loop import LONG
from mpi_trainer.webhook import refusals, resource_demand
from mpi_trainer.webhook.borrowed_rights import Claim
from mpi_trainer.webhook.mpijob.server_checks import SECONDS, Findings, ServerChecks, together
from mpi_trainer.webhook.review import User
from mpi_trainer.webhook.trainjob import borrowed_rights
from mpi_trainer.webhook.trainjob.changes import patches_changed


class Plan(msgspec.Struct, frozen=True):
    """What is wrong with a job in its runtime, or what is to be asked about it."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    claims: tuple[Claim, ...] = ()
    wanted: resource_demand.Asking | None = None
    pods: bool = False


class TrainServerChecks:
    """The questions about TrainJobs, over one client; `asks` knows those that all kinds share."""

    def __init__(self, client: Client, asks: ServerChecks, seconds: float = SECONDS) -> None:
        self._client = client
        self._asks = asks
        self._seconds = seconds

    async def about(self, job: TrainJob, user: User, before: TrainJob | None = None) -> Findings:
        """Errors and warnings; of a job that runs on another cluster only what is known here.

        `before`: the job before the change that is judged; the change is to its patches, or it
        lets the job start.
        """
        patched = before is None or patches_changed(before, job)
        try:
            async with asyncio.timeout(self._seconds):
                runtime = await self._runtime(job)
        except NotFound:
            return (_missing(job),) if patched else (), ()
        except (TimeoutError, KubeError):
            return (self._unread(job),) if patched else (), ()
        long, place = self._asks.long, job.namespace
        plan = await long.on(place, LONG, _plan, job, runtime, before)
        if plan.errors:
            return plan.errors if patched else (), ()
        asked: list[Awaitable[Findings]] = [self._asks.held(plan.claims, place, user)]
        if plan.wanted is not None:
            asked.append(self._asks.room(plan.wanted, place))
        if plan.pods:
            what = "whether the cluster would take the pods"
            asked.append(self._asks.bounded(self._pods(job, runtime), what))
        found, told = together(await asyncio.gather(*asked))
        return found, (*told, *plan.warnings)

    def _unread(self, job: TrainJob) -> FieldError:
        rule = f"the runtime could not be read in {self._seconds:g} s, so nobody knows what it asks"
        name = job.spec.runtime_ref.name
        return FieldError(resource_demand.RUNTIME, FORBIDDEN, name, rule, "try again")

    async def _pods(self, job: TrainJob, runtime: Runtime) -> Findings:
        """A pod of each job, tried as the controller would have it made."""
        try:
            parts = await self._asks.long.on(job.namespace, LONG, _parts, job, runtime)
        except InvalidJob as invalid:
            return invalid.errors, ()
        answers = await asyncio.gather(
            *(
                self._asks.refusal(job.namespace, part["template"]["spec"]["template"])
                for part in parts
            )
        )
        return refusals.findings(
            compatibility.in_pods(part["name"], error)
            for part, why in zip(parts, answers, strict=True)
            if why
            for error in refusals.at((), why)
        )

    async def _runtime(self, job: TrainJob) -> Runtime:
        ref = job.spec.runtime_ref
        near = ref.kind != CLUSTER
        kind = TRAINING_RUNTIMES if near else CLUSTER_TRAINING_RUNTIMES
        asked = requests.get(kind, job.namespace if near else "", ref.name)
        data = await self._client.call(msgspec.structs.replace(asked, tries=1), dict[str, Any])
        found = load.runtime(data)
        return found.value if isinstance(found.value, Runtime) else Runtime()


def _plan(job: TrainJob, runtime: Runtime, before: TrainJob | None) -> Plan:
    """Of a job that runs on another cluster only its claims are asked here."""
    errors = compatibility.errors(job, runtime)
    if errors:
        return Plan(errors)
    brought = borrowed_rights.train_brought(job, runtime, before)
    wanted = resource_demand.of_trainjob(job, effective(job, runtime))
    was = before and resource_demand.of_trainjob(before, effective(before, runtime))
    here = job.spec.managed_by != MULTIKUEUE
    return Plan(
        warnings=tuple(compatibility.warnings(job, runtime)),
        claims=brought.claims,
        wanted=wanted if here and was != wanted else None,
        pods=here and brought.program,
    )


def _parts(job: TrainJob, runtime: Runtime) -> list[dict[str, Any]]:
    """The jobs of its JobSet."""
    whole = effective(job, runtime)
    plan = layout(job, whole) if whole.policy == MPI else None
    made = render.children(job, whole, runtime, plan, render.Facts())
    parts: list[dict[str, Any]] = made.job_set["spec"]["replicatedJobs"]
    return parts


def _missing(job: TrainJob) -> FieldError:
    ref = job.spec.runtime_ref
    kind = ref.kind or CLUSTER
    where = f" in the namespace {job.namespace}" if kind != CLUSTER else ""
    rule = f"there is no {kind} of this name{where}"
    remedy = f"create it first, or name one of `kubectl get {kind.lower()}s`"
    return FieldError(resource_demand.RUNTIME, INVALID, ref.name, rule, remedy)
