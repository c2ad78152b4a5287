"""The gRPC API as tests use it: a server beside that of REST, plain calls, and a Backend over them,
so that `tests/lifecycle.py` runs over gRPC."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC
from typing import Any

import mpi_trainer.server.rpc  # noqa: F401 - before gRPC itself, whose threads it tames

# isort: split
import grpc
import msgspec
from google.protobuf.message import Message
from grpc_status import rpc_status

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import (
    ALL_JOBS,
    Backend,
    JobDetails,
    JobQuery,
    JobSummary,
    JobView,
    Key,
    LogLine,
    LogQuery,
    PodInfo,
    RankInfo,
)
from mpi_trainer.sdk.backends.views import mpijob_view
from mpi_trainer.sdk.errors import JobError, JobExists, JobNotFound
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import Callers
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.rpc.listening import listening as rpc_listening
from mpi_trainer.server.rpc.service import Service
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1
from mpi_trainer.server.rpc.v1 import mpijobs_pb2_grpc
from mpi_trainer.server.serve import LOOPBACK, listening
from tests.rest import Rest, RestBackend, join

SECONDS = 60.0
_STUB: Any = mpijobs_pb2_grpc.MPIJobsStub
_ERRORS: Mapping[str, type[JobError]] = {"not-found": JobNotFound, "exists": JobExists}
ServiceOf = Callable[[Calls], Service]


class Ports(msgspec.Struct, frozen=True):
    rest: int
    rpc: int


@contextmanager
def served(
    callers: Callers, settings: Settings | None = None, service: ServiceOf = Service
) -> Iterator[Ports]:
    """REST and gRPC in a thread of their own, with the same limits."""
    ready: asyncio.Queue[Ports] = asyncio.Queue()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    chosen = settings or Settings()

    async def work() -> None:
        calls = Calls(callers, chosen.rate, chosen.at_once, chosen.live)
        async with AsyncExitStack() as stack:
            rest = await stack.enter_async_context(listening(callers, LOOPBACK, 0, chosen, calls))
            rpc = await stack.enter_async_context(
                rpc_listening(calls, LOOPBACK, 0, service=service(calls))
            )
            ready.put_nowait(Ports(rest, rpc))
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(work())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(ready.get(), loop).result(30)
    finally:
        loop.call_soon_threadsafe(stop.set)
        join(thread)


class Refusal(msgspec.Struct, frozen=True):
    """What came instead of an answer: its code, its message, and the problem in its details."""

    code: grpc.StatusCode
    message: str
    problem: v1.Problem
    metadata: Mapping[str, Any]


def refusal(error: Any) -> Refusal:
    found = rpc_status.from_call(error)
    problem = v1.Problem()
    if found is not None:
        assert found.details[0].Unpack(problem)
    metadata = dict(error.trailing_metadata() or ())
    return Refusal(error.code(), error.details() or "", problem, metadata)


class Rpc(msgspec.Struct, frozen=True):
    """A server, and the login that is sent to it; none where it is empty."""

    port: int
    token: str = ""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def stub(self, channel: Any) -> Any:
        return _STUB(channel)

    def ask(self, method: str, request: Message, timeout: float = SECONDS) -> Any:
        """The answer, all answers of a stream, or the Refusal."""
        with grpc.insecure_channel(f"{LOOPBACK}:{self.port}") as channel:
            call = getattr(_STUB(channel), method)
            try:
                answer = call(request, timeout=timeout, metadata=self.metadata)
                return answer if isinstance(answer, Message) else [*answer]
            except grpc.RpcError as error:
                return refusal(error)


class RpcBackend(RestBackend):
    """What gRPC has of a Backend by gRPC, and the rest by REST of the same server."""

    def __init__(self, rest: Rest, rpc: Rpc, namespace: str = "default", image: str = "") -> None:
        super().__init__(rest, namespace, image)
        self._rpc = rpc
        self.name = "grpc"

    def of_kind(self, kind: str) -> RpcBackend:
        assert kind in ("", "MPIJob")
        return self

    async def create(self, job: MPIJob, workdir: str = "") -> JobView:
        assert not workdir, "code is not uploaded"
        request = v1.CreateMPIJobRequest(
            namespace=job.namespace or self.namespace, manifest_json=json.dumps(self._wire(job))
        )
        return _view(await self._call("CreateMPIJob", request))

    async def get(self, key: Key) -> JobView:
        return _view(await self._call("GetMPIJob", v1.GetMPIJobRequest(**_key(key))))

    async def details(self, key: Key) -> JobDetails:
        view = await self.get(key)
        found = await self._call("GetMPIJobStatus", v1.GetMPIJobStatusRequest(**_key(key)))
        events = (await super().details(key)).events
        return JobDetails(
            job=view,
            pods=tuple(
                PodInfo(one.name, one.role, one.index, one.phase, one.ready, end=one.end)
                for one in found.pods
            ),
            ranks=tuple(
                RankInfo(one.rank, one.pod, one.address, 0, one.end) for one in found.ranks
            ),
            events=events,
            progress=_progress(found),
            waits_for=found.waits_for,
            missing=found.missing,
        )

    async def list(
        self, namespace: str | None = None, query: JobQuery = ALL_JOBS
    ) -> Sequence[JobSummary]:
        request = v1.ListMPIJobsRequest(namespace=namespace or "", limit=500)
        found = await self._call("ListMPIJobs", request)
        return [
            JobSummary(
                Key(one.namespace, one.name),
                v1.JobState.Name(one.state).removeprefix("JOB_STATE_").capitalize(),
                one.created.ToDatetime(UTC),
            )
            for one in found.items
        ]

    async def logs(self, key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        request = v1.GetMPIJobLogsRequest(
            **_key(key),
            follow=query.follow,
            tail=query.tail or 0,
            contains=query.grep or "",
            rank=query.rank,
            worker=query.worker,
            attempt=query.attempt or 0,
        )
        async for answer in self._stream("GetMPIJobLogs", request):
            for one in answer.lines:
                yield _line(one)

    async def watch(self, key: Key) -> AsyncGenerator[JobView, None]:
        request = v1.WatchMPIJobStatusRequest(**_key(key))
        async for answer in self._stream("WatchMPIJobStatus", request):
            if answer.HasField("deleted"):
                return
            try:
                yield await self.get(key)
            except JobNotFound:
                return

    async def delete(self, key: Key, seen: JobView | None = None) -> None:
        await self._call("DeleteMPIJob", v1.DeleteMPIJobRequest(**_key(key)))

    async def _call(self, method: str, request: Message) -> Any:
        async with self._channel() as channel:
            call = getattr(_STUB(channel), method)
            try:
                return await call(request, metadata=self._rpc.metadata)
            except grpc.aio.AioRpcError as error:
                raise _error(error) from None

    async def _stream(self, method: str, request: Message) -> AsyncGenerator[Any, None]:
        async with self._channel() as channel:
            call = getattr(_STUB(channel), method)
            try:
                async for answer in call(request, metadata=self._rpc.metadata):
                    yield answer
            except grpc.aio.AioRpcError as error:
                raise _error(error) from None

    def _channel(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(f"{LOOPBACK}:{self._rpc.port}")


def backend(rest: Rest, rpc: Rpc, namespace: str = "default", image: str = "") -> Backend:
    """The part of the protocol that is needed here."""
    made: Any = RpcBackend(rest, rpc, namespace, image)
    return made  # type: ignore[no-any-return]


def _key(key: Key) -> Any:
    return {"namespace": key.namespace, "name": key.name}


def _view(found: v1.MPIJob) -> JobView:
    manifest = json.loads(found.manifest_json)
    return mpijob_view(decode(MPIJob, manifest).value, manifest)


def _progress(found: Any) -> Progress | None:
    if not found.HasField("progress"):
        return None
    given = {field.name: value for field, value in found.progress.ListFields()}
    given.pop("fraction", None)
    whole = {"step": None, "total": None, "unit": "", "eta_seconds": None}
    return msgspec.convert(whole | given | {"metrics": dict(found.progress.metrics)}, Progress)


def _line(one: Any) -> LogLine:
    return LogLine(
        one.time.ToDatetime(UTC),
        one.pod,
        one.stream,
        one.rank if one.HasField("rank") else None,
        one.text,
        one.attempt,
        one.lost,
        tuple(one.notes),
    )


def _error(error: grpc.aio.AioRpcError) -> JobError:
    problem = refusal(error).problem
    kind = _ERRORS.get(problem.type.rpartition(":")[2], JobError)
    return kind(problem.detail or error.details() or "", problem.hint)
