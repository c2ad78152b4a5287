"""Lines of pods that are gone, out of a Loki such as that of OpenShift Logging.

One fixed query for each reading, with the job's namespace and the names that its pods have. A
caller's token goes to the Loki only with `tenancy`, where that decides by it once more. Guarantee:
answers are bounded, no redirection is followed, and nothing is read for somebody whom the cluster
does not let read logs of pods in that namespace now (`Reviewed`).
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final, Literal

import aiohttp
import msgspec

from mpi_trainer.api.kinds import mpijob
from mpi_trainer.diagnose.rank_lines import RankLines
from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.sdk.backends.backend import JobView, LogLine, LogQuery
from mpi_trainer.sdk.backends.log_store import LogStore
from mpi_trainer.sdk.errors import JobError, K8sApiException
from mpi_trainer.server.prometheus import PrometheusSettings, quoted

MOST_LINES: Final = 5000
"""what a Loki gives at once unless it is told otherwise"""
SECONDS: Final = 20.0
LARGEST_ANSWER: Final = 16 * 1024 * 1024
LABELS: Final = ("kubernetes_namespace_name", "kubernetes_pod_name")
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}")
_LATE: Final = timedelta(minutes=5)
"""after a job's end, for lines that were collected late"""
_BEFORE_ALL: Final = datetime.fromtimestamp(0, UTC)

MayRead = Callable[[str], Awaitable[bool]]


class LokiSettings(msgspec.Struct, frozen=True):
    """`labels`: what the collector calls namespace and pod."""

    url: str
    ca_file: str = ""
    tenancy: bool = False
    labels: tuple[str, str] = LABELS

    def checked(self) -> LokiSettings:
        """ConfigError where it makes no sense, or a token would be shown."""
        try:
            PrometheusSettings(self.url, self.ca_file, self.tenancy).checked()
        except ConfigError as error:
            raise ConfigError(str(error).replace("--prometheus", "--log-store")) from None
        if not all(_LABEL.fullmatch(label) for label in self.labels):
            raise ConfigError("--log-store-labels takes two names of labels: NAMESPACE,POD")
        return self


class _Stream(msgspec.Struct, frozen=True):
    stream: dict[str, str] = {}
    values: tuple[tuple[str, str], ...] = ()


class _Data(msgspec.Struct, frozen=True):
    result: tuple[_Stream, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    status: str = ""
    data: _Data = _Data()


class Reviewed:
    """A store that is read for nobody who may not read the logs of pods."""

    def __init__(self, store: LogStore, may_read: MayRead) -> None:
        self._store = store
        self._may_read = may_read

    async def lines(self, job: JobView, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        if not await self._may_read(job.namespace):
            raise K8sApiException(
                f"you may not get pods/log in namespace {job.namespace}",
                HTTPStatus.FORBIDDEN,
                hint="Ask an administrator for the right.",
            )
        async with aclosing(self._store.lines(job, query)) as found:
            async for line in found:
                yield line


class Loki:
    """As one caller asks it; `token` is theirs."""

    def __init__(self, settings: LokiSettings, token: str) -> None:
        self._settings = settings
        self._token = token

    async def lines(self, job: JobView, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        body = await self._asked(self._parameters(job, query))
        for line in _lines(body, self._settings.labels[1]):
            yield line

    def _parameters(self, job: JobView, query: LogQuery) -> dict[str, str]:
        """The newest lines of the time in which the job was there: another one of its name may
        have been before it."""
        began = job.times.created or _BEFORE_ALL
        ended = (job.times.completed or datetime.now(UTC)) + _LATE
        namespace, pod = self._settings.labels
        selector = f"{{{namespace}={quoted(job.namespace)},{pod}=~{quoted(pods(job, query))}}}"
        return {
            "query": selector,
            "start": _nanoseconds(max(began, query.since) if query.since else began),
            "end": _nanoseconds(min(ended, query.until) if query.until else ended),
            "direction": "backward",
            "limit": str(MOST_LINES),
        }

    async def _asked(self, parameters: dict[str, str]) -> bytes:
        login = {"Authorization": f"Bearer {self._token}"} if self._settings.tenancy else {}
        address = f"{self._settings.url.rstrip('/')}/loki/api/v1/query_range"
        authority = self._settings.ca_file
        trust = ssl.create_default_context(cafile=authority) if authority else True
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
                session.get(
                    address, params=parameters, headers=login, allow_redirects=False, ssl=trust
                ) as reply,
            ):
                body = bytearray()
                while len(body) <= LARGEST_ANSWER and (more := await reply.content.readany()):
                    body += more
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unread(type(error).__name__) from error
        if reply.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise _unread("it does not let you read logs of this namespace")
        if reply.status != HTTPStatus.OK or len(body) > LARGEST_ANSWER:
            raise _unread(f"its answer is not as it should be (status {reply.status})")
        return bytes(body)


def pods(job: JobView, query: LogQuery) -> str:
    """A regular expression for the pods whose lines the query asks for."""
    name = re.escape(job.name)
    if job.kind == mpijob.KIND:
        launcher, worker = f"{name}-launcher(-[a-z0-9]+)?", f"{name}-worker-"
        after = ""
    else:
        launcher, worker = f"{name}-launcher-0-0-[a-z0-9]+", f"{name}-node-0-"
        after = "-[a-z0-9]+"
    if query.worker is not None:
        return f"{worker}{query.worker}{after}"
    every = f"{launcher}|{worker}[0-9]+{after}"
    if query.pod:
        return re.escape(query.pod) if re.fullmatch(every, query.pod) else "-"
    return every if query.all_pods else launcher


def _nanoseconds(at: datetime) -> str:
    return str(int(at.timestamp() * 1e9))


def _lines(body: bytes, label: str) -> Iterator[LogLine]:
    """Oldest first; a pod's lines in the order in which they were written."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        entries = [
            (int(at), one.stream.get(label, ""), text)
            for one in answer.data.result
            for at, text in reversed(one.values)
        ]
        entries.sort(key=lambda entry: entry[0])
    except (msgspec.MsgspecError, ValueError) as error:
        raise _unread("its answer cannot be read") from error
    readers: dict[str, RankLines] = {}
    for at, pod, text in entries:
        role: Literal["launcher", "worker"] = "launcher" if "-launcher" in pod else "worker"
        reader = readers.setdefault(pod, RankLines(pod, role, "stdout"))
        time = datetime.fromtimestamp(at / 1e9, UTC)
        for line in reader.feed(_message(text).encode() + b"\n"):
            yield LogLine(time, pod, "stdout", line.rank, line.text)


def _message(text: str) -> str:
    """What the pod wrote: OpenShift's collector puts it into a record of its own."""
    if text.startswith("{") and '"kubernetes"' in text:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(record.get("message"), str) and "kubernetes" in record:
            return str(record["message"])
    return text


def _unread(why: str) -> JobError:
    return JobError(
        f"the pods of the job are gone, and the log store cannot be read: {why}",
        "The last lines that a job keeps are in its status: `attempts`.",
    )
