"""/metrics apart from the probes: by TLS, to whom the cluster lets read it.

Metrics hold the names of namespaces and queues of all tenants. The certificate is one of our own,
made in memory and renewed there, or one that somebody else keeps in a folder. Who may read is whom
the API server knows by its bearer token (TokenReview) and lets GET /metrics (SubjectAccessReview).
A process without a login of its own asks with the token itself (SelfSubjectAccessReview).
Guarantee: no answer means no; see `token_reviews` for what is kept. Danger: a right that was taken
away holds on for its `PROVEN_SECONDS`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError, Unauthorized
from mpi_trainer.kube.resources import SELF_SUBJECT_ACCESS_REVIEWS, SUBJECT_ACCESS_REVIEWS
from mpi_trainer.runtime import certificates
from mpi_trainer.runtime.probes import Text, as_text
from mpi_trainer.runtime.tls import ServerCertificate, follow_folder
from mpi_trainer.runtime.token_reviews import (
    Busy,
    Reviews,
    TokenReview,
    bearer,
    review,
    token_review,
)

PORT: Final = 8443
_LOOK_SECONDS: Final = 3600.0
PATH: Final = "/metrics"
OK: Final = 200
UNKNOWN: Final = 401
FORBIDDEN: Final = 403
CANNOT_ASK: Final = 503
KEPT: Final = 256
AT_ONCE: Final = 4
_WAITING: Final = 16
_ATTRIBUTES: Final = {"path": PATH, "verb": "get"}
Ask = Callable[[str], Awaitable[int]]

log = logging.getLogger(__name__)


class AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class AccessReview(msgspec.Struct, frozen=True):
    status: AccessStatus = AccessStatus()


class Access:
    """Answers of one API server. `ask` gives the HTTP status for a token, or raises KubeError."""

    def __init__(self, ask: Ask, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._reviews: Reviews[int] = Reviews(
            lambda status: status == OK, at_once=AT_ONCE, waiting=_WAITING, kept=KEPT, clock=clock
        )

    async def judge(self, authorization: str) -> int:
        """The HTTP status for whoever sends this header: 200, 401, 403 or 503."""
        token = bearer(authorization)
        if not token:
            return UNKNOWN
        try:
            return await self._reviews.answer(token, PATH, lambda: self._ask(token))
        except Busy:
            return CANNOT_ASK
        except KubeError as error:
            log.warning("cannot tell who may read the metrics: %s", error)
            return CANNOT_ASK


def asked_by_us(client: Client) -> Ask:
    """With our own login, which may ask about others."""

    async def ask(token: str) -> int:
        found = (await client.call(token_review(token), TokenReview)).status
        if not found.authenticated:
            return UNKNOWN
        user = found.user
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": _ATTRIBUTES,
        }
        asked = review(SUBJECT_ACCESS_REVIEWS, spec)
        return _status((await client.call(asked, AccessReview)).status)

    return ask


def asked_by_themselves(client_of: Callable[[str], Client]) -> Ask:
    """With the token itself, for a process that has no login; the cluster is sent nothing else."""

    async def ask(token: str) -> int:
        asked = review(SELF_SUBJECT_ACCESS_REVIEWS, {"nonResourceAttributes": _ATTRIBUTES})
        try:
            async with client_of(token) as client:
                return _status((await client.call(asked, AccessReview)).status)
        except Unauthorized:
            return UNKNOWN

    return ask


def _status(right: AccessStatus) -> int:
    return OK if right.allowed and not right.denied else FORBIDDEN


@asynccontextmanager
async def serve(
    metrics: Text, access: Access, context: ssl.SSLContext, port: int, host: str | None = None
) -> AsyncIterator[int]:
    """Serves while entered; gives the port. `host` None means every address."""

    async def answer(request: web.Request) -> web.Response:
        status = await access.judge(request.headers.get("Authorization", ""))
        if status == OK:
            return as_text(metrics)
        headers = {"WWW-Authenticate": "Bearer"} if status == UNKNOWN else {}
        return web.Response(text=HTTPStatus(status).phrase, status=status, headers=headers)

    app = web.Application()
    app.router.add_get(PATH, answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=context).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def server_context(cert_dir: str) -> AsyncIterator[ssl.SSLContext]:
    """A server's context while entered; its certificate is kept current."""
    shown = ServerCertificate()
    keeping = asyncio.create_task(
        follow_folder(Path(cert_dir), shown) if cert_dir else _self_made(shown)
    )
    try:
        yield shown.context
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


async def _self_made(shown: ServerCertificate) -> None:
    names = (socket.gethostname(),)
    chain = certificates.first_chain(names, datetime.now(UTC))
    while True:
        shown.show(chain.server.certificate, chain.server.key)
        await asyncio.sleep(_LOOK_SECONDS)
        chain = certificates.renewed_chain(chain, names, datetime.now(UTC))
