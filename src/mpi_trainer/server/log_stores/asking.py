"""One question to a log store over HTTP.

Guarantee: an answer takes no more time and memory than `SECONDS` and `LARGEST_ANSWER`, whatever the
store says of its size; no redirection is followed; the caller's token goes to the address of the
settings alone, and only with `tenancy`.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from mpi_trainer.sdk.errors import JobError
from mpi_trainer.server.log_stores.settings import LogStoreSettings

SECONDS: Final = 20.0
LARGEST_ANSWER: Final = 8 * 1024 * 1024
_REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class TooLarge(Exception):
    """Fewer lines may fit."""


class Store:
    """As one caller asks it; `token` is theirs."""

    def __init__(self, settings: LogStoreSettings, token: str) -> None:
        self._settings = settings
        self._token = token

    async def ask(
        self, path: str, parameters: Mapping[str, str], body: Any = None
    ) -> bytes:  # fmt: skip
        """A JobError where there is no answer; `TooLarge`."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self._settings.tenancy:
            headers["Authorization"] = f"Bearer {self._token}"
        found = self._settings.ca_file
        try:
            trust = ssl.create_default_context(cafile=found) if found else True
            async with (
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=SECONDS),
                    trust_env=False,
                    auto_decompress=False,  # a little can become any amount
                ) as session,
                session.request(
                    "GET" if body is None else "POST",
                    f"{self._settings.url.rstrip('/')}{path}",
                    params=parameters,
                    json=body,
                    headers=headers,
                    allow_redirects=False,
                    ssl=trust,
                ) as reply,
            ):
                text = bytearray()
                while len(text) <= LARGEST_ANSWER and (more := await reply.content.readany()):
                    text += more
        except TimeoutError as error:
            raise unread(f"it took longer than {SECONDS:g} seconds") from error
        except (aiohttp.ClientError, OSError) as error:
            raise unread(type(error).__name__) from error
        if reply.status in _REFUSED:
            raise unread("it does not let you read logs of this namespace")
        if reply.status != HTTPStatus.OK:
            raise unread(f"its answer is not as it should be (status {reply.status})")
        if len(text) > LARGEST_ANSWER:
            raise TooLarge
        return bytes(text)


def unread(why: str) -> JobError:
    return JobError(
        f"the pods of the job are gone, and the log store cannot be read: {why}",
        "The last lines that a job keeps are in its status: `attempts`.",
    )
