"""What only the API server knows about a TrainJob, its runtime first: see `webhook.server_checks`.

A runtime that is not there refuses the job, and so does one that could not be read in time: nobody
could say then whose rights the job would borrow. A job that only starts needs no runtime here: its
rights and amounts were checked before.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.errors import FORBIDDEN, INVALID, SUSPICIOUS, FieldError, InvalidJob
from mpi_trainer.api.kinds.conditions import TRUE
from mpi_trainer.api.kinds.network_isolation import NO_DEFAULT, IsolationDefault
from mpi_trainer.api.kinds.pod_status import Condition, condition
from mpi_trainer.api.kinds.runtime import CLUSTER, MPI, Runtime
from mpi_trainer.api.kinds.trainjob import COMPLETE, FAILED, RuntimeRef, TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.validation.worker_limits import DEFAULT, WorkerLimits
from mpi_trainer.api.yaml import load
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import KubeError, NotFound
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS
from mpi_trainer.layout.trainjob import layout
from mpi_trainer.render.trainjob import children as render
from mpi_trainer.runtime.off_loop import LONG
from mpi_trainer.runtime.partial import Meta, Partial
from mpi_trainer.webhook import refusals
from mpi_trainer.webhook.resource_demand import RUNTIME
from mpi_trainer.webhook.review import AdmissionRequest, RequestUser
from mpi_trainer.webhook.server_checks import CheckResult, Object, ServerChecks
from mpi_trainer.webhook.trainjob.changes import patches_changed
from mpi_trainer.webhook.trainjob.judge import judge_with_runtime


class RuntimeUserSpec(Partial, frozen=True):
    runtime_ref: RuntimeRef = RuntimeRef()


class RuntimeUserStatus(Partial, frozen=True):
    conditions: tuple[Condition, ...] = ()


class RuntimeUser(Partial, frozen=True):
    """A TrainJob, as far as it says which runtime it uses."""

    metadata: Meta = Meta()
    spec: RuntimeUserSpec = RuntimeUserSpec()
    status: RuntimeUserStatus = RuntimeUserStatus()

    def uses(self, kind: str, name: str) -> bool:
        ref, conditions = self.spec.runtime_ref, self.status.conditions
        ended = any(condition(conditions, one, TRUE) for one in (COMPLETE, FAILED))
        return not ended and (ref.kind or CLUSTER, ref.name) == (kind, name)


class TrainJobChecks:
    def __init__(
        self,
        server: ServerChecks,
        limits: WorkerLimits = DEFAULT,
        isolation: IsolationDefault = NO_DEFAULT,
    ) -> None:
        self._server = server
        self._isolation = isolation
        self._limits = limits

    async def result(
        self, job: TrainJob, user: RequestUser, before: TrainJob | None = None
    ) -> CheckResult:
        """Of a job that runs on another cluster only what is known here.

        `before`: the job before the change that is judged; the change is to its patches, or it
        lets the job start.
        """
        patched = before is None or patches_changed(before, job)
        try:
            async with asyncio.timeout(self._server.seconds):
                runtime = await self._runtime(job)
        except NotFound:
            return (_missing(job),) if patched else (), ()
        except (TimeoutError, KubeError):
            return (self._unread(job),) if patched else (), ()
        server, namespace = self._server, job.namespace
        judged = await server.off_loop.run(
            namespace,
            LONG,
            judge_with_runtime,
            *(job, runtime, before),
            *(self._limits, self._isolation),
        )
        if judged.errors:
            return judged.errors if patched else (), ()
        pods = functools.partial(self._pods, job, runtime)
        errors, warnings = await server.result(judged.needed, namespace, user, pods)
        return errors, (*warnings, *judged.warnings)

    async def runtime_warnings(self, request: AdmissionRequest) -> tuple[FieldError, ...]:
        """That jobs under way use the runtime, and go on with what they began with (CTL-13).

        Of very many TrainJobs only the first are read. Without an answer in time nothing is said:
        the edit is right all the same.
        """
        try:
            async with asyncio.timeout(self._server.seconds):
                jobs = await self._server.first(TRAINJOBS, RuntimeUser, request.namespace)
        except (TimeoutError, KubeError):
            return ()
        users = [one for one in jobs if one.uses(request.kind.kind, request.name)]
        if not users:
            return ()
        count = f"{len(users)} TrainJob{'s' * (len(users) > 1)}"
        spaces = len({one.metadata.namespace for one in users})
        where = f"in {spaces} namespace{'s' * (spaces > 1)}" if not request.namespace else "here"
        rule = f"this runtime is in use: by {count} {where}, of those that were looked at"
        remedy = "they keep the version that they began with, and new jobs get this one"
        return (FieldError(("spec",), SUSPICIOUS, rule=rule, remedy=remedy),)

    def _unread(self, job: TrainJob) -> FieldError:
        seconds = self._server.seconds
        rule = f"the runtime could not be read in {seconds:g} s, so nobody knows what it asks"
        return FieldError(RUNTIME, FORBIDDEN, job.spec.runtime_ref.name, rule, "try again")

    async def _pods(self, job: TrainJob, runtime: Runtime) -> CheckResult:
        """A pod of each replicated job, tried as the controller would have it made."""
        server, namespace = self._server, job.namespace
        try:
            jobs = await server.off_loop.run(namespace, LONG, _replicated_jobs, job, runtime)
        except InvalidJob as invalid:
            return invalid.errors, ()
        pods = (one["template"]["spec"]["template"] for one in jobs)
        answers = await asyncio.gather(*(server.pod_refusal(namespace, pod) for pod in pods))
        return refusals.errors_and_warnings(
            compatibility.in_pods(one["name"], error)
            for one, refusal in zip(jobs, answers, strict=True)
            if refusal
            for error in refusals.at((), refusal)
        )

    async def _runtime(self, job: TrainJob) -> Runtime:
        ref = job.spec.runtime_ref
        near = ref.kind != CLUSTER
        kind = TRAINING_RUNTIMES if near else CLUSTER_TRAINING_RUNTIMES
        asked = requests.get(kind, job.namespace if near else "", ref.name)
        found = load.runtime(await self._server.call_once(asked, dict[str, Any]))
        return found.value if isinstance(found.value, Runtime) else Runtime()


def _replicated_jobs(job: TrainJob, runtime: Runtime) -> list[Object]:
    """Of the JobSet that the controller would make."""
    whole = effective(job, runtime)
    plan = layout(job, whole) if whole.policy == MPI else None
    made = render.children(job, whole, runtime, plan, render.Facts())
    jobs: list[Object] = made.job_set["spec"]["replicatedJobs"]
    return jobs


def _missing(job: TrainJob) -> FieldError:
    ref = job.spec.runtime_ref
    kind = ref.kind or CLUSTER
    where = f" in the namespace {job.namespace}" if kind != CLUSTER else ""
    rule = f"there is no {kind} of this name{where}"
    remedy = f"create it first, or name one of `kubectl get {kind.lower()}s`"
    return FieldError(RUNTIME, INVALID, ref.name, rule, remedy)
