"""`file:///path`: a file or folder of a volume that is mounted, such as another claim.

A link is followed only to what lies in the same folder: whoever can write there must not have us
copy other files of this pod, its credentials among them. What is looked at is the file that was
opened, so that names may be exchanged at any moment.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from mpi_trainer.initializers.folder import MARKER, STAGING
from mpi_trainer.initializers.model import (
    LONGEST_PATH,
    OURS,
    FetchError,
    Item,
    Pieces,
    Settings,
    TemporaryFault,
)

_BLOCK: Final = 1 << 20
_OF_FILE_SYSTEM: Final = "lost+found"


class Local:
    def __init__(self, settings: Settings) -> None:
        parts = urlsplit(settings.uri)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise FetchError(
                f"{settings.uri} names a machine: only this pod's own files can be read",
                "Write file:///path, with three slashes.",
            )
        self._settings = settings
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
        folders = [""]
        while folders:
            at = folders.pop()
            for entry in self._entries(at):
                path = f"{at}/{entry.name}" if at else entry.name
                if entry.is_symlink() and self._settings.ignores(path):
                    continue
                if entry.is_dir():
                    if path != _OF_FILE_SYSTEM and not self._settings.ignores_all_in(path):
                        folders.append(self._folder(path))
                elif self._settings.lists(path):
                    yield self._item(path)

    def read(self, item: Item, start: int, end: int | None) -> Pieces:
        found = self._opened(item.path)
        try:
            descriptor = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise self._refused(item.path, str(error.strerror)) from None
        finally:
            os.close(found)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            if _version(os.fstat(descriptor)) != item.version:
                raise self._refused(item.path, "has changed while it was read")
            at, size = start, item.size or 0
            last = size if end is None else end
            while at < last:
                try:
                    data = os.pread(file.fileno(), min(_BLOCK, last - at), at)
                except OSError as error:
                    raise TemporaryFault(str(error.strerror)) from None
                if not data:
                    raise self._refused(item.path, "has become shorter")
                yield data
                at += len(data)

    def close(self) -> None:
        pass

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        """Without what an initializer has put there beside the data."""
        try:
            with os.scandir(self._root / folder) as entries:
                found = list(entries)
        except OSError as error:
            raise self._refused(folder or ".", str(error.strerror)) from None
        names = {entry.name for entry in found}
        if MARKER not in names and any(name.startswith(STAGING) for name in names):
            raise FetchError(
                f"{self._root / folder} is not whole: what is fetched into it has not all come",
                "Wait for that initializer to end, or start it again.",
            )
        return [entry for entry in found if not entry.name.startswith(OURS)]

    def _item(self, path: str) -> Item:
        found = self._opened(path)
        try:
            seen = os.fstat(found)
        finally:
            os.close(found)
        if not stat.S_ISREG(seen.st_mode):
            raise self._refused(path, "is no plain file")
        return Item(path, seen.st_size, _version(seen))

    def _opened(self, path: str) -> int:
        """A descriptor of what the path leads to, which is in the folder, to look at and not to
        read from: it may be a pipe."""
        try:
            found = os.open(self._root / path, os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            raise self._refused(path, str(error.strerror)) from None
        if not Path(f"/proc/self/fd/{found}").readlink().is_relative_to(self._root):
            os.close(found)
            raise self._refused(path, "is a link to what lies outside")
        return found

    def _folder(self, folder: str) -> str:
        if (self._root / folder).is_symlink():
            raise self._refused(folder, "is a link to a folder")
        if len(os.fsencode(folder)) > LONGEST_PATH:
            raise self._refused(folder[:200], "… leads deeper than any path that is fetched")
        return folder

    def _refused(self, path: str, why: str) -> FetchError:
        return FetchError(
            f"{self._root / path} {why}", "Correct it there, or leave it out with IGNORE_PATTERNS."
        )


def _version(seen: os.stat_result) -> str:
    return f"{seen.st_size}-{seen.st_mtime_ns}"
