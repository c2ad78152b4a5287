"""Fetches everything that a source has into a folder, many parts at once, whole or not at all.

Memory is bounded by the number of threads, whatever the files' sizes. Faults of the network are
tried again with growing pauses, from the byte that came last.
"""

from __future__ import annotations

import errno
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

from mpi_trainer.initializers import checksums
from mpi_trainer.initializers.folder import Folder, Marker, opened
from mpi_trainer.initializers.model import (
    SUMS,
    FetchError,
    Interrupted,
    Item,
    Settings,
    Source,
    TemporaryFault,
    checked,
)
from mpi_trainer.initializers.parts import Fetched, Part, Parts
from mpi_trainer.initializers.report import Report, amount

PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""seconds between tries of the same bytes; whenever some came, it begins with the first again"""
_ROOM: Final = 1 << 20
"""bytes for the marker and names"""

_T = TypeVar("_T")


def fetch(settings: Settings, source: Source, report: Report, stop: threading.Event) -> Marker:
    """The folder is whole when it returns. Raises FetchError and Interrupted."""
    listed = _listed(settings, source, stop)
    digest = _digest(settings, listed)
    waited = threading.Event()

    def wait_for_other() -> None:
        if stop.is_set():
            raise Interrupted
        if not waited.is_set():
            waited.set()
            report.say(f"another process fetches into {settings.target}; waiting for it")

    with opened(Path(settings.target), wait_for_other) as folder:
        marker = folder.marker()
        if marker is not None and marker.digest == digest and folder.holds(marker):
            report.say(f"{settings.shown} is in {settings.target} already")
            return marker
        try:
            with folder.parts(digest) as parts:
                marker = folder.published(parts, digest)
                if marker is None:
                    run = _Fetching(source, parts, report, stop, settings.threads)
                    fetched = run.all(folder, listed)
                    files = {item.path: fetched[n] for n, item in enumerate(listed)}
                    marker = Marker(settings.shown, digest, files)
                    folder.publish(parts, marker)
        except OSError as error:
            raise _of_disk(settings, folder, error) from error
    size = sum(one.size for one in marker.files.values())
    report.say(f"{len(marker.files)} files, {amount(size)} in {settings.target}; {report.summary}")
    return marker


def _listed(settings: Settings, source: Source, stop: threading.Event) -> list[Item]:
    """What is to be fetched, with all checksums that are known."""

    def listed() -> list[Item]:
        return checked(_unless(stop, source.items()), settings.shown, settings.lists)

    found = _retried(listed, stop)
    sums = next((item for item in found if item.path == SUMS), None)
    wanted = [item for item in found if settings.wants(item.path)]
    if sums is not None:
        given = _retried(lambda: checksums.read(source, sums), stop)
        given = {path: one for path, one in given.items() if settings.wants(path)}
        wanted = checksums.applied(wanted, given, {item.path for item in found})
    if not wanted:
        why = "none that the patterns want" if settings.allow or settings.ignore else "none"
        raise FetchError(
            f"{settings.shown} has no files to fetch: {why}",
            "Correct storageUri, ALLOW_PATTERNS or IGNORE_PATTERNS; names are case-sensitive.",
        )
    if settings.sha256:
        if len(wanted) != 1:
            raise FetchError(
                f"{settings.shown} has {len(wanted)} files, and one checksum was given",
                f"Give a file {SUMS} beside them instead, as `sha256sum *` prints it.",
            )
        wanted = checksums.applied(wanted, {wanted[0].path: settings.sha256}, set())
    return wanted


def _unless(stop: threading.Event, items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if stop.is_set():
            raise Interrupted
        yield item


def _digest(settings: Settings, items: list[Item]) -> str:
    """Another one wherever anything of what is fetched is another."""
    found = hashlib.sha256(settings.uri.encode())
    for item in items:
        sums = "" if item.checksum is None else item.checksum.value
        text = "\0".join((item.path, str(item.size), item.version, sums))
        found.update(f"\n{text}".encode(errors="surrogatepass"))
    return found.hexdigest()


class _Fetching:
    """One run of many threads. The first fault ends all of them."""

    def __init__(
        self, source: Source, parts: Parts, report: Report, stop: threading.Event, threads: int
    ) -> None:
        self._threads = threads
        self._source = source
        self._parts = parts
        self._report = report
        self._stop = stop
        self._failed = threading.Event()
        self._turn = threading.Lock()
        self._whole: dict[int, Fetched] = {}
        self._open: set[Part] = set()

    def all(self, folder: Folder, items: list[Item]) -> dict[int, Fetched]:
        before = self._parts.whole()
        self._whole = {n: one for n, one in before.items() if n < len(items)}
        sizes = [item.size for item in items if item.size is not None]
        known = sum(sizes) if len(sizes) == len(items) else None
        had = sum(one.size for one in self._whole.values())
        if known is not None:
            _has_room(folder, max(known - had - self._parts.begun_bytes(), 0))
        with self._report:
            self._report.begin(known, len(items))
            self._report.kept(had, len(self._whole))
            chunks = self._chunks(items)
            with ThreadPoolExecutor(self._threads, "fetch") as pool:
                threads = [pool.submit(self._work, chunks) for _ in range(self._threads)]
                done, _ = wait(threads, return_when=FIRST_EXCEPTION)
                if any(one.exception() for one in done):
                    self._failed.set()
        for part in self._open:
            part.close()
        faults = [error for one in threads if (error := one.exception()) is not None]
        if faults:
            raise next((e for e in faults if not isinstance(e, Interrupted)), faults[0])
        return self._whole

    def _chunks(self, items: list[Item]) -> Iterator[tuple[Part, int, int | None]]:
        for n, item in enumerate(items):
            if n in self._whole:
                continue
            part = self._parts.begun(n, item)
            self._open.add(part)
            self._report.kept(part.kept)
            missing = list(part.missing())
            if not missing:
                self._finish(part)
            for start, end in missing:
                yield part, start, end

    def _work(self, chunks: Iterator[tuple[Part, int, int | None]]) -> None:
        while True:
            with self._turn:
                chunk = next(chunks, None)
            if chunk is None:
                return
            self._fetch(*chunk)

    def _fetch(self, part: Part, start: int, end: int | None) -> None:
        at, tries = start, 0
        while True:
            came = 0
            try:
                with closing(self._source.read(part.item, at, end)) as pieces:
                    for data in pieces:
                        self._go_on()
                        part.write(at, data)
                        at, came = at + len(data), came + len(data)
                        self._report.add(len(data))
                break
            except TemporaryFault as fault:
                tries = 0 if came and part.item.ranges else tries + 1
                if tries > len(PAUSES):
                    raise FetchError(
                        f"{part.item.path} could not be read: {fault}",
                        "What came so far is kept, and the next attempt goes on from there. See "
                        "whether the server can be reached from this pod.",
                    ) from None
                if not part.item.ranges:
                    self._report.add(start - at)
                    at = start
                    part.restart()
                self._pause(PAUSES[max(tries - 1, 0)])
        if part.chunk_done(start):
            self._finish(part)

    def _finish(self, part: Part) -> None:
        self._whole[part.number] = part.finished(self._go_on)
        self._open.discard(part)
        part.close()
        self._report.file_done()

    def _go_on(self) -> None:
        if self._stop.is_set() or self._failed.is_set():
            raise Interrupted

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds) or self._failed.is_set():
            raise Interrupted


def _retried(call: Callable[[], _T], stop: threading.Event) -> _T:
    for pause in (*PAUSES, None):
        try:
            return call()
        except TemporaryFault as fault:
            if pause is None:
                raise FetchError(
                    f"it could not be listed: {fault}",
                    "See whether the server's address is right (ENDPOINT), and whether it can be "
                    "reached from this pod.",
                ) from None
            if stop.wait(pause):
                raise Interrupted from None
    raise AssertionError("it returns or raises")


def _has_room(folder: Folder, wanted: int) -> None:
    free = folder.free_bytes()
    if wanted + _ROOM > free:
        raise FetchError(
            f"{folder.path} has {amount(free)} free, and {amount(wanted)} are to be fetched",
            "Use a larger volume, or fetch less with ALLOW_PATTERNS.",
        )


def _of_disk(settings: Settings, folder: Folder, error: OSError) -> FetchError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return FetchError(
            f"{settings.target} is full: {amount(folder.free_bytes())} free",
            "Use a larger volume, or fetch less with ALLOW_PATTERNS; what came so far is kept.",
        )
    return FetchError(
        f"{settings.target} cannot be written to: {error.strerror or error}",
        "See to the volume; what came so far is kept.",
    )
