"""Files that are there in full or not at all, and reading that trusts no file.

What is written has a temporary name until it is on disk. A small file has its checksum in its first
line. Nothing but plain files is ever opened.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, NamedTuple

LONGEST: Final = 64 << 20
"""bytes of a small file that are read: room for the checksums of hundreds of thousands of ranks"""

State = Mapping[str, Any] | bytes | Callable[[str], object] | None


class Broken(Exception):
    """Why something cannot be taken; `part` is the rank whose part it is about."""

    def __init__(self, why: str, part: int = 0) -> None:
        super().__init__(why)
        self.part = part


class Part(NamedTuple):
    """What a rank wrote."""

    size: int
    sha256: str


def writer(state: State) -> Callable[[Path], object] | None:
    """Writes the state to a path. What could be loaded only by unpickling is refused."""
    if state is None:
        return None
    if isinstance(state, bytes):
        return lambda path: path.write_bytes(state)
    if callable(state):
        return lambda path: state(str(path))
    if not isinstance(state, Mapping):
        raise TypeError(f"state is of {type(state)}: give arrays by name, bytes or a function")
    import zipfile

    import numpy as np

    arrays = {name: np.asarray(value) for name, value in state.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"state[{name!r}] holds Python objects: give numbers or text")

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:  # as np.savez, but for any name
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)

    return write


def write_part(path: Path, write: Callable[[Path], object]) -> Part:
    """The name is durable with the next `write_whole` in the same folder."""
    temporary = _temporary(path)
    try:
        write(temporary)
        with opened(temporary) as file:
            os.fsync(file.fileno())
            part = Part(file.seek(0, os.SEEK_END), _sha256(file))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return part


def write_whole(path: Path, said: Mapping[str, object]) -> None:
    """A small file that outlives a power cut, with its name and all names beside it."""
    text = json.dumps(said).encode()
    temporary = _temporary(path)
    try:
        with temporary.open("wb") as file:
            file.write(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.urandom(4).hex()}")


def sync_folder(folder: Path) -> None:
    """Makes its names durable, where the file system can do that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def opened(path: Path) -> BufferedReader:
    """A plain file; never a link, nor a pipe that would be waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise Broken(f"{path.name} is a link") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Broken(f"{path.name} is not a plain file")
    return os.fdopen(descriptor, "rb")


def _sha256(file: BufferedReader) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def read_whole(path: Path) -> dict[str, Any]:
    """What `write_whole` wrote. Raises FileNotFoundError or Broken."""
    with opened(path) as file:
        text = file.read(LONGEST + 1)
    seal, _, body = text.partition(b"\n")
    if len(text) > LONGEST or hashlib.sha256(body).hexdigest().encode() != seal:
        raise Broken(f"{path.name} is cut, damaged or not ours: its checksum is wrong")
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise Broken(f"{path.name} is not ours: it holds no values by name")
    return said


def number(said: Mapping[str, Any], name: str, end: int) -> int:
    value = said.get(name)
    if type(value) is not int or not 0 <= value < end:
        raise Broken(f"{name!r} is {value!r:.40}, not a number from 0 to {end - 1}")
    return value


def check_part(path: Path, rank: int, part: Part, *, read: bool) -> None:
    """Its size and, where it is to be read, its checksum."""
    try:
        with opened(path) as file:
            size = file.seek(0, os.SEEK_END)
            if size != part.size:
                raise Broken(f"the part of rank {rank} has {size} of {part.size} bytes", rank)
            if read and _sha256(file) != part.sha256:
                raise Broken(f"the part of rank {rank} is damaged: its checksum is wrong", rank)
    except FileNotFoundError:
        raise Broken(f"the part of rank {rank} is missing", rank) from None
