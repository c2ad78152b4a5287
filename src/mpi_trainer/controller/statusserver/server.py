"""The status endpoint's server: upstream's path and answers, by TLS, on every replica.

Whatever comes is hostile until bounded: the size of a body, the time that it may take, how many are
answered at once, and how many are connected. Answers are a Kubernetes `Status`, or what was taken.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from aiohttp import web

from mpi_trainer.controller.statusserver.callers import Callers
from mpi_trainer.controller.statusserver.report import LARGEST, BadReport, Body, read
from mpi_trainer.controller.statusserver.writes import OtherJob, ReportWrites
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, Invalid, KubeError, NotFound
from mpi_trainer.render.trainjob.reporting import path
from mpi_trainer.runtime.connection_limit import ConnectionLimit
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.token_reviews import Busy

PORT: Final = 10443
BODY_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 30.0
AT_ONCE: Final = 128
OF_A_JOB: Final = 8
"""of those that are answered at once, so that slow bodies of one job do not keep out the others"""

log = logging.getLogger(__name__)


class RefusedReport(Exception):
    def __init__(self, code: int, reason: str, message: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(message)


class Endpoint:
    """Answers requests."""

    def __init__(self, callers: Callers, writes: ReportWrites) -> None:
        self._callers = callers
        self._writes = writes
        self._answering = 0
        self._of_jobs: Counter[str] = Counter()

    async def answer(self, request: web.Request) -> web.Response:
        if self._answering >= AT_ONCE:
            return _failure(RefusedReport(429, "TooManyRequests", "too many reports at once"))
        self._answering += 1
        try:
            return _json(await self._taken(request))
        except RefusedReport as refused:
            return _failure(refused)
        finally:
            self._answering -= 1

    async def _taken(self, request: web.Request) -> Body:
        key = Key(request.match_info["namespace"], request.match_info["name"])
        try:
            uid = await self._callers.job_uid(request.headers.get("Authorization", ""), key)
            if not uid:
                raise RefusedReport(403, "Forbidden", "only a pod of this job tells of it")
            report = read(await self._body(request, uid))
            if report is not None:
                await self._writes.write(key, uid, report)
        except BadReport as error:
            raise RefusedReport(422, "Invalid", str(error)) from None
        except Busy:
            raise RefusedReport(429, "TooManyRequests", "too many reports at once") from None
        except Invalid as error:
            raise RefusedReport(422, "Invalid", error.message) from None
        except (NotFound, Conflict, OtherJob):
            raise RefusedReport(404, "NotFound", "there is no such TrainJob any more") from None
        except KubeError as error:
            log.warning("a report of %s could not be taken: %s", key, error)
            raise RefusedReport(500, "InternalError", "the API server did not answer") from None
        return Body(report)

    async def _body(self, request: web.Request, uid: str) -> bytes:
        if self._of_jobs[uid] >= OF_A_JOB:
            raise Busy
        self._of_jobs[uid] += 1
        try:
            return await _body(request)
        finally:
            self._of_jobs[uid] -= 1
            self._of_jobs += Counter()  # without zeros


async def _body(request: web.Request) -> bytes:
    too_large = RefusedReport(413, "RequestEntityTooLarge", f"a report has at most {LARGEST} bytes")
    if (request.content_length or 0) > LARGEST:
        raise too_large
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large from None
    except TimeoutError:
        raise RefusedReport(
            408, "Timeout", f"the body took more than {BODY_SECONDS:.0f} s"
        ) from None


@asynccontextmanager
async def serve(
    client: Client, context: ssl.SSLContext, port: int, host: str | None = None
) -> AsyncIterator[int]:
    """Serves while entered; gives the port. `host` None means every address."""
    writes = ReportWrites(client)
    endpoint = Endpoint(Callers(client), writes)
    app = web.Application(client_max_size=LARGEST)
    app.router.add_post(path("{namespace}", "{name}"), endpoint.answer)
    app.router.add_route("*", "/{anything:.*}", _nothing)
    runner = web.AppRunner(
        app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=IDLE_SECONDS
    )
    await runner.setup()
    try:
        async with ConnectionLimit(runner, context).open(host, port) as found:
            yield found
    finally:
        await runner.cleanup()
        await writes.close()


async def _nothing(_: web.Request) -> web.Response:
    return _failure(RefusedReport(404, "NotFound", "nothing is served here"))


def _failure(refused: RefusedReport) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(refused),
        "reason": refused.reason,
        "code": refused.code,
    }
    answer = _json(status, refused.code)
    answer.force_close()  # so that each try of a client that is refused counts as a new connection
    if refused.code == 429:
        answer.headers["Retry-After"] = "1"
    return answer


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(value), status=status, content_type="application/json"
    )
