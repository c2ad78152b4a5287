"""`https://host/file`: one file from a web server, in parts where the server can."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

from mpi_trainer.initializers.model import FetchError, Item, Pieces, Settings, TemporaryFault
from mpi_trainer.initializers.sources.http import Answer, Client, shown

_RANGE: Final = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class Web:
    def __init__(self, settings: Settings) -> None:
        given = settings.given
        self._url = settings.uri
        self._checked = bool(settings.sha256)
        bundle = given.get("CA_BUNDLE", "")
        self._client = Client(settings.uri, given.get("ACCESS_TOKEN", ""), bundle)
        self._name = unquote(urlsplit(settings.uri).path).rpartition("/")[2] or "data"

    def items(self) -> Iterator[Item]:
        answer = self._client.get(self._url, {"Range": "bytes=0-0"})
        if answer.status == 206 and _total(answer) is None:  # such as `bytes 0-0/*`
            answer.close()
            answer = self._client.get(self._url, {})
        try:
            yield self._item(answer)
        finally:
            answer.close()

    def _item(self, answer: Answer) -> Item:
        total = _total(answer)
        if answer.status == 206 and total is not None:
            # Nobody could tell whether parts are of the same file: then it comes as one.
            ranges = self._checked or bool(version(answer))
            return Item(self._name, total, version(answer), ranges=ranges)
        if answer.status == 416:  # of an empty file
            return Item(self._name, 0, version(answer), ranges=False)
        raise_for(answer)
        length = answer.headers.get("content-length", "")
        if length.isdecimal() and len(length) < 19:
            return Item(self._name, int(length), version(answer), ranges=False)
        chunked = "chunked" in answer.headers.get("transfer-encoding", "").lower()
        if not chunked and not self._checked:
            raise FetchError(
                f"{shown(self._url)}: the server does not say how long the file is, so nobody "
                "could tell whether it came whole",
                "Add its checksum to the address: #sha256= and 64 digits.",
            )
        return Item(self._name, None, version(answer), ranges=False)

    def read(self, item: Item, start: int, end: int | None) -> Pieces:
        if item.size == 0:
            return
        yield from read(self._client, self._url, item, start, end)

    def close(self) -> None:
        self._client.close()


def read(client: Client, url: str, item: Item, start: int, end: int | None) -> Pieces:
    """The bytes of a file, seen to be those that were asked for of the file that was listed."""
    headers = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if item.ranges else {}
    answer = client.get(url, headers)
    complete = False
    try:
        raise_for(answer)
        found = _RANGE.fullmatch(answer.headers.get("content-range", ""))
        if item.ranges and (answer.status != 206 or found is None or int(found[1]) != start):
            whole = answer.status == 200 and start == 0 and end == item.size
            if not whole:
                raise TemporaryFault(f"{shown(url)}: the server sent another part than asked for")
        changed = item.version and item.version != version(answer)
        if changed or (found is not None and int(found[3]) != item.size):
            raise FetchError(
                f"{item.path} was replaced on the server while it was read",
                "Start it again when nobody writes there.",
            )
        left = None if end is None else end - start
        for data in answer.pieces():
            if left is not None:
                left -= len(data)
                if left < 0:
                    raise TemporaryFault(f"{shown(url)}: the server sent more than asked for")
            yield data
        if left:
            raise TemporaryFault(f"{shown(url)}: the connection ended early")
        complete = True
    finally:
        if not complete:
            answer.close()


def _total(answer: Answer) -> int | None:
    found = _RANGE.fullmatch(answer.headers.get("content-range", ""))
    return None if found is None else int(found[3])


def version(answer: Answer) -> str:
    """Changes with the file; empty where the server does not say."""
    return answer.headers.get("etag", "") or answer.headers.get("last-modified", "")


def raise_for(answer: Answer) -> None:
    where, status = shown(answer.url), answer.status
    if status in (401, 403):
        raise FetchError(
            f"{where}: the server refuses it ({status})",
            "Put a token that may read it into the Secret as ACCESS_TOKEN; one that worked before "
            "may have expired.",
        )
    if status in (404, 410):
        raise FetchError(f"{where} is not there ({status})", "Correct storageUri.")
    if status not in (200, 206):
        raise FetchError(f"{where}: the server answers {status}", "Open the address to see why.")
