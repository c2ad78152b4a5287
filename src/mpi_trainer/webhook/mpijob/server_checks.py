"""What only the API server knows about an MPIJob: see `webhook.server_checks`."""

from __future__ import annotations

import asyncio
import functools

from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob import children as render
from mpi_trainer.runtime.off_loop import POD_BYTES
from mpi_trainer.webhook import refusals
from mpi_trainer.webhook.review import AdmissionRequest, NeededChecks
from mpi_trainer.webhook.server_checks import CheckResult, Object, ServerChecks


class MPIJobChecks:
    """`domain`: of the cluster's DNS, as the controller's."""

    def __init__(self, server: ServerChecks, domain: str = "") -> None:
        self._server = server
        self._domain = domain

    async def result(
        self, job: MPIJob | None, needed: NeededChecks, request: AdmissionRequest
    ) -> CheckResult:
        pods = None if job is None else functools.partial(self._pods, job, request.size)
        return await self._server.result(needed, request.namespace, request.user_info, pods)

    async def _pods(self, job: MPIJob, size: int) -> CheckResult:
        """A pod of each role, tried as the controller would make it."""
        size += job.workers * POD_BYTES
        conflicts, pods = await self._server.off_loop.run(
            job.namespace, size, _pods_by_role, job, self._domain
        )
        if conflicts:
            return conflicts, ()
        answers = await asyncio.gather(
            *(self._server.pod_refusal(job.namespace, pod) for _, pod in pods)
        )
        return refusals.errors_and_warnings(
            error
            for (role, _), refusal in zip(pods, answers, strict=True)
            if refusal
            for error in refusals.in_role(role, refusal)
        )


def _pods_by_role(
    job: MPIJob, domain: str
) -> tuple[tuple[FieldError, ...], tuple[tuple[str, Object], ...]]:
    """What stands in the way of the job's pods, or else one of each role."""
    plan = layout(job, domain)
    conflicts = render.errors(plan, job)
    if conflicts:
        return conflicts, ()
    made = render.children(plan, job, render.Facts(domain=domain))
    workers = ((WORKER, one) for one in made.workers[:1])
    return (), ((LAUNCHER, made.launcher_job["spec"]["template"]), *workers)
