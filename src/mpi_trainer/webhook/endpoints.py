"""The admission endpoints: `/mutate-…` and `/validate-…` for each kind, and `/validate-child`.

One handler for each; all speak AdmissionReview v1. Guarantee: a review that can be read gets an
answer, and a fault of ours is a 500, which the API server treats by the failurePolicy, never a
silent yes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import FORBIDDEN, FieldError
from mpi_trainer.api.kinds.annotations import DOMAIN
from mpi_trainer.api.kinds.labels import LABEL_OPERATOR, MPI_OPERATOR, TRAINING_PREFIX
from mpi_trainer.api.yaml import nesting, typed
from mpi_trainer.runtime.off_loop import OffLoop
from mpi_trainer.webhook import review
from mpi_trainer.webhook.mpijob import judge as mpijob
from mpi_trainer.webhook.mpijob.server_checks import ServerChecks
from mpi_trainer.webhook.resource_demand import Questions
from mpi_trainer.webhook.trainjob import judge as trainjob
from mpi_trainer.webhook.trainjob.server_checks import TrainServerChecks

LARGEST = 8 * 1024 * 1024

Judge = Callable[[review.Request], Awaitable[dict[str, Any]]]


# Who makes the pods of a batch Job: the controller manager, under its own name or a Job's.
JOB_CONTROLLERS = frozenset(
    {"system:serviceaccount:kube-system:job-controller", "system:kube-controller-manager"}
)


class Endpoints:
    """Who may come in. `queues` tells whether Kueue is there; `maker` makes our children."""

    def __init__(
        self,
        asks: ServerChecks,
        train_asks: TrainServerChecks,
        queues: Callable[[], bool],
        maker: str,
    ) -> None:
        self._asks = asks
        self._train_asks = train_asks
        self._queues = queues
        self._maker = maker
        self._long = OffLoop()

    async def mutate(self, request: review.Request) -> dict[str, Any]:
        there, place = self._queues(), request.namespace
        patch = await self._long.on(place, request.size, mpijob.defaults, request, there)
        return review.allowed(request, patch=patch)

    async def validate(self, request: review.Request) -> dict[str, Any]:
        verdict = await self._long.on(request.namespace, request.size, mpijob.judge, request)
        errors, warnings = verdict.errors, verdict.warnings
        if not errors and verdict.questions != Questions():
            errors, told = await self._asks.about(verdict.job, verdict.questions, request)
            warnings = (*warnings, *told)
        return _answer(request, errors, warnings)

    async def mutate_trainjob(self, request: review.Request) -> dict[str, Any]:
        now, place = datetime.now(UTC), request.namespace
        patch = await self._long.on(place, request.size, trainjob.stamps, request, now)
        return review.allowed(request, patch=patch)

    async def validate_trainjob(self, request: review.Request) -> dict[str, Any]:
        place = request.namespace
        verdict = await self._long.on(place, request.size, trainjob.judge, request)
        errors, warnings = verdict.errors, verdict.warnings
        if verdict.job is not None:
            asking = self._train_asks.about(verdict.job, request.user_info, verdict.before)
            asked, told = await asking
            errors, warnings = (*errors, *asked), (*warnings, *told)
        return _answer(request, errors, warnings)

    async def validate_runtime(self, request: review.Request) -> dict[str, Any]:
        place = request.namespace
        verdict = await self._long.on(place, request.size, trainjob.judge_runtime, request)
        rights = await self._asks.held(verdict.claims, place, request.user_info)
        return _answer(request, (*verdict.errors, *rights[0]), verdict.warnings)

    async def validate_child(self, request: review.Request) -> dict[str, Any]:
        """Our labels open a job's network and its Service: only its controller may set them.

        For API servers that know no ValidatingAdmissionPolicy. Pods are made by Kubernetes itself,
        from Jobs; they are as good as the job that controls their Job, or their Job's JobSet.
        """
        user, now = request.user_info.username, _labels(request.object)
        if user == self._maker or not now:
            return review.allowed(request)
        if request.operation == review.UPDATE and now == _labels(request.old_object):
            return review.allowed(request)
        if user in JOB_CONTROLLERS and await self._asks.is_of_a_job(request):
            return review.allowed(request)
        rule = (
            "what has this label belongs to an MPI job or a TrainJob, and its controller makes it"
        )
        path = ("metadata", "labels", min(now))
        remedy = "remove the label, or create an MPIJob or a TrainJob"
        return review.refused(request, (FieldError(path, FORBIDDEN, rule=rule, remedy=remedy),))


def app(door: Endpoints) -> web.Application:
    served = web.Application(client_max_size=LARGEST)
    served.router.add_post("/mutate-mpijob", _handler(door.mutate))
    served.router.add_post("/validate-mpijob", _handler(door.validate))
    served.router.add_post("/mutate-trainjob", _handler(door.mutate_trainjob))
    served.router.add_post("/validate-trainjob", _handler(door.validate_trainjob))
    served.router.add_post("/validate-runtime", _handler(door.validate_runtime))
    served.router.add_post("/validate-child", _handler(door.validate_child))
    return served


def _answer(
    request: review.Request, errors: tuple[FieldError, ...], warnings: tuple[FieldError, ...]
) -> dict[str, Any]:
    if errors:
        return review.refused(request, errors, warnings)
    return review.allowed(request, warnings)


def _handler(judge: Judge) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            asked = await _read(await request.read())
        except msgspec.MsgspecError as error:
            return web.Response(status=400, text=f"this is no AdmissionReview: {error}\n")
        answer = msgspec.json.encode(await judge(asked))
        return web.Response(body=answer, content_type="application/json")

    return handle


async def _read(body: bytes) -> review.Request:
    """The request; what is nested too deeply in its objects is left for validation to refuse."""
    if len(body) <= bounds.SHORT_TEXT:
        return review.parse(_flat(body))
    return await asyncio.to_thread(lambda: review.parse(_flat(body)))


def _flat(body: bytes) -> bytes:
    """Without what is so deep that a walk over it could end the interpreter's stack."""
    return typed.shallow(body) if nesting.depth(body) > bounds.DECODED_NESTING else body


def _labels(data: dict[str, Any] | None) -> dict[str, str]:
    """Those by which jobs find their pods."""
    labels = ((data or {}).get("metadata") or {}).get("labels") or {}
    mpi = labels.get(LABEL_OPERATOR) == MPI_OPERATOR
    ours = (f"{DOMAIN}/", TRAINING_PREFIX) if mpi else (f"{DOMAIN}/",)
    return {key: value for key, value in labels.items() if key.startswith(ours)}
