"""The shell around the endpoints: HTTP in, HTTP out.

In this order: the server's name, what holds for every call (`calls.py`), forgery, parameters, the
body. Guarantee: every answer has strict headers; every problem is RFC 9457.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from mpi_trainer.server import bodies, forgery, multipart, problems, static_files
from mpi_trainer.server.callers import LOGINS, Caller, Callers, Loopback
from mpi_trainer.server.calls import AT_ONCE, Calls, call_of, live_call_of, query_of
from mpi_trainer.server.endpoint import JSON, LARGEST_BODY, TEXT, Answer, Call, Endpoint
from mpi_trainer.server.endpoints import ENDPOINTS, STREAMS
from mpi_trainer.server.live.endpoint import EventStream, LiveCall
from mpi_trainer.server.live.hub import Hub, LiveSettings
from mpi_trainer.server.openapi import POSITION, POSITION_HEADER, document
from mpi_trainer.server.problems import Refused
from mpi_trainer.server.rates import Rate
from mpi_trainer.server.sending import Sending
from mpi_trainer.server.sse import Stream
from mpi_trainer.server.turns import Turns, while_connected
from mpi_trainer.server.uploads import LARGEST_UPLOAD

HEALTH: Final = "/healthz"
log = logging.getLogger("mpi_trainer.server")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Server": "mpi-trainer",
}


class Settings(msgspec.Struct, frozen=True):
    """`hosts` are the names that the server answers to; any where it is empty. `pages` is where the
    built dashboard lies."""

    hosts: frozenset[str] = frozenset()
    rate: Rate = Rate()
    at_once: int = AT_ONCE
    live: LiveSettings = LiveSettings()
    pages: Path = static_files.BUILT


class Shell:
    def __init__(self, calls: Calls, settings: Settings) -> None:
        self._calls = calls
        self._settings = settings
        self._uploads = Turns("uploads", each=2, most=4)
        self._sending = Sending(calls.hub.settings.stalled)

    def app(self) -> web.Application:
        made = web.Application(client_max_size=LARGEST_BODY, middlewares=[self._answered])
        for endpoint in ENDPOINTS:
            made.router.add_route(endpoint.method, endpoint.path, self._handler(endpoint))
        for stream in STREAMS:
            made.router.add_get(stream.path, self._stream_handler(stream), allow_head=False)
        made.on_shutdown.append(self._stop_streams)
        made.router.add_get("/api/openapi.json", _openapi)
        made.router.add_get(HEALTH, _healthy)
        made.router.add_get(static_files.ROUTE, self._page)
        return made

    @web.middleware
    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Every answer with our headers, every error as a problem."""
        try:
            if request.path != HEALTH:  # a probe knows the pod by its address
                forgery.check_host(request.headers, self._settings.hosts)
            response = await handler(request)
        except Refused as error:
            response = _problem(error.problem, error.headers)
        except web.HTTPException as error:
            response = _of_aiohttp(error, request)
        except Exception as error:
            found = problems.explained(error)
            if found is None:
                log.exception("a fault in %s", request.match_info.route.name or "a request")
                found = problems.fault()
            response = _problem(found)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _handler(self, endpoint: Endpoint) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            asked = HttpAsked(request, self._uploads)
            with asked.held:
                work = self._calls.answer(endpoint, asked)
                answer = await (while_connected(request, work) if endpoint.awaited else work)
            return await self._sending.send(request, _response(answer), asked.who, HEADERS)

        return handle

    def _stream_handler(self, stream: EventStream) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            async with self._calls.events(stream, HttpAsked(request)) as (first, events):
                return await Stream(request, self._calls.hub, HEADERS).send(first, events)

        return handle

    async def _stop_streams(self, app: web.Application) -> None:
        self._calls.hub.stopping.set()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        """The token in a browser's address becomes a cookie, and leaves the address."""
        callers, token = self._calls.callers, request.query.get("token", "")
        if isinstance(callers, Loopback) and token:
            if not callers.opens(token):
                raise problems.refused(
                    401,
                    "unauthorized",
                    "the token in the address is not this server's",
                    "Open the address that `odh dashboard` printed when it started.",
                )
            opened = web.Response(status=303, headers={"Location": "/"})
            opened.set_cookie(
                callers.cookie, callers.session, httponly=True, samesite="Strict", path="/"
            )
            return opened
        return static_files.answer(request.match_info["page"], self._settings.pages)


class HttpAsked:
    """A call by HTTP. What it takes of the server's room is in `held`, to be closed when it is
    answered; without `uploads` it takes no forms. `who` is the caller's id, once that is known."""

    def __init__(self, request: web.Request, uploads: Turns | None = None) -> None:
        self.held = ExitStack()
        self._request = request
        self._uploads = uploads
        self.namespace = request.match_info.get("namespace") or request.query.get("namespace", "")
        self.job = request.match_info.get("name", "")
        self.who = ""

    def caller(self, callers: Callers) -> Caller:
        headers = self._request.headers
        twice = any(len(headers.getall(name, ())) > 1 for name in LOGINS)
        caller = callers.caller({} if twice else headers, self._request.cookies)
        self.who = caller.id
        return caller

    async def call(self, endpoint: Endpoint, caller: Caller) -> Call:
        request = self._request
        post = request.method != "GET"
        forgery.check_origin(request.headers, changes=post, ambient=caller.ambient)
        path, query = self._read(endpoint)
        body, media_type = b"", JSON
        if endpoint.body is not None:
            media_type = request.content_type if "Content-Type" in request.headers else ""
            form = endpoint.largest_form and media_type == multipart.MEDIA_TYPE
            if form and self._uploads:
                self.held.enter_context(self._uploads.taken(caller.id))
                request = request.clone(client_max_size=endpoint.largest_form)
            else:
                bodies.check_media_type(media_type)
            body = await request.read()
        return msgspec.structs.replace(
            call_of(endpoint, caller, query=query, path=path),
            body=body,
            media_type=media_type,
            content_type=request.headers.get("Content-Type", ""),
            if_match=request.headers.get("If-Match", ""),
            if_none_match=request.headers.get("If-None-Match", ""),
            text=endpoint.text and JSON not in request.headers.get("Accept", ""),
        )

    async def live_call(self, stream: EventStream, caller: Caller, hub: Hub) -> LiveCall:
        request = self._request
        forgery.check_origin(request.headers, changes=False, ambient=caller.ambient)
        path, query = self._read(stream)
        position = request.headers.get(POSITION_HEADER) or request.query.get(POSITION, "")
        return live_call_of(stream, caller, hub, query=query, path=path, position=position)

    def _read(self, endpoint: Endpoint | EventStream) -> tuple[dict[str, str], Any]:
        """Names in the path, and parameters."""
        request = self._request
        path = dict(request.match_info)
        given = [*request.query.items()]
        if isinstance(endpoint, EventStream):
            given = [one for one in given if one[0] != POSITION]
        return path, query_of(endpoint, path, given)


def _response(answer: Answer) -> web.Response:
    headers = dict(answer.headers)
    if answer.value is None:
        return web.Response(status=answer.status, headers=headers)
    if isinstance(answer.value, str):
        return web.Response(
            text=answer.value, status=answer.status, headers=headers, content_type=TEXT
        )
    body = msgspec.json.encode(answer.value)
    return web.Response(body=body, status=answer.status, headers=headers, content_type=JSON)


def _problem(found: Any, headers: tuple[tuple[str, str], ...] = ()) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(found),
        status=found.status,
        headers=dict(headers),
        content_type=problems.MEDIA_TYPE,
    )


def _of_aiohttp(error: web.HTTPException, request: web.Request) -> web.StreamResponse:
    """What the library itself refuses, in our form."""
    if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        form = request.content_type == multipart.MEDIA_TYPE
        size = f"{(LARGEST_UPLOAD if form else LARGEST_BODY) // 2**20} MiB"
        return _problem(
            problems.problem(
                413,
                "too-large",
                f"the body is larger than {size}, which no job{'' if form else ' file'} is",
                "Send a job file, and put data where the job can fetch it.",
            )
        )
    if error.status == HTTPStatus.NOT_FOUND:
        return _problem(
            problems.problem(404, "no-path", "there is no such path", "See /api/openapi.json.")
        )
    if error.status == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = error.headers.get("Allow", "")
        detail = f"this path does not take {request.method}"
        found = problems.problem(405, "method", detail, f"Use {allowed}.")
        return _problem(found, (("Allow", allowed),))
    return _problem(problems.problem(error.status, "http", error.reason))


async def _openapi(request: web.Request) -> web.Response:
    return web.Response(body=msgspec.json.encode(document()), content_type=JSON)


async def _healthy(request: web.Request) -> web.Response:
    return web.Response(text="ok\n")
