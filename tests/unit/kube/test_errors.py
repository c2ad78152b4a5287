"""An error keeps what the server said, and says what to do."""

from __future__ import annotations

import json

import pytest

from mpi_trainer.kube import errors, requests
from mpi_trainer.kube.errors import from_answer
from mpi_trainer.kube.resources import PODS

REQUEST = requests.get(PODS, "n", "p")


def status(code: int, reason: str, **more: object) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, **more}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.ApiError),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerFault),
        (504, "Timeout", errors.ServerFault),
    ],
)
def test_each_answer_has_its_error(code: int, reason: str, kind: type[errors.ApiError]) -> None:
    error = from_answer(REQUEST, code, status(code, reason, message="words"))
    assert type(error) is kind
    assert (error.code, error.reason, error.message) == (code, reason, "words")
    assert str(error).startswith(f"GET /api/v1/namespaces/n/pods/p: {code} {reason}: words")


def test_details_are_kept() -> None:
    details = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
    error = from_answer(REQUEST, 403, status(403, "Forbidden", details=details))
    assert error.details == details
    assert error.has_cause("NamespaceTerminating")
    assert not error.has_cause("Other")


@pytest.mark.parametrize("body", [b"", b"<html>\n <b>no</b>", b"\xff\xfe", b"[]", b'{"code":"x"}'])
def test_what_is_no_status_is_shown_shortened_in_one_line(body: bytes) -> None:
    error = from_answer(REQUEST, 502, body * 1000)
    assert isinstance(error, errors.ServerFault)
    assert "\n" not in str(error)
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("", None), ("Wed, 21 Oct", None), ("-1", None), ("²", None)],
)
def test_a_wish_to_wait_is_seconds_or_nothing(header: str, seconds: float | None) -> None:
    assert from_answer(REQUEST, 429, b"", header).retry_after == seconds
