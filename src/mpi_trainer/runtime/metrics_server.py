"""/metrics apart from the probes: by TLS, to whom the cluster lets read it.

Metrics hold the names of namespaces and queues of all tenants. The certificate is one of our own,
made in memory and renewed there, or one that somebody else keeps in a folder.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web

from mpi_trainer.kube.client import Client
from mpi_trainer.runtime import certificates
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.metrics_access import OK, PATH, UNKNOWN, Access
from mpi_trainer.runtime.probes import as_text
from mpi_trainer.runtime.tls import ServerCertificate, follow_folder

PORT: Final = 8443
_LOOK_SECONDS: Final = 3600.0


@asynccontextmanager
async def serve(
    metrics: Metrics, client: Client, context: ssl.SSLContext, port: int, host: str | None = None
) -> AsyncIterator[int]:
    """Serves while entered; gives the port. `host` None means every address."""
    access = Access(client)

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
