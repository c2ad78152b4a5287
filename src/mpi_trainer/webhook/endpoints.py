"""The admission endpoints: `/mutate-…` and `/validate-…` for each kind, and `/validate-child`.

Beside them stands `/convert-mpijob`, which is no admission: see `conversion`. One handler for each;
all others speak AdmissionReview v1. Guarantee: a review that can be read gets an answer, and a
fault of ours is a 500, which the API server treats by the failurePolicy, never a silent yes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar

import msgspec
from aiohttp import web

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import FORBIDDEN, FieldError
from mpi_trainer.api.kinds.annotations import DOMAIN
from mpi_trainer.api.kinds.labels import LABEL_OPERATOR, MPI_OPERATOR, TRAINING_PREFIX
from mpi_trainer.api.kinds.network_isolation import NO_DEFAULT, IsolationDefault
from mpi_trainer.api.validation.worker_limits import DEFAULT, WorkerLimits
from mpi_trainer.api.yaml import nesting, typed
from mpi_trainer.runtime.off_loop import OffLoop
from mpi_trainer.webhook import conversion, review
from mpi_trainer.webhook.mpijob import judge as mpijob
from mpi_trainer.webhook.mpijob.server_checks import MPIJobChecks
from mpi_trainer.webhook.review import NeededChecks
from mpi_trainer.webhook.server_checks import ServerChecks
from mpi_trainer.webhook.trainjob import judge as trainjob
from mpi_trainer.webhook.trainjob.server_checks import TrainJobChecks

P = ParamSpec("P")
T = TypeVar("T")

LARGEST_REVIEW = 8 * 1024 * 1024

Endpoint = Callable[[review.AdmissionRequest], Awaitable[dict[str, Any]]]


# Who makes the pods of a batch Job: the controller manager, under its own name or a Job's.
JOB_CONTROLLERS = frozenset(
    {"system:serviceaccount:kube-system:job-controller", "system:kube-controller-manager"}
)


class Settings(msgspec.Struct, frozen=True):
    """What holds for every job. `controller`: the user that makes jobs' children; `isolation`: what
    it does with the networks of jobs that say nothing."""

    controller: str
    limits: WorkerLimits = DEFAULT
    isolation: IsolationDefault = NO_DEFAULT


class Endpoints:
    """`kueue`: whether Kueue is installed; `admitted` is told of each job that may be created, by
    kind and version."""

    def __init__(
        self,
        server: ServerChecks,
        domain: str,
        kueue: Callable[[], bool],
        settings: Settings,
        admitted: Callable[[str, str], None] = lambda _kind, _version: None,
    ) -> None:
        self._server = server
        self._mpijob_checks = MPIJobChecks(server, domain)
        self._trainjob_checks = TrainJobChecks(server, settings.limits, settings.isolation)
        self._kueue = kueue
        self._settings = settings
        self._admitted = admitted
        self._off_loop = OffLoop()

    async def mutate_mpijob(self, request: review.AdmissionRequest) -> dict[str, Any]:
        patch = await self._result(request, mpijob.mutation, request, self._kueue())
        return review.allowed(request, patch=patch)

    async def validate_mpijob(self, request: review.AdmissionRequest) -> dict[str, Any]:
        verdict = await self._result(
            request, mpijob.judge, request, self._settings.limits, self._settings.isolation
        )
        errors, warnings = verdict.errors, verdict.warnings
        if not errors and verdict.needed != NeededChecks():
            checks = self._mpijob_checks.result(verdict.job, verdict.needed, request)
            errors, more = await checks
            warnings = (*warnings, *more)
        return self._judged(request, errors, warnings)

    async def mutate_trainjob(self, request: review.AdmissionRequest) -> dict[str, Any]:
        patch = await self._result(request, trainjob.mutation, request, datetime.now(UTC))
        return review.allowed(request, patch=patch)

    async def validate_trainjob(self, request: review.AdmissionRequest) -> dict[str, Any]:
        verdict = await self._result(request, trainjob.judge, request)
        errors, warnings = verdict.errors, verdict.warnings
        if verdict.job is not None:
            checks = self._trainjob_checks.result(verdict.job, request.user_info, verdict.before)
            found, more = await checks
            errors, warnings = (*errors, *found), (*warnings, *more)
        return self._judged(request, errors, warnings)

    async def validate_runtime(self, request: review.AdmissionRequest) -> dict[str, Any]:
        verdict = await self._result(request, trainjob.judge_runtime, request)
        claims, user = verdict.needed.claims, request.user_info
        errors, _ = await self._server.rights(claims, request.namespace, user)
        errors, warnings = (*verdict.errors, *errors), verdict.warnings
        if verdict.needed.users and not errors:
            warnings = (*warnings, *await self._trainjob_checks.runtime_warnings(request))
        return _response(request, errors, warnings)

    async def validate_child(self, request: review.AdmissionRequest) -> dict[str, Any]:
        """Our labels admit a pod to a job's network and Service: only its controller sets them.

        For API servers that know no ValidatingAdmissionPolicy. Pods are made by Kubernetes itself,
        from Jobs; they are as good as the job that controls their Job, or their Job's JobSet.
        """
        user, now = request.user_info.username, _labels(request.object)
        if user == self._settings.controller or not now:
            return review.allowed(request)
        if request.operation == review.UPDATE and now == _labels(request.old_object):
            return review.allowed(request)
        if user in JOB_CONTROLLERS and await self._server.belongs_to_job(request):
            return review.allowed(request)
        rule = (
            "what has this label belongs to an MPI job or a TrainJob, and its controller makes it"
        )
        path = ("metadata", "labels", min(now))
        remedy = "remove the label, or create an MPIJob or a TrainJob"
        return review.refused(request, (FieldError(path, FORBIDDEN, rule=rule, remedy=remedy),))

    def _judged(
        self,
        request: review.AdmissionRequest,
        errors: tuple[FieldError, ...],
        warnings: tuple[FieldError, ...],
    ) -> dict[str, Any]:
        """The response about a job, which is counted where it lets one be created."""
        if not errors and request.operation == review.CREATE and not request.dry_run:
            written = request.request_kind or request.kind
            self._admitted(written.kind, written.version)
        return _response(request, errors, warnings)

    async def _result(
        self,
        request: review.AdmissionRequest,
        act: Callable[P, T],
        *args: P.args,
        **names: P.kwargs,
    ) -> T:
        """Of `act`, beside the event loop where the request is large."""
        return await self._off_loop.run(request.namespace, request.size, act, *args, **names)


def app(endpoints: Endpoints) -> web.Application:
    application = web.Application(client_max_size=LARGEST_REVIEW)
    application.router.add_post("/mutate-mpijob", _handler(endpoints.mutate_mpijob))
    application.router.add_post("/validate-mpijob", _handler(endpoints.validate_mpijob))
    application.router.add_post("/mutate-trainjob", _handler(endpoints.mutate_trainjob))
    application.router.add_post("/validate-trainjob", _handler(endpoints.validate_trainjob))
    application.router.add_post("/validate-runtime", _handler(endpoints.validate_runtime))
    application.router.add_post("/validate-child", _handler(endpoints.validate_child))
    application.router.add_post("/convert-mpijob", conversion.handler())
    return application


def _response(
    request: review.AdmissionRequest,
    errors: tuple[FieldError, ...],
    warnings: tuple[FieldError, ...],
) -> dict[str, Any]:
    if errors:
        return review.refused(request, errors, warnings)
    return review.allowed(request, warnings)


def _handler(endpoint: Endpoint) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            asked = await _parsed(await request.read())
        except msgspec.MsgspecError as error:
            return web.Response(status=400, text=f"this is no AdmissionReview: {error}\n")
        body = msgspec.json.encode(await endpoint(asked))
        return web.Response(body=body, content_type="application/json")

    return handle


async def _parsed(body: bytes) -> review.AdmissionRequest:
    """The request; what is nested too deeply in its objects is left for validation to refuse."""
    if len(body) <= bounds.SHORT_TEXT:
        return review.parse(_shallow(body))
    return await asyncio.to_thread(lambda: review.parse(_shallow(body)))


def _shallow(body: bytes) -> bytes:
    """Without what is so deep that a walk over it could end the interpreter's stack."""
    return typed.shallow(body) if nesting.depth(body) > bounds.DECODED_NESTING else body


def _labels(data: dict[str, Any] | None) -> dict[str, str]:
    """Those by which jobs find their pods."""
    labels = ((data or {}).get("metadata") or {}).get("labels") or {}
    mpi = labels.get(LABEL_OPERATOR) == MPI_OPERATOR
    ours = (f"{DOMAIN}/", TRAINING_PREFIX) if mpi else (f"{DOMAIN}/",)
    return {key: value for key, value in labels.items() if key.startswith(ours)}
