"""Problems as gRPC has them: a code, a message, and details that programs can read. Pure.

Guarantee: what is sent fits into the 8 KiB of metadata that clients take by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import grpc
from google.protobuf import any_pb2
from google.rpc import status_pb2

from mpi_trainer.server import values
from mpi_trainer.server.rpc.messages import filled
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1

DETAILS: Final = "grpc-status-details-bin"
_MESSAGE_BYTES: Final = 1200
"""of the message, in the form in which it is sent"""
_PROBLEM_BYTES: Final = 2600
_TEXT_BYTES: Final = 900
"""of each of a problem's texts"""

Code = grpc.StatusCode
Metadata = tuple[tuple[str, str | bytes], ...]

_BY_NAME: Final[Mapping[str, Code]] = {
    "exists": Code.ALREADY_EXISTS,
    "changed": Code.ABORTED,
    "conflict": Code.FAILED_PRECONDITION,
    "not-possible": Code.FAILED_PRECONDITION,
}
_BY_STATUS: Final[Mapping[int, Code]] = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    404: Code.NOT_FOUND,
    408: Code.ABORTED,
    409: Code.ABORTED,
    410: Code.ABORTED,
    413: Code.RESOURCE_EXHAUSTED,
    415: Code.INVALID_ARGUMENT,
    422: Code.INVALID_ARGUMENT,
    429: Code.RESOURCE_EXHAUSTED,
    500: Code.INTERNAL,
    503: Code.UNAVAILABLE,
    504: Code.DEADLINE_EXCEEDED,
}


def code(problem: values.Problem) -> Code:
    """By the kind of problem, where one status of HTTP stands for several."""
    name = problem.type.rpartition(":")[2]
    return _BY_NAME.get(name) or _BY_STATUS.get(problem.status, Code.UNKNOWN)


def message(problem: values.Problem) -> str:
    """For people: what is wrong, and what to do."""
    text = f"{problem.detail}\n\nhint: {problem.hint}" if problem.hint else problem.detail
    return cut(text, _MESSAGE_BYTES)


def details(problem: values.Problem) -> Metadata:
    """A google.rpc.Status, as clients of every language look for it."""
    packed = any_pb2.Any()
    packed.Pack(_problem(problem))
    number = code(problem).value[0]
    status = status_pb2.Status(code=number, message=message(problem), details=[packed])
    return ((DETAILS, status.SerializeToString()),)


def _problem(problem: values.Problem) -> v1.Problem:
    made = v1.Problem(
        type=problem.type,
        title=problem.title,
        status=problem.status,
        detail=cut(problem.detail, _TEXT_BYTES),
        hint=cut(problem.hint, _TEXT_BYTES // 2),
    )
    for number, error in enumerate(problem.errors):
        one = filled(v1.WrongField, error)
        for field in ("field", "message", "remedy", "position"):
            setattr(one, field, cut(getattr(one, field), _TEXT_BYTES // 2))
        if made.ByteSize() + one.ByteSize() > _PROBLEM_BYTES:
            made.errors_left_out = len(problem.errors) - number
            break
        made.errors.append(one)
    return made


def cut(text: str, most: int) -> str:
    """As much of a text as takes `most` bytes when every byte that is not plain takes three."""
    if len(text) * 9 <= most or len(quote(text, safe=_PLAIN)) <= most:
        return text
    held, kept = len(quote("…")), 0
    for kept, letter in enumerate(text):  # noqa: B007 - where it ends counts
        held += len(quote(letter, safe=_PLAIN))
        if held > most:
            break
    return f"{text[:kept]}…"


_PLAIN: Final = "".join(chr(number) for number in range(0x20, 0x7F) if number != ord("%"))
