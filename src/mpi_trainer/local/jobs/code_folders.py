"""Code that came with a job of this machine: a folder of its own, which goes with the job.

The job works in it, also after a restart, and what it writes there is gone with it. The archive is
kept beside it, for copies of the job. What is removed here lies in `code_dir` and nowhere else,
whatever the settings of a job say.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.paths import code_dir

_WORK: Final = "work"
_PACKED: Final = "code.tar.gz"


def unpacked(archive: bytes) -> str:
    """A new folder with the content of an archive that `sdk.code` has made."""
    home = code_dir()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = Path(tempfile.mkdtemp(dir=home))
    try:
        (folder / _PACKED).write_bytes(archive)
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            opened.extractall(folder / _WORK, filter="data")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return str(folder)


def working_directory(folder: str) -> str:
    return f"{folder}/{_WORK}"


def packed(folder: str) -> bytes:
    """The archive that was unpacked there."""
    try:
        return Path(folder, _PACKED).read_bytes()
    except FileNotFoundError as error:
        raise LocalError(
            f"the code of the job is gone: there is no {folder}",
            "Submit the job with its code again.",
        ) from error


def remove(folder: str) -> None:
    """Nothing happens where there is none, or it is no folder of ours."""
    if folder and Path(folder).parent == code_dir():
        shutil.rmtree(folder, ignore_errors=True)


def clear(used: Collection[str], older_than_seconds: float) -> None:
    """Takes away what belongs to no job, as a client that is killed leaves it."""
    with suppress(FileNotFoundError):
        for folder in code_dir().iterdir():
            old = time.time() - folder.stat().st_mtime > older_than_seconds
            if old and str(folder) not in used:
                shutil.rmtree(folder, ignore_errors=True)
