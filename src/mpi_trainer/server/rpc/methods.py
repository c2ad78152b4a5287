"""The methods of the service MPIJobs, as tables over the endpoints of REST."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

import msgspec
from google.protobuf.message import Message

from mpi_trainer.api.kinds import mpijob
from mpi_trainer.server.endpoint import Answer, Endpoint
from mpi_trainer.server.endpoints import ENDPOINTS
from mpi_trainer.server.live.endpoint import LiveCall
from mpi_trainer.server.rpc import streams
from mpi_trainer.server.rpc.messages import filled, job
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1

SERVICE: Final = "mpitrainer.v1.MPIJobs"


class Method(msgspec.Struct, frozen=True):
    """One that answers once: an endpoint, and its answer as a message."""

    name: str
    request: type[Message]
    endpoint: Endpoint
    message: Callable[[Answer], Message]


class Stream(msgspec.Struct, frozen=True):
    """One that answers until there is nothing more to tell."""

    name: str
    request: type[Message]
    run: Callable[[LiveCall], AsyncGenerator[Message, None]]
    query: type[msgspec.Struct]
    kind: str = mpijob.KIND


def _job(answer: Answer) -> Message:
    return job(answer.value, dict(answer.headers).get("ETag", ""))


def _deleted(answer: Answer) -> Message:
    left: Any = None if answer.value is None else filled(v1.MPIJob, answer.value)
    return v1.DeleteMPIJobResponse(job=left)


def _as(kind: type[Message]) -> Callable[[Answer], Message]:
    return lambda answer: filled(kind, answer.value)


_BY_NAME: Final = {one.name: one for one in ENDPOINTS}

METHODS: Final = tuple(
    Method(name, request, _BY_NAME[endpoint], message)
    for name, request, endpoint, message in (
        ("CreateMPIJob", v1.CreateMPIJobRequest, "createMPIJobShort", _job),
        ("GetMPIJob", v1.GetMPIJobRequest, "getMPIJobShort", _job),
        ("ListMPIJobs", v1.ListMPIJobsRequest, "listMPIJobsShort", _as(v1.ListMPIJobsResponse)),
        ("DeleteMPIJob", v1.DeleteMPIJobRequest, "deleteMPIJobShort", _deleted),
        ("GetMPIJobStatus", v1.GetMPIJobStatusRequest, "getStatusOfMPIJobShort",
         _as(v1.MPIJobStatus)),
    )
)  # fmt: skip
STREAMS: Final = (
    Stream(
        "WatchMPIJobStatus", v1.WatchMPIJobStatusRequest, streams.watch_status, streams.WatchQuery
    ),
    Stream("GetMPIJobLogs", v1.GetMPIJobLogsRequest, streams.job_logs, streams.FollowQuery),
)
