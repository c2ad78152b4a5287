"""A folder as one small archive that travels with a job.

The same content gives the same bytes, whoever packs it and when, so its digest names it. What
`.odhignore` names stays at home. Guarantee: what is too large is refused before anything is sent,
with the largest files by name. Links that lead out of the folder are refused: there, they would
lead nowhere.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from mpi_trainer.sdk.code.ignored_files import FILE, Ignored, ignored
from mpi_trainer.sdk.errors import NotShippable

LARGEST: Final = 768 * 1024
"""compressed; in base64 it just fits into a ConfigMap, which may have 1 MiB"""
MOST_BYTES: Final = 64 << 20
"""before compression: more is hopeless"""
MOST_FILES: Final = 10_000
_NAMED: Final = 3


class Bundle(msgspec.Struct, frozen=True):
    digest: str
    data: bytes
    files: int
    size: int


class _File(msgspec.Struct, frozen=True):
    path: Path
    name: str
    size: int


def bundle(folder: str | Path) -> Bundle:
    """The content of `folder`, packed."""
    root = Path(folder).resolve()
    if not root.is_dir():
        raise NotShippable(f"{folder} is not a folder", "Give the folder with the job's code.")
    rules = root / FILE
    lines = rules.read_text(errors="replace").splitlines() if rules.is_file() else ()
    files = sorted(_walk(root, "", ignored(lines)), key=lambda f: f.name)
    size = sum(file.size for file in files)
    if size > MOST_BYTES or len(files) > MOST_FILES:
        raise _too_large(root, files, f"{len(files)} files with {in_words(size)}")
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for file in files:
            _add(archive, file)
    data = packed.getvalue()
    if len(data) > LARGEST:
        raise _too_large(root, files, f"{in_words(len(data))} compressed")
    return Bundle(hashlib.sha256(data).hexdigest(), data, len(files), size)


def _walk(root: Path, inside: str, skips: Ignored) -> Iterator[_File]:
    with os.scandir(root / inside) as entries:
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            folder = entry.is_dir(follow_symlinks=False)
            if skips(name, folder=folder):
                continue
            if folder:
                yield from _walk(root, name, skips)
            elif entry.is_symlink():
                _check_link(root, name)
                yield _File(root / name, name, 0)
            elif entry.is_file():
                yield _File(root / name, name, entry.stat().st_size)


def _check_link(root: Path, name: str) -> None:
    target = Path(root / name).readlink()
    if target.is_absolute() or not (root / name).resolve().is_relative_to(root):
        raise NotShippable(
            f"{name} is a link to {target}, which lies outside of the folder",
            f"Copy what it points to into the folder, or name it in {FILE}.",
        )


def _add(archive: tarfile.TarFile, file: _File) -> None:
    """Without owner and times, which say nothing of the content."""
    entry = archive.gettarinfo(str(file.path), file.name)
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    entry.mode = 0o755 if entry.mode & stat.S_IXUSR else 0o644
    if not entry.isreg():
        archive.addfile(entry)
        return
    with file.path.open("rb") as content:
        archive.addfile(entry, content)


def _too_large(root: Path, files: list[_File], how: str) -> NotShippable:
    largest = named([(f.name, f.size) for f in files])
    return NotShippable(
        f"{root} is too large to travel with a job: {how}, and at most {in_words(LARGEST)} do;"
        f" its largest files are {largest}",
        f"Name data in {FILE} and give it to the job as a volume (a PersistentVolumeClaim) or by"
        " S3, or put the code into the image.",
    )


def named(files: Sequence[tuple[str, int]]) -> str:
    """The largest of them, by name and size."""
    largest = sorted(files, key=lambda file: -file[1])[:_NAMED]
    return ", ".join(f"{name} ({in_words(size)})" for name, size in largest)


def in_words(count: int) -> str:
    """A number of bytes."""
    if count < 1 << 20:
        return f"{count / 1024:.0f} KiB"
    return f"{count / (1 << 20):.1f} MiB"
