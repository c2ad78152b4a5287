"""Lines on standard output about how far a fetch is, as our interfaces read them from a log.

`dataset  45%| 1.2/2.7 GiB, 3/10 files, 85.0 MiB/s`: at most one in `EVERY` seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Final, TextIO

from mpi_trainer.initializers.model import Role

EVERY: Final = 2.0
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


class Report:
    """Counts what threads fetch. A context manager: while it is open, a thread prints."""

    def __init__(self, role: Role, out: TextIO | None = None) -> None:
        self._role = role
        self._out = sys.stdout if out is None else out
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._print_progress, daemon=True)
        self._total: int | None = None
        self._files = self._whole = self._bytes = self._fetched = 0
        self._began = time.monotonic()

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def say(self, text: str) -> None:
        print(f"{self._role}: {text}", file=self._out, flush=True)

    def begin(self, total: int | None, files: int) -> None:
        """`total`: bytes in all, where all sizes are known."""
        self._total, self._files, self._began = total, files, time.monotonic()
        self._thread.start()

    def kept(self, size: int, files: int = 0) -> None:
        """What an earlier run has fetched."""
        with self._lock:
            self._bytes += size
            self._whole += files

    def add(self, size: int) -> None:
        """Bytes that came; negative where they have to come again."""
        with self._lock:
            self._bytes += size
            self._fetched += size

    def file_done(self) -> None:
        with self._lock:
            self._whole += 1

    @property
    def summary(self) -> str:
        seconds = max(time.monotonic() - self._began, 1e-3)
        rate = amount(self._fetched / seconds)
        return f"{amount(self._fetched)} in {seconds:.1f} s, {rate}/s"

    def line(self) -> str:
        with self._lock:
            done, whole, fetched = self._bytes, self._whole, self._fetched
        rate = amount(fetched / max(time.monotonic() - self._began, 1e-3))
        files = f"{whole}/{self._files} files, {rate}/s"
        if not self._total:
            return f"{self._role}: {amount(done)}, {files}"
        # All bytes are not the end yet: checksums and names come after them.
        percent = min(done * 100 // self._total, 99)
        return f"{self._role} {percent:3d}%| {_share(done, self._total)}, {files}"

    def _print_progress(self) -> None:
        before = ""
        while not self._ended.wait(EVERY):
            line = self.line()
            if line != before:
                print(line, file=self._out, flush=True)
            before = line


def amount(size: float) -> str:
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size:.0f} B"


def _share(done: int, total: int) -> str:
    unit, size = 0, float(total)
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    digits = 1 if unit else 0
    return f"{done / 1024**unit:.{digits}f}/{size:.{digits}f} {_UNITS[unit]}"
