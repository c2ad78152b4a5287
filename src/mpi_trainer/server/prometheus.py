"""What pods used over time, out of a Prometheus.

Nobody's queries are passed on: there are a few fixed ones, to which the namespace and the names of
pods are added here. Guarantee: the namespace is one that the caller may list pods of, which is for
whoever calls this to ask the cluster; names are quoted whatever they hold; answers are bounded. A
caller's token goes to a Prometheus only with `tenancy`, where that decides by it once more; it is
sent to the address of the settings alone, and no redirection is followed.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from mpi_trainer.diagnose.series import MOST_POINTS, Point
from mpi_trainer.kube.errors import ConfigError

MOST_PODS: Final = 50
"""named in a query; an address has room for them"""
SHORTEST_STEP: Final = 5.0
SECONDS: Final = 15.0
LARGEST_ANSWER: Final = 4 * 1024 * 1024
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})

# {here} becomes the matchers of namespace and pods, {there} the same for the label names that a
# scrape without honor_labels leaves.
QUERIES: Final[Mapping[str, tuple[str, str]]] = {
    "cpus": (
        'sum by (pod) (rate(container_cpu_usage_seconds_total{{here},container!="",'
        'container!="POD"}[2m]))',
        "cores",
    ),
    "memoryBytes": (
        'sum by (pod) (container_memory_working_set_bytes{{here},container!="",container!="POD"})',
        "bytes",
    ),
    "receivedBytes": (
        "sum by (pod) (rate(container_network_receive_bytes_total{{here}}[2m]))",
        "bytes/s",
    ),
    "sentBytes": (
        "sum by (pod) (rate(container_network_transmit_bytes_total{{here}}[2m]))",
        "bytes/s",
    ),
    "gpuPercent": (
        "avg by (pod) (DCGM_FI_DEV_GPU_UTIL{{here}}) or label_replace(avg by (exported_pod)"
        ' (DCGM_FI_DEV_GPU_UTIL{{there}}), "pod", "$1", "exported_pod", "(.*)")',
        "percent",
    ),
    "gpuMemoryBytes": (
        "sum by (pod) (DCGM_FI_DEV_FB_USED{{here}} * 1048576) or label_replace(sum by"
        ' (exported_pod) (DCGM_FI_DEV_FB_USED{{there}} * 1048576), "pod", "$1", "exported_pod",'
        ' "(.*)")',
        "bytes",
    ),
}
"""by the name of the series: what is asked, and its unit"""


class PrometheusSettings(msgspec.Struct, frozen=True):
    """`tenancy`: the Prometheus takes the caller's token and a `namespace`, as OpenShift's does on
    its port for tenants. `ca_file`: whom to trust; the system's authorities where it is empty."""

    url: str
    ca_file: str = ""
    tenancy: bool = False

    def checked(self) -> PrometheusSettings:
        """ConfigError where a token would go over the network in the clear, or nowhere."""
        try:
            parts = urlsplit(self.url)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname)
            sound = sound and not (parts.username or parts.query or parts.fragment)
        except ValueError:
            sound = False
        if not sound:
            raise ConfigError(f"--prometheus {self.url!r} is no address such as https://HOST:9092")
        if self.tenancy and parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise ConfigError("--prometheus-tenancy sends tokens: use an https address")
        return self


class PodSeries(msgspec.Struct, frozen=True):
    name: str
    pod: str
    unit: str
    points: tuple[Point, ...]


class Window(msgspec.Struct, frozen=True):
    """From when to when, in epoch seconds."""

    start: float
    end: float

    @property
    def step(self) -> float:
        return max(SHORTEST_STEP, math.ceil((self.end - self.start) / MOST_POINTS))


class _Result(msgspec.Struct, frozen=True):
    metric: Mapping[str, str] = {}
    values: tuple[tuple[float, str], ...] = ()


class _Data(msgspec.Struct, frozen=True):
    result: tuple[_Result, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    status: str = ""
    data: _Data = _Data()


class _Unanswered(Exception):
    """Why there are no figures, for a note."""


class Prometheus:
    """As one caller asks it; `token` is theirs."""

    def __init__(self, settings: PrometheusSettings, token: str) -> None:
        self._settings = settings
        self._token = token

    async def usage(
        self, namespace: str, pods: Sequence[str], window: Window
    ) -> tuple[tuple[PodSeries, ...], tuple[str, ...]]:
        """The series of these pods, and notes on what is missing."""
        if not pods:
            return (), ("no pods of the job are known to ask Prometheus for",)
        notes = []
        if len(pods) > MOST_PODS:
            notes.append(f"usage of the first {MOST_PODS} of {len(pods)} pods")
        known = frozenset(pods[:MOST_PODS])
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
            asked = (
                self._series(session, name, self._parameters(query, namespace, known, window))
                for name, (query, _) in QUERIES.items()
            )
            answers = await asyncio.gather(*asked, return_exceptions=True)
        found: list[PodSeries] = []
        for answer in answers:
            if isinstance(answer, _Unanswered):
                notes.append(str(answer))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found += (one for one in answer if one.pod in known)
        return tuple(found), tuple(dict.fromkeys(notes))

    def _parameters(
        self, query: str, namespace: str, pods: frozenset[str], window: Window
    ) -> dict[str, str]:
        given = {
            "query": query_text(query, namespace, pods),
            "start": f"{window.start:.3f}",
            "end": f"{window.end:.3f}",
            "step": f"{window.step:g}",
            "timeout": f"{SECONDS:g}s",
        }
        return {**given, "namespace": namespace} if self._settings.tenancy else given

    async def _series(
        self, session: aiohttp.ClientSession, name: str, parameters: Mapping[str, str]
    ) -> tuple[PodSeries, ...]:
        login = {"Authorization": f"Bearer {self._token}"} if self._settings.tenancy else {}
        address = f"{self._settings.url.rstrip('/')}/api/v1/query_range"
        try:
            async with session.get(
                address, params=parameters, headers=login, allow_redirects=False, ssl=self._trust()
            ) as reply:
                body = await reply.content.read(LARGEST_ANSWER + 1)
                while len(body) <= LARGEST_ANSWER and (more := await reply.content.readany()):
                    body += more
                status = reply.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _Unanswered(f"Prometheus cannot be asked: {type(error).__name__}") from error
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise _Unanswered("Prometheus does not let you read metrics of this namespace")
        if status != HTTPStatus.OK or len(body) > LARGEST_ANSWER:
            raise _Unanswered(f"Prometheus does not answer as it should (status {status})")
        return _parsed(name, body)

    def _trust(self) -> ssl.SSLContext | bool:
        found = self._settings.ca_file
        return ssl.create_default_context(cafile=found) if found else True


def query_text(query: str, namespace: str, pods: frozenset[str]) -> str:
    """The query with its matchers."""
    names = quoted("|".join(_literal(pod) for pod in sorted(pods)))
    space = quoted(namespace)
    here = f"namespace={space},pod=~{names}"
    there = f"exported_namespace={space},exported_pod=~{names}"
    return query.replace("{here}", here).replace("{there}", there)


def quoted(text: str) -> str:
    """A string of PromQL that means the text, whatever it holds."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


def _literal(text: str) -> str:
    """A regular expression (RE2) that matches the text alone."""
    return "".join(one if one.isalnum() or one == "-" else f"[{one}]" if one == "." else "\\" + one
                   for one in text)  # fmt: skip


def _parsed(name: str, body: bytes) -> tuple[PodSeries, ...]:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError as error:
        raise _Unanswered("Prometheus answers what cannot be read") from error
    if answer.status != "success":
        raise _Unanswered("Prometheus does not answer as it should")
    unit = QUERIES[name][1]
    return tuple(
        PodSeries(name, one.metric.get("pod", ""), unit, points)
        for one in answer.data.result
        if (points := _points(one.values))
    )


def _points(values: Sequence[tuple[float, str]]) -> tuple[Point, ...]:
    found = []
    for at, text in values[: 2 * MOST_POINTS]:
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value):
            found.append((at, value))
    return tuple(found)
