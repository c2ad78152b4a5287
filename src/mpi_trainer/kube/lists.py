"""Whole collections, page by page, at one moment of the server's history.

If the server has forgotten that moment in the middle, the rest cannot be had: the list starts
again, whole, without pages. One object that does not decode is left out and named, so that it
cannot hide the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Generic, TypeVar

import msgspec

from mpi_trainer.api.yaml import nesting, typed
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Garbled, Gone
from mpi_trainer.kube.requests import Fetcher, Request
from mpi_trainer.kube.resources import Resource
from mpi_trainer.kube.watch import Unreadable, WatchMeta

T = TypeVar("T")


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a collection. `again` means: forget the pages before, this is the whole."""

    items: tuple[T, ...] = ()
    metadata: ListMeta = ListMeta()
    unreadable: tuple[Unreadable, ...] = ()
    again: bool = False

    @property
    def resource_version(self) -> str:
        """Where a watch goes on after the last page."""
        return self.metadata.resource_version


class UndecodedPage(msgspec.Struct, frozen=True):
    """A page whose items are read one by one; `pruned` where some were too deep to be read."""

    items: tuple[msgspec.Raw, ...] | None = None
    metadata: ListMeta = ListMeta()
    pruned: bool = False

    def read(self, item: msgspec.Raw, decoder: msgspec.json.Decoder[Any]) -> Any:
        """One item as a value; msgspec.ValidationError where it is not of that kind."""
        if self.pruned and nesting.was_pruned(bytes(item)):
            raise typed.TooDeep
        return typed.decoded(decoder, item)


class _Null(msgspec.Struct, Generic[T], frozen=True):
    items: tuple[T, ...] | None = None
    metadata: ListMeta = ListMeta()


class _Headed(msgspec.Struct, frozen=True):
    metadata: WatchMeta = WatchMeta()


async def pages(  # noqa: PLR0913 - the list options of the API, each optional
    client: Fetcher,
    resource: Resource,
    kind: type[T],
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    limit: int = 500,
    resource_version: str = "",
    patience: float | None = None,
) -> AsyncGenerator[Page[T], None]:
    """The pages of a collection, in order. With `patience` each page is asked for once, for so many
    seconds."""
    token, again = "", False
    while True:
        request = requests.list_page(
            resource, namespace, labels, fields, 0 if again else limit, token, resource_version
        )
        if patience is not None:
            request = msgspec.structs.replace(request, timeout=patience, tries=1)
        try:
            page: Page[T] = await _read_page(client, request, kind)
        except Gone:
            if not token:
                raise
            token, again = "", True
            continue
        yield msgspec.structs.replace(page, again=again)
        token, again = page.metadata.continue_, False
        if not token:
            return


async def list_all(  # noqa: PLR0913 - as for `pages`
    client: Fetcher,
    resource: Resource,
    kind: type[T],
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    patience: float | None = None,
) -> Page[T]:
    """All pages as one."""
    items: list[T] = []
    unreadable: list[Unreadable] = []
    last: Page[T] = Page()
    async for page in pages(
        client,
        resource,
        kind,
        namespace=namespace,
        labels=labels,
        fields=fields,
        patience=patience,
    ):
        if page.again:
            items.clear()
            unreadable.clear()
        items += page.items
        unreadable += page.unreadable
        last = page
    return Page(tuple(items), last.metadata, tuple(unreadable))


async def _read_page(client: Fetcher, request: Request, kind: Any) -> Page[Any]:
    """One page's items; object by object only if one of them is broken."""
    body = await client.fetch(request)
    try:
        quick: _Null[Any] = client.decode(request, body, _Null[kind])
    except Garbled:
        page = await undecoded_page(client, request, body)
    else:
        return Page(quick.items or (), quick.metadata)
    items, unreadable = [], []
    for raw in page.items or ():
        try:
            items.append(page.read(raw, typed.decoder(kind)))
        except msgspec.ValidationError as error:
            unreadable.append(Unreadable("ADDED", head(client, request, raw), str(error)))
    return Page(tuple(items), page.metadata, tuple(unreadable))


async def undecoded_page(client: Fetcher, request: Request, body: bytes) -> UndecodedPage:
    """A page's items, each still to be read, whatever one of them is."""
    try:
        return typed.decode(body, UndecodedPage)
    except typed.TooDeep:
        shallow = await asyncio.to_thread(typed.shallow, body)
        page: UndecodedPage = client.decode(request, shallow, UndecodedPage)
        return msgspec.structs.replace(page, pruned=True)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Garbled(request, str(error)) from error


def head(client: Fetcher, request: Request, item: msgspec.Raw) -> WatchMeta:
    """Whose item it is that could not be read."""
    found: _Headed = client.decode(request, bytes(item), _Headed)
    return found.metadata
