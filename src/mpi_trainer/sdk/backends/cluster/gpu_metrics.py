"""GPU figures from the pages of NVIDIA's DCGM exporter, or of a Prometheus that reads them.

A page is named by the user: an http(s) address, or a path of the API server's proxy, which is read
with the caller's own rights. No login is ever sent to another host. A page is read up to a bound
and in linear time; lines that are not DCGM's are passed over.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.requests import Request
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.usage import MEBIBYTE, GpuUsage

VARIABLE: Final = "MPI_TRAINER_GPU_METRICS"
LONGEST_PAGE: Final = 32 * MEBIBYTE
SECONDS: Final = 10.0
_LINE: Final = re.compile(r"(DCGM_\w{1,80})\{([^\n]{1,4096})\} ([^ \n]{1,40})")
_LABEL: Final = re.compile(r'(\w{1,80})="((?:[^"\\]|\\.)*)",?')
_LARGEST: Final = 1e15
_BUSY: Final = "DCGM_FI_DEV_GPU_UTIL"
_ACTIVE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_USED: Final = "DCGM_FI_DEV_FB_USED"
_FREE: Final = "DCGM_FI_DEV_FB_FREE"

Gpus = Mapping[tuple[str, str], tuple[GpuUsage, ...]]
"""by namespace and name of the pod that has them"""


class Pages(msgspec.Struct, frozen=True):
    """What all pages say; `problems` are those that could not be read, and why."""

    gpus: Gpus = {}
    problems: tuple[str, ...] = ()


async def read(server: ApiServer, sources: Sequence[str]) -> Pages:
    answers = await asyncio.gather(*(_page(server, source) for source in sources))
    texts = [text for text, problem in answers if not problem]
    return Pages(parse(texts), tuple(problem for _, problem in answers if problem))


async def _page(server: ApiServer, source: str) -> tuple[str, str]:
    """The page's text, or what is wrong."""
    try:
        if source.startswith("/"):
            request = Request("GET", source, timeout=SECONDS, tries=1)
            body = await server.streams.beginning(request, LONGEST_PAGE)
        elif source.startswith(("http://", "https://")):
            body = await asyncio.to_thread(_fetched, source)
        else:
            return "", (
                f"{source!r} is neither an http(s) address nor a path of the API server; write for "
                "example http://HOST:9400/metrics"
            )
    except (KubeError, OSError, ValueError) as error:
        from urllib.error import URLError

        why = error.reason if type(error) is URLError else error
        return "", f"GPU metrics of {source} cannot be read: {why}"
    return body.decode(errors="replace"), ""


def _fetched(address: str) -> bytes:
    from urllib import request

    # Only these two: the standard opener would read files of this machine as well.
    opener = request.OpenerDirector()
    for handler in (
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    # The opener's own limit is for each piece, so that a page could come for ever.
    body, ends = bytearray(), time.monotonic() + SECONDS
    with opener.open(address, timeout=SECONDS) as answer:
        while len(body) < LONGEST_PAGE and (piece := answer.read1()):
            body += piece
            if time.monotonic() > ends:
                raise TimeoutError(f"not all of it came within {SECONDS:g} s")
    return bytes(body[:LONGEST_PAGE])


def parse(pages: Iterable[str]) -> Gpus:
    """GPUs by pod. A figure that is no number is left out; a GPU that no pod has is as well."""
    found: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    models: dict[str, str] = {}
    for name, labels, value in _samples(pages):
        # Prometheus renames labels that it has itself.
        pod = labels.get("exported_pod") or labels.get("pod", "")
        namespace = labels.get("exported_namespace") or labels.get("namespace", "")
        gpu = labels.get("UUID") or labels.get("gpu", "")
        if not pod or not gpu:
            continue
        slice_of = labels.get("GPU_I_ID", "")
        gpu = f"{gpu}/{slice_of}" if slice_of else gpu
        models[gpu] = labels.get("modelName", "")
        found.setdefault((namespace, pod), {}).setdefault(gpu, {})[name] = value
    return {
        pod: tuple(_usage(gpu, models[gpu], figures) for gpu, figures in sorted(gpus.items()))
        for pod, gpus in found.items()
    }


def _samples(pages: Iterable[str]) -> Iterator[tuple[str, dict[str, str], float]]:
    for page in pages:
        for line in page.splitlines():
            sample = _LINE.match(line) if line.startswith("DCGM_") else None
            value = _number(sample[3]) if sample else None
            if sample and value is not None:
                yield sample[1], _labels(sample[2]), value


def _labels(text: str) -> dict[str, str]:
    """One after the other up to the first that is none, so that nothing is looked at twice."""
    found: dict[str, str] = {}
    place = 0
    while label := _LABEL.match(text, place):
        found[label[1]] = label[2]
        place = label.end()
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= _LARGEST else None


def _usage(gpu: str, model: str, figures: Mapping[str, float]) -> GpuUsage:
    busy, active = figures.get(_BUSY), figures.get(_ACTIVE)
    used, free = figures.get(_USED), figures.get(_FREE)
    return GpuUsage(
        gpu=gpu,
        model=model,
        percent=busy if busy is not None else None if active is None else active * 100,
        memory_bytes=None if used is None else int(used * MEBIBYTE),
        memory_total_bytes=None if used is None or free is None else int((used + free) * MEBIBYTE),
    )
