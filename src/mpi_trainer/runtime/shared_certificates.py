"""Certificates of a server that several replicas share: in one Secret, renewed in time.

Every replica runs over the same Secret. Whoever comes first writes the next chain, with the version
it read as a precondition; the others find it there.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

from mpi_trainer.api.kinds.meta import ApiValue, ObjectMeta
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from mpi_trainer.kube.resources import SECRETS
from mpi_trainer.runtime.certificates import Chain, Pair, first_chain, renewed_chain
from mpi_trainer.runtime.tls import ServerCertificate

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 600.0
_SEPARATOR: Final = b"-----END CERTIFICATE-----\n"


class SharedSecret(ApiValue, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: Mapping[str, str] = {}


class SharedChain:
    """In the Secret `name`, for a server that is called by `names`."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        names: tuple[str, ...],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._place = (namespace, name)
        self._names = names
        self._now = now

    async def current(self) -> Chain:
        """What is to be used now, once that is stored."""
        namespace, name = self._place
        while True:
            try:
                asked = requests.get(SECRETS, namespace, name)
                kept = await self._client.call(asked, SharedSecret)
            except NotFound:
                made = first_chain(self._names, self._now())
                try:
                    body = self._secret(made)
                    await self._client.call(requests.create(SECRETS, namespace, body), None)
                except AlreadyExists:
                    continue
                return made
            stored = parsed(kept.data)
            chain = (
                first_chain(self._names, self._now())
                if stored is None
                else renewed_chain(stored, self._names, self._now())
            )
            if chain is stored:
                return chain
            body = self._secret(chain, kept.metadata.resource_version)
            try:
                await self._client.call(requests.replace(SECRETS, namespace, name, body), None)
            except Conflict:
                continue
            return chain

    def _secret(self, chain: Chain, version: str = "") -> dict[str, Any]:
        parts = {
            "tls.crt": chain.server.certificate,
            "tls.key": chain.server.key,
            "ca.crt": chain.authority.certificate,
            "ca.key": chain.authority.key,
            "retired.crt": b"".join(chain.retired),
        }
        namespace, name = self._place
        meta = {"name": name, "namespace": namespace}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {**meta, "resourceVersion": version} if version else meta,
            "data": {key: base64.b64encode(value).decode() for key, value in parts.items()},
        }


@asynccontextmanager
async def server_context(kept: SharedChain) -> AsyncIterator[ssl.SSLContext]:
    """A server's context while entered; its certificate is kept current."""
    context = ServerCertificate()
    keeping = asyncio.create_task(_keep(kept, context))
    try:
        yield context.context
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


async def _keep(kept: SharedChain, context: ServerCertificate) -> None:
    while True:
        try:
            chain = await kept.current()
            context.show(chain.server.certificate, chain.server.key)
        except KubeError as error:
            log.warning("certificates could not be kept: %s", error)
        await asyncio.sleep(EVERY_SECONDS if context.ready else 1.0)


def parsed(data: Mapping[str, str]) -> Chain | None:
    """None where somebody has spoilt it; then all begins anew."""
    try:
        parts = {key: base64.b64decode(value) for key, value in data.items()}
        retired = parts.get("retired.crt", b"").split(_SEPARATOR)
        chain = Chain(
            Pair(parts["ca.crt"], parts["ca.key"]),
            Pair(parts["tls.crt"], parts["tls.key"]),
            tuple(one + _SEPARATOR for one in retired if one.strip()),
        )
        chain.check()
    except (KeyError, ValueError):
        return None
    return chain
