"""Errors as RFC 9457 problems, in the words of `odh`."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from mpi_trainer.api.errors import ExplainedError, FieldError, InvalidJob, Position
from mpi_trainer.kube.errors import Unreachable
from mpi_trainer.kube.requests import Request
from mpi_trainer.local.errors import CannotApply
from mpi_trainer.sdk.errors import (
    ClusterUnreachable,
    JobChanged,
    JobError,
    JobExists,
    JobNotFound,
    JobTimeout,
    K8sApiException,
    RuntimeNotFound,
)
from mpi_trainer.server import problems
from mpi_trainer.server.problems import explained


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (JobNotFound("job a/b not found", "List jobs."), 404, "not-found"),
        (RuntimeNotFound("no runtime", "List them."), 404, "not-found"),
        (JobExists("job a/b already exists", "Choose another."), 409, "exists"),
        (JobChanged("job a/b has changed", "Read it again."), 412, "changed"),
        (JobTimeout("not in time", "Wait."), 504, "time-out"),
        (ClusterUnreachable("no answer", "Check the network."), 503, "cluster-unreachable"),
        (JobError("job a/b has ended and cannot be suspended", "Run it again."), 409, "conflict"),
        (caused(JobError("spec.x", "Leave it out."), CannotApply("spec.x")), 422, "not-possible"),
        (ExplainedError("there is no runtime", "Create it."), 422, "not-possible"),
        (K8sApiException("forbidden: you may not", 403, "", "Ask."), 403, "cluster"),
        (K8sApiException("unauthorized", 401, "", "Log in."), 401, "cluster"),
        (K8sApiException("too many requests", 429, "", "Wait."), 429, "cluster"),
        (K8sApiException("the server is broken", 500, "", "Wait."), 502, "cluster"),
    ],
)
def test_an_error_has_its_status_its_words_and_its_hint(
    error: Exception, status: int, name: str
) -> None:
    found = explained(error)
    assert found is not None
    assert found.status == status and found.title == HTTPStatus(status).phrase
    assert found.type == f"urn:problem-type:mpi-trainer:{name}"
    assert found.detail == str(error) and found.hint


def test_every_wrong_field_is_named_with_its_remedy_and_its_place() -> None:
    wrong = FieldError(
        ("spec", "slotsPerWorker"), "Invalid value", -1, "must be at least 1", "use 1",
        Position("body", 3, 7),
    )  # fmt: skip
    found = explained(InvalidJob([wrong]))
    assert found is not None and found.status == 422
    (one,) = found.errors
    assert (one.field, one.remedy, one.position) == ("spec.slotsPerWorker", "use 1", "body:3:7")
    assert one.message == "spec.slotsPerWorker: Invalid value: -1: must be at least 1; use 1"
    assert one.message in found.detail


def test_errors_of_the_client_and_time_outs_are_told_in_words() -> None:
    unreachable = explained(Unreachable(Request("GET", "/x"), "connect", "connection refused"))
    assert unreachable is not None and unreachable.status == 503
    late = explained(TimeoutError())
    assert late is not None and late.status == 504 and "may or may not" in late.detail


def test_a_fault_of_ours_shows_nothing_of_its_inside() -> None:
    assert explained(KeyError("secret")) is None
    assert "secret" not in problems.fault().detail and problems.fault().status == 500


def test_too_many_calls_say_when_the_next_one_is_taken() -> None:
    error = problems.too_many(1.2)
    assert error.problem.status == 429 and ("Retry-After", "2") in error.headers
