"""What went wrong, as RFC 9457 has it and in the words of `odh`. Pure.

Guarantee: every error that a user can mend has a status of 4xx, what is wrong, and what to do. A
fault of ours is a 500 that shows nothing of its inside. Danger: `detail` is shown to the caller
alone and holds names of their own objects; do not put it into a shared log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from mpi_trainer.api.errors import ExplainedError, FieldError, InvalidJob
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.local.errors import LocalError
from mpi_trainer.sdk.backends.cluster.errors import server_words, translated
from mpi_trainer.sdk.errors import (
    ClusterUnreachable,
    JobChanged,
    JobError,
    JobExists,
    JobNotFound,
    JobTimeout,
    K8sApiException,
    NotShippable,
    RuntimeNotFound,
    VolumeNotFound,
)
from mpi_trainer.server.values import Problem, WrongField

MEDIA_TYPE: Final = "application/problem+json"
_TYPE: Final = "urn:problem-type:mpi-trainer"
_PASSED_ON: Final = frozenset({400, 401, 403, 404, 409, 410, 422, 429})
"""answers of the API server that are the caller's to mend; others are the cluster's fault"""

_STATUS: Final = (
    (JobNotFound, 404, "not-found"),
    (RuntimeNotFound, 404, "not-found"),
    (VolumeNotFound, 404, "not-found"),
    (JobExists, 409, "exists"),
    (JobChanged, 412, "changed"),
    (NotShippable, 422, "invalid-code"),
    (JobTimeout, 504, "time-out"),
    (ClusterUnreachable, 503, "cluster-unreachable"),
)


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, problem: Problem, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers


def problem(
    status: int, name: str, detail: str, hint: str = "", errors: Iterable[FieldError] = ()
) -> Problem:
    """`name` says which kind of problem it is, whatever the words."""
    return Problem(
        type=f"{_TYPE}:{name}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        hint=hint,
        errors=tuple(_wrong(error) for error in errors),
    )


def refused(
    status: int, name: str, detail: str, hint: str = "", errors: Iterable[FieldError] = ()
) -> Refused:
    return Refused(problem(status, name, detail, hint, errors))


def bad_request(errors: Iterable[FieldError]) -> Refused:
    """Parameters of a request that cannot be read."""
    found = tuple(errors)
    return refused(400, "bad-request", "\n".join(map(str, found)), errors=found)


def too_many(wait: float) -> Refused:
    """`wait` seconds until the next call is taken."""
    seconds = str(math.ceil(wait))
    detail = "too many calls in a short time"
    made = problem(429, "rate", detail, f"Wait {seconds} s before the next one.")
    return Refused(made, (("Retry-After", seconds),))


def explained(error: Exception) -> Problem | None:
    """The problem that an error of ours is; None for a fault of the program."""
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, InvalidJob):
        return problem(422, "invalid-job", str(error), errors=error.errors)
    if isinstance(error, KubeError):
        error = translated(error)
    if isinstance(error, JobError):
        return _of_job(error)
    if isinstance(error, ExplainedError | LocalError):
        return problem(422, "not-possible", error.problem, error.hint)
    if isinstance(error, TimeoutError):
        return problem(
            504,
            "time-out",
            "no answer in time; what was asked for may or may not have happened",
            "Look at the job before you repeat the call.",
        )
    return None


def fault() -> Problem:
    return problem(
        500,
        "fault",
        "this is a fault of the server, not of the request",
        "Please report it, with the server's log of this moment.",
    )


def _of_job(error: JobError) -> Problem:
    if isinstance(error, K8sApiException):
        status = error.status if error.status in _PASSED_ON else 502
        return problem(status, "cluster", server_words(error), error.hint)
    for kind, status, name in _STATUS:
        if isinstance(error, kind):
            return problem(status, name, error.problem, error.hint)
    if isinstance(error.__cause__, LocalError):
        return problem(422, "not-possible", error.problem, error.hint)
    return problem(409, "conflict", error.problem, error.hint)


def _wrong(error: FieldError) -> WrongField:
    return WrongField(
        field=error.field,
        message=str(error),
        remedy=error.remedy,
        position=str(error.position) if error.position else "",
    )
