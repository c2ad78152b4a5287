"""Problems as gRPC has them: the right code, and always small enough to be sent."""

from __future__ import annotations

import base64
from urllib.parse import quote

import grpc
import pytest
from google.rpc import status_pb2

from mpi_trainer.api.errors import INVALID, FieldError
from mpi_trainer.server.problems import problem
from mpi_trainer.server.rpc.statuses import code as code_of
from mpi_trainer.server.rpc.statuses import cut, details, message
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1

Code = grpc.StatusCode


@pytest.mark.parametrize(
    ("status", "name", "code"),
    [
        (400, "bad-request", Code.INVALID_ARGUMENT),
        (401, "unauthorized", Code.UNAUTHENTICATED),
        (403, "cluster", Code.PERMISSION_DENIED),
        (404, "not-found", Code.NOT_FOUND),
        (409, "exists", Code.ALREADY_EXISTS),
        (409, "conflict", Code.FAILED_PRECONDITION),
        (409, "cluster", Code.ABORTED),
        (412, "changed", Code.ABORTED),
        (413, "too-large", Code.RESOURCE_EXHAUSTED),
        (422, "invalid-job", Code.INVALID_ARGUMENT),
        (422, "not-possible", Code.FAILED_PRECONDITION),
        (429, "rate", Code.RESOURCE_EXHAUSTED),
        (500, "fault", Code.INTERNAL),
        (502, "cluster", Code.UNKNOWN),
        (503, "busy", Code.UNAVAILABLE),
        (504, "time-out", Code.DEADLINE_EXCEEDED),
    ],
)
def test_a_problem_has_the_code_that_clients_expect(status: int, name: str, code: Code) -> None:
    assert code_of(problem(status, name, "x")) is code


def test_the_details_hold_the_whole_problem() -> None:
    errors = [FieldError(("spec", "slots"), INVALID, 0, "must be 1 or more", "give 1")]
    one = problem(422, "invalid-job", "slots: wrong", "Mend it.", errors)
    assert message(one) == "slots: wrong\n\nhint: Mend it."
    found = v1.Problem()
    status = status_pb2.Status.FromString(bytes(details(one)[0][1]))  # type: ignore[arg-type]
    assert status.details[0].Unpack(found)
    assert (status.code, status.message) == (Code.INVALID_ARGUMENT.value[0], message(one))
    assert (found.status, found.detail, found.hint) == (422, "slots: wrong", "Mend it.")
    assert [(e.field, e.remedy) for e in found.errors] == [("spec.slots", "give 1")]
    assert found.errors_left_out == 0


@pytest.mark.parametrize("letter", ["x", "ä", "\n", "😀", "%"])
def test_a_large_problem_fits_into_a_clients_metadata(letter: str) -> None:
    """8 KiB, with 32 bytes for each entry."""
    errors = [FieldError((f"f{n}",), INVALID, letter * 500, letter * 500) for n in range(100)]
    large = problem(422, "invalid-job", letter * 100_000, letter * 9000, errors)
    sent = len(quote(message(large))) + len(base64.b64encode(bytes(details(large)[0][1])))  # type: ignore[arg-type]
    assert sent < 8000
    found = v1.Problem()
    status_pb2.Status.FromString(bytes(details(large)[0][1])).details[0].Unpack(found)  # type: ignore[arg-type]
    assert found.detail.endswith("…")
    assert len(found.errors) + found.errors_left_out == 100


def test_a_text_is_cut_only_where_it_must_be() -> None:
    assert cut("abc", 3) == "abc" and cut("", 0) == ""
    assert cut("a" * 100, 20) == "a" * 11 + "…"
    assert len(quote(cut("ä" * 1000, 60))) <= 60
