"""`file:///path`: a file or folder of a volume that is mounted, such as another claim.

A link is followed only to what lies in the same folder: whoever can write there must not have us
copy other files of this pod, its credentials among them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from mpi_trainer.initializers.model import FetchError, Item, Pieces, Settings, TemporaryFault

_BLOCK: Final = 1 << 20


class Local:
    def __init__(self, settings: Settings) -> None:
        parts = urlsplit(settings.uri)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise FetchError(
                f"{settings.uri} names a machine: only this pod's own files can be read",
                "Write file:///path, with three slashes.",
            )
        self._uri = settings.uri
        path = Path(unquote(parts.path))
        try:
            self._path = path.resolve(strict=True)
            single = stat.S_ISREG(self._path.stat().st_mode)
        except (OSError, ValueError, RuntimeError):
            raise FetchError(
                f"{path} is not there, or may not be read",
                "Mount the volume that has it into the initializer, and see to its path and modes.",
            ) from None
        self._root = self._path.parent if single else self._path
        self._single = single

    def items(self) -> Iterator[Item]:
        if self._single:
            yield self._item(self._path.name)
            return
        for folder, folders, names in os.walk(self._root):
            folders.sort()
            for name in [n for n in folders if Path(folder, n).is_symlink()]:
                raise self._refused(Path(folder, name), "is a link to a folder")
            for name in sorted(names):
                yield self._item(str(Path(folder, name).relative_to(self._root)))

    def read(self, item: Item, start: int, end: int | None) -> Pieces:
        try:
            descriptor = os.open(
                self._target(item.path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            )
        except OSError as error:
            raise self._refused(self._root / item.path, str(error.strerror)) from None
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            if _version(os.fstat(descriptor)) != item.version:
                raise self._refused(self._root / item.path, "has changed while it was read")
            at, size = start, item.size or 0
            last = size if end is None else end
            while at < last:
                try:
                    data = os.pread(file.fileno(), min(_BLOCK, last - at), at)
                except OSError as error:
                    raise TemporaryFault(str(error.strerror)) from None
                if not data:
                    raise self._refused(self._root / item.path, "has become shorter")
                yield data
                at += len(data)

    def close(self) -> None:
        pass

    def _item(self, path: str) -> Item:
        try:
            seen = os.lstat(self._target(path))
        except OSError as error:
            raise self._refused(self._root / path, str(error.strerror)) from None
        if not stat.S_ISREG(seen.st_mode):
            raise self._refused(self._root / path, "is no plain file")
        return Item(path, seen.st_size, _version(seen))

    def _target(self, path: str) -> Path:
        full = self._root / path
        found = Path(os.path.realpath(full))
        if found != full and not found.is_relative_to(self._root):
            raise self._refused(full, "is a link to what lies outside")
        return found

    def _refused(self, path: Path, why: str) -> FetchError:
        return FetchError(
            f"{path} {why}", "Correct it there, or leave it out with IGNORE_PATTERNS."
        )


def _version(seen: os.stat_result) -> str:
    return f"{seen.st_size}-{seen.st_mtime_ns}"
