"""The folder that data is fetched into: what is begun, what is whole, and nothing outside of it.

Names are resolved one by one from the folder itself and never through a link, so whoever else can
write there cannot have us write elsewhere. One process at a time has the folder. Files move to
their names only after all of them are there; the marker, with every file's checksum, comes last.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from mpi_trainer.initializers.model import OURS, FetchError, path_fault
from mpi_trainer.initializers.parts import Fetched, Parts, names, part_name

MARKER: Final = f"{OURS}complete.json"
"""is there only when everything is"""
_LOCK: Final = f"{OURS}lock"
STAGING: Final = f"{OURS}staging-"
_PUBLISHING: Final = "publishing.json"
_LONGEST: Final = 64 << 20
"""bytes of a marker that are read: more than the most files need"""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

_T = TypeVar("_T")


class Marker(msgspec.Struct, frozen=True):
    """`source` names what was fetched, `digest` with every file's size and version."""

    source: str
    digest: str
    files: Mapping[str, Fetched]


class _Publishing(msgspec.Struct, frozen=True):
    """What is about to get its names; `stale`: files of an earlier fetch that go."""

    marker: Marker
    stale: tuple[str, ...] = ()


class Folder:
    """Holds the folder open, and locked; use it by `opened`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._root = descriptor

    def marker(self) -> Marker | None:
        """None where nothing whole is there, or what is there cannot be read."""
        return _decoded(self._root, MARKER, Marker)

    def holds(self, marker: Marker) -> bool:
        """Whether every file is there, with its size; contents are not read again."""
        return all(self._size(path) == one.size for path, one in marker.files.items())

    def free_bytes(self) -> int:
        seen = os.fstatvfs(self._root)
        return seen.f_bavail * seen.f_frsize

    @contextmanager
    def parts(self, digest: str) -> Iterator[Parts]:
        """Where what is begun is kept; that of anything else goes. Where another fetch was killed
        while files got their names, that is ended first: only then is it known which files go."""
        name = STAGING + digest[:16]
        for other in names(self._root):
            if other.startswith(STAGING) and other != name:
                with suppress(FetchError), self._staging(other) as parts:
                    self.published(parts, other.removeprefix(STAGING))
                self._remove(other)
        with suppress(FileExistsError):
            os.mkdir(name, 0o770, dir_fd=self._root)
        with self._staging(name) as parts:
            yield parts

    @contextmanager
    def _staging(self, name: str) -> Iterator[Parts]:
        try:
            descriptor = os.open(name, _FOLDER, dir_fd=self._root)
        except OSError:
            raise FetchError(
                f"{self.path / name} is in the way, and no folder of ours", "Remove it."
            ) from None
        try:
            yield Parts(descriptor)
        finally:
            os.close(descriptor)

    def published(self, parts: Parts, digest: str) -> Marker | None:
        """Ends what was killed while files got their names; None where that had not begun, or is
        not ours: whoever can write to the folder may have written it."""
        begun = _decoded(parts.folder, _PUBLISHING, _Publishing)
        if begun is None or begun.marker.digest[:16] != digest[:16]:
            return None
        if any(path_fault(path) for path in (*begun.marker.files, *begun.stale)):
            _unlink(parts.folder, _PUBLISHING)
            return None
        waiting = set(names(parts.folder))
        for n, (path, one) in enumerate(begun.marker.files.items()):
            if part_name(n, one) not in waiting and self._size(path) != one.size:
                _unlink(parts.folder, _PUBLISHING)
                return None
        self._publish(parts, begun, waiting)
        return begun.marker

    def publish(self, parts: Parts, marker: Marker) -> None:
        """Gives every part its name, in the order of `marker.files`. May be killed at any moment:
        `published` then ends it."""
        before = self.marker()
        old = () if before is None else tuple(before.files)
        stale = tuple(p for p in old if p not in marker.files and not path_fault(p))
        begun = _Publishing(marker, stale)
        write_whole(parts.folder, _PUBLISHING, begun)
        self._publish(parts, begun, set(names(parts.folder)))

    def _publish(self, parts: Parts, begun: _Publishing, waiting: set[str]) -> None:
        _unlink(self._root, MARKER)
        os.fsync(self._root)
        for path in begun.stale:
            with self._parent(path, make=False) as parent:
                if parent is not None:
                    _unlink(parent, path.rpartition("/")[2])
        for n, (path, one) in enumerate(begun.marker.files.items()):
            name = part_name(n, one)
            if name in waiting:
                with self._parent(path, make=True) as parent:
                    assert parent is not None, "it was made"
                    self._move(parts, name, parent, path)
        self._sync({path.rpartition("/")[0] for path in begun.marker.files})
        write_whole(self._root, MARKER, begun.marker)
        self._remove(STAGING + begun.marker.digest[:16])

    def _move(self, parts: Parts, name: str, parent: int, path: str) -> None:
        try:
            os.rename(name, path.rpartition("/")[2], src_dir_fd=parts.folder, dst_dir_fd=parent)
        except IsADirectoryError:
            raise FetchError(
                f"{self.path / path} is a folder, and a file of that name was fetched",
                "Remove the folder, or fetch into an empty one (TARGET_DIR).",
            ) from None

    def _sync(self, folders: set[str]) -> None:
        for folder in sorted(folders, reverse=True):
            with self._parent(f"{folder}/x" if folder else "x", make=False) as parent:
                if parent is not None:
                    os.fsync(parent)

    def _size(self, path: str) -> int | None:
        if path_fault(path):
            return None
        with self._parent(path, make=False) as parent:
            if parent is None:
                return None
            try:
                seen = os.lstat(path.rpartition("/")[2], dir_fd=parent)
            except OSError:
                return None
        return seen.st_size if stat.S_ISREG(seen.st_mode) else None

    @contextmanager
    def _parent(self, path: str, *, make: bool) -> Iterator[int | None]:
        """The folder of a file, opened name by name; None where it is not there, unless made."""
        at = os.dup(self._root)
        try:
            for name in path.split("/")[:-1]:
                try:
                    below = _entered(at, name, make)
                except OSError as error:
                    if not make:
                        yield None
                        return
                    if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                        raise
                    raise FetchError(
                        f"{name} in {self.path} is a link or a file, not a folder: {path} is not "
                        "written through it",
                        "Remove it, or fetch into an empty folder (TARGET_DIR).",
                    ) from None
                os.close(at)
                at = below
            yield at
        finally:
            os.close(at)

    def _remove(self, name: str) -> None:
        """A folder of ours has files in it and nothing else."""
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.lstat(name, dir_fd=self._root).st_mode):
                os.unlink(name, dir_fd=self._root)
                return
            with self._staging(name) as parts:
                for one in names(parts.folder):
                    os.unlink(one, dir_fd=parts.folder)
            os.rmdir(name, dir_fd=self._root)


@contextmanager
def opened(path: Path, wait: Callable[[], None]) -> Iterator[Folder]:
    """The folder, made where it is missing, for one process alone; `wait` is called while another
    has it. Raises FetchError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        lock = os.open(
            _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=descriptor
        )
    except OSError as error:
        raise FetchError(
            f"{path} cannot be written to: {error.strerror}",
            "Mount a volume there that this user id may write to (fsGroup), or set TARGET_DIR.",
        ) from None
    try:
        _lock(lock, wait)
        yield Folder(path, descriptor)
    finally:
        os.close(lock)
        os.close(descriptor)


def write_whole(folder: int, name: str, value: object) -> None:
    """A small file that outlives a power cut, with its name and all names beside it."""
    temporary = f".{name}.{os.urandom(4).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(temporary, flags, 0o664, dir_fd=folder), "wb") as file:
            file.write(msgspec.json.encode(value))
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _unlink(folder, temporary)
        raise
    os.fsync(folder)


def _decoded(folder: int, name: str, kind: type[_T]) -> _T | None:
    """What `write_whole` wrote; None where it is missing or not ours."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        text = file.read(_LONGEST + 1)
    if len(text) > _LONGEST:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _entered(at: int, name: str, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=at)
    return os.open(name, _FOLDER, dir_fd=at)


def _unlink(folder: int, name: str) -> None:
    with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
        os.unlink(name, dir_fd=folder)


def _lock(descriptor: int, wait: Callable[[], None]) -> None:
    """Where the file system has no locks, nothing keeps two apart; but each has what it fetched."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            wait()
            time.sleep(0.5)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
            return
