"""Files that somebody sends, as code that travels with a job. Pure.

Names and sizes come from anywhere, so nothing is taken on trust: a name leads nowhere but into the
folder, no name is there twice, and what is too large is refused by its largest files. What a
folder would leave at home (`ignored_files`) is left out here too. Nothing is written to any disk.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from mpi_trainer.sdk.code.bundle import LARGEST, MOST_BYTES, MOST_FILES, Bundle, in_words, named
from mpi_trainer.sdk.code.ignored_files import FILE, Ignored, ignored
from mpi_trainer.sdk.errors import NotShippable

_LONGEST_PART: Final = 255
_LONGEST_NAME: Final = 1024
_DEEPEST: Final = 32
_SHOWN: Final = 100
_WILD: Final = frozenset("*?[")
_RULES_BYTES: Final = 16 * 1024
_RULES: Final = 1000
_MOST_COMPARED: Final = 500_000_000
"""characters of patterns times those of names: what they take at worst is some seconds"""


class CodeFile(msgspec.Struct, frozen=True):
    """`name` is a path within the folder, with `/`."""

    name: str
    data: bytes
    executable: bool = False


def file_name(raw: bytes) -> str:
    """The path within the folder that the bytes mean; NotShippable where they lead elsewhere."""
    shown = repr(raw[:_SHOWN].decode(errors="backslashreplace"))
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise _wrong_name(shown, "is not UTF-8") from None
    if len(raw) > _LONGEST_NAME:
        raise _wrong_name(shown, f"is longer than {_LONGEST_NAME} bytes")
    if not text.isprintable() or "\\" in text:
        raise _wrong_name(shown, "has a character that names of files should not have")
    if text.startswith("/") or text[1:2] == ":":
        raise _wrong_name(shown, "begins at the root of a file system")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _wrong_name(shown, "leads out of the folder")
    if not parts:
        raise _wrong_name(shown, "names no file")
    if len(parts) > _DEEPEST or any(len(part.encode()) > _LONGEST_PART for part in parts):
        raise _wrong_name(shown, "is too long or too deep")
    return "/".join(parts)


def checked_room(files: int, size: int) -> None:
    """To be asked before a further file is read, with the number and bytes of all so far."""
    if files > MOST_FILES or size > MOST_BYTES:
        raise NotShippable(
            f"the code is too large to travel with a job: more than {MOST_FILES} files or"
            f" {in_words(MOST_BYTES)}",
            _HINT,
        )


def bundle_of(files: Sequence[CodeFile]) -> Bundle:
    """The files, packed; the same files give the same bytes, in whatever order they came."""
    checked_room(len(files), sum(len(file.data) for file in files))
    _check_unique(files)
    kept = sorted(_kept(files), key=lambda file: file.name)
    if not kept:
        raise NotShippable(
            "the code that was sent holds no file that travels with a job",
            f"Send the folder's files; {FILE} and what never travels are left out.",
        )
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for file in kept:
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mode = len(file.data), 0o755 if file.executable else 0o644
            archive.addfile(entry, io.BytesIO(file.data))
    data = packed.getvalue()
    size = sum(len(file.data) for file in kept)
    if len(data) > LARGEST:
        largest = named([(file.name, len(file.data)) for file in kept])
        raise NotShippable(
            f"the code is too large to travel with a job: {in_words(len(data))} compressed, and at"
            f" most {in_words(LARGEST)} do; its largest files are {largest}",
            _HINT,
        )
    return Bundle(hashlib.sha256(data).hexdigest(), data, len(kept), size)


_HINT: Final = (
    f"Leave data out, or name it in {FILE}, and give it to the job as a volume"
    " (a PersistentVolumeClaim) or by S3, or put the code into the image."
)


def _kept(files: Iterable[CodeFile]) -> Iterator[CodeFile]:
    """Less what `.odhignore` names, and what never travels; a folder's rule holds for all in it."""
    files = tuple(files)
    rules = next((file.data for file in files if file.name == FILE), b"")
    lines = rules.decode(errors="replace").splitlines()
    if len(rules) > _RULES_BYTES or len(lines) > _RULES:
        raise NotShippable(f"{FILE} has too many lines", f"Write at most {_RULES} lines.")
    patterns = sum(len(line) for line in lines if _WILD.intersection(line))
    if patterns * sum(len(file.name) for file in files) > _MOST_COMPARED:
        raise NotShippable(
            f"{FILE} has too many patterns for so many files",
            "Name folders in place of patterns, or send fewer files.",
        )
    skips = ignored(lines)
    folders: dict[str, bool] = {"": False}
    for file in files:
        if not _skipped(file.name.rpartition("/")[0], skips, folders) and not skips(
            file.name, folder=False
        ):
            yield file


def _skipped(folder: str, skips: Ignored, known: dict[str, bool]) -> bool:
    found = known.get(folder)
    if found is None:
        above = folder.rpartition("/")[0]
        found = _skipped(above, skips, known) or skips(folder, folder=True)
        known[folder] = found
    return found


def _check_unique(files: Iterable[CodeFile]) -> None:
    """No file twice, and none where another one needs a folder."""
    names: set[str] = set()
    folders: set[str] = set()
    for file in files:
        if file.name in names:
            raise _wrong_name(repr(file.name[:_SHOWN]), "is there twice")
        names.add(file.name)
        above = file.name.rpartition("/")[0]
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition("/")[0]
    if both := names & folders:
        raise _wrong_name(repr(min(both)[:_SHOWN]), "is a file and a folder")


def _wrong_name(shown: str, why: str) -> NotShippable:
    return NotShippable(
        f"the name {shown} {why}",
        "Send files with paths within their folder, such as src/train.py.",
    )
