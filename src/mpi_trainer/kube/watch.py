"""One watch: what happened to objects after a resourceVersion, event by event.

It ends when the server ends it, and raises: `Gone` when the version is too old (list again),
`Unreachable` when the stream breaks or is silent for longer than the server's bookmarks allow,
other `ApiError`s as the server gives them. Going on is the reflector's business. An object that
does not decode is an `Unreadable` event, so that one broken object cannot stop the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.errors import Garbled, Status, from_status
from mpi_trainer.kube.requests import Request

if TYPE_CHECKING:
    from mpi_trainer.kube.client import Client

T = TypeVar("T")


class Added(msgspec.Struct, Generic[T], frozen=True, tag="ADDED", tag_field="type"):
    object: T


class Modified(msgspec.Struct, Generic[T], frozen=True, tag="MODIFIED", tag_field="type"):
    object: T


class Deleted(msgspec.Struct, Generic[T], frozen=True, tag="DELETED", tag_field="type"):
    """The object as it was last, with the resourceVersion of its deletion."""

    object: T


class WatchMeta(msgspec.Struct, frozen=True, rename="camel"):
    """What is left to say of an object that we do not decode."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Headed(msgspec.Struct, frozen=True):
    metadata: WatchMeta = WatchMeta()


class Bookmark(msgspec.Struct, frozen=True, tag="BOOKMARK", tag_field="type"):
    """Nothing happened up to this version."""

    object: _Headed

    @property
    def resource_version(self) -> str:
        return self.object.metadata.resource_version


class Unreadable(msgspec.Struct, frozen=True):
    """Something happened to an object that is not as its kind should be."""

    type: str
    metadata: WatchMeta
    why: str


class _Failure(msgspec.Struct, frozen=True, tag="ERROR", tag_field="type"):
    object: Status


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: _Headed


WatchEvent = Added[T] | Modified[T] | Deleted[T] | Bookmark | Unreadable


async def watch(
    client: Client, request: Request, kind: type[T]
) -> AsyncGenerator[WatchEvent[T], None]:
    """The events of one watch request."""
    decoder = _decoder(kind)
    async with aclosing(client.batches(request)) as batches:
        async for batch in batches:
            for line in batch:
                if not line:
                    continue
                event = await _decode(request, decoder, line)
                if isinstance(event, _Failure):
                    raise from_status(request, event.object)
                yield event


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return typed.decoder(Added[kind] | Modified[kind] | Deleted[kind] | Bookmark | _Failure)


async def _decode(request: Request, decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    try:
        return typed.decoded(decoder, line)
    except typed.TooDeep as error:
        problem, line = str(error), await asyncio.to_thread(typed.shallow, line)
    except msgspec.ValidationError as error:
        problem = str(error)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Garbled(request, str(error)) from error
    try:
        rough = typed.decode(line, _Line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Garbled(request, problem) from None
    return Unreadable(rough.type, rough.object.metadata, problem)
