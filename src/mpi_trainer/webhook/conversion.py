"""`/convert-mpijob`: stored MPIJobs in the version that an API server asks for (API-4).

Guarantee: an object whose version is known gets an answer, because an API server that gets none
fails every list that holds it. Each object is read by itself and bounded in depth; a review that
is larger than `LARGEST` is refused with that reason. Danger: an API server converts a list as a
whole, so until all objects are stored as v2beta1 a list of many costs as much memory here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from aiohttp import web

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import mpijob
from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.yaml import nesting, typed
from mpi_trainer.migrate.versions.convert import KNOWN, converted

REVIEW: Final = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
LARGEST: Final = 64 * 1024 * 1024
"""bytes of one review"""
_AT_ONCE = 2
"""large reviews that are held at the same time"""

Object = dict[str, Any]


class ConversionRequest(ApiValue, frozen=True):
    uid: str = ""
    desired_api_version: str = msgspec.field(default="", name="desiredAPIVersion")
    objects: tuple[msgspec.Raw, ...] = ()


class ConversionReview(ApiValue, frozen=True):
    request: ConversionRequest = ConversionRequest()


class CannotConvert(Exception):
    """What the API server tells whoever asked."""


def answer(body: bytes) -> bytes:
    """The review with its response; MsgspecError where the body is none."""
    asked = typed.decode(body, ConversionReview).request
    try:
        # Written at once: a list of decoded jobs takes many times the room of its text.
        made = [_one(bytes(raw), asked.desired_api_version) for raw in asked.objects]
    except CannotConvert as error:
        return _review(asked.uid, {"status": "Failure", "message": str(error)}, ())
    return _review(asked.uid, {"status": "Success"}, made)


def _one(raw: bytes, to: str) -> msgspec.Raw:
    if nesting.depth(raw) > bounds.DECODED_NESTING:
        raise CannotConvert("an MPIJob is nested too deeply to be read; delete it")
    data = msgspec.json.decode(raw, type=Object)
    version, kind = data.get("apiVersion"), data.get("kind")
    if kind != mpijob.KIND or to not in KNOWN or version not in KNOWN:
        known = ", ".join(KNOWN)
        raise CannotConvert(f"{kind} {version} has no way to {to}; MPIJobs are known as {known}")
    return msgspec.Raw(msgspec.json.encode(converted(data, to)))


def _review(uid: str, result: Object, objects: Sequence[msgspec.Raw]) -> bytes:
    response = {"uid": uid, "result": result, "convertedObjects": objects}
    return msgspec.json.encode({**REVIEW, "response": response})


def handler() -> Callable[[web.Request], Any]:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def convert(request: web.Request) -> web.Response:
        # One that does not say how long it is may be as long as any.
        length = request.content_length
        if length is not None and length <= bounds.SHORT_TEXT:
            return await _answered(request)
        async with slots:
            return await _answered(request)

    return convert


async def _answered(request: web.Request) -> web.Response:
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > LARGEST:
            text = f"a review of more than {LARGEST // 2**20} MiB: list fewer MPIJobs at once\n"
            return web.Response(status=413, text=text)
    try:
        made = await asyncio.to_thread(answer, bytes(body))
    except msgspec.MsgspecError as error:
        return web.Response(status=400, text=f"this is no ConversionReview: {error}\n")
    return web.Response(body=made, content_type="application/json")
