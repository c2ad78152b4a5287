"""Which callers are answered, how many reviews at once, and for how long.

Reviews hold whole objects and ask the API server several questions each. Beyond a number of them at
once the next ones wait, and beyond a number of waiting ones they are turned away at once, so that
the failurePolicy decides in place of a webhook that runs out of memory. With a client authority
configured only callers with a certificate of it are answered: an API server that was given one
(AdmissionConfiguration), and nobody else who reaches the Service.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ReviewLimits(msgspec.Struct, frozen=True):
    """Reviews at once, reviews that may wait, and the seconds for one, its wait included: less than
    the API server's own timeout, so that the response still reaches it."""

    at_once: int = 32
    waiting: int = 256
    seconds: float = 9.0


def limited(limits: ReviewLimits) -> Middleware:
    slots = asyncio.Semaphore(limits.at_once)
    waiting = 0

    async def in_slot(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal waiting
        waiting += 1
        try:
            await slots.acquire()
        finally:
            waiting -= 1
        try:
            return await handler(request)
        finally:
            slots.release()

    @web.middleware
    async def limit(request: web.Request, handler: Handler) -> web.StreamResponse:
        if slots.locked() and waiting >= limits.waiting:
            text = f"{waiting} reviews wait already; try again\n"
            return web.Response(status=429, text=text, headers={"Retry-After": "1"})
        try:
            async with asyncio.timeout(limits.seconds):
                return await in_slot(request, handler)
        except TimeoutError:
            text = f"the review took longer than {limits.seconds:g} s; try again\n"
            return web.Response(status=504, text=text)

    return limit


def ask_for_certificates(context: ssl.SSLContext, authority: str) -> None:
    """Of this authority; `known_callers` refuses callers without one."""
    context.load_verify_locations(cafile=authority)
    context.verify_mode = ssl.CERT_OPTIONAL


def known_callers(names: Collection[str]) -> Middleware:
    """Answers only callers with a certificate; with `names`, only those whose common name is one
    of them."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport else None
        if not certificate:
            return web.Response(status=401, text="a client certificate is needed\n")
        if names and _common_name(certificate) not in names:
            return web.Response(status=403, text="this client certificate is not enough\n")
        return await handler(request)

    return check


def _common_name(certificate: dict[str, Any]) -> str:
    pairs = (pair for part in certificate.get("subject", ()) for pair in part)
    return next((value for key, value in pairs if key == "commonName"), "")
