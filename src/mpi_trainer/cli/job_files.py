"""Job files from disk or standard input (`-`), with errors that say what to do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_trainer.api.yaml import load
from mpi_trainer.local.errors import LocalError

if TYPE_CHECKING:
    from mpi_trainer.api.kinds.runtime import Runtime

LARGEST = 4 * 1024 * 1024


def read(path: str) -> load.JobFile:
    return load.jobs(_text(path), "standard input" if path == "-" else path)


def objects(path: str, runtimes: Sequence[Runtime] = ()) -> load.JobFile:
    """TrainJobs and runtimes too; `runtimes` are known beside those of the file."""
    return load.objects(_text(path), "standard input" if path == "-" else path, runtimes)


def _text(path: str) -> str:
    try:
        with sys.stdin.buffer if path == "-" else Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
    except IsADirectoryError as error:
        raise LocalError(f"{path} is a directory", "Give the path of a file in it.") from error
    except OSError as error:
        raise LocalError(
            f"cannot read {path}: {error.strerror}", "Check the path and its permissions."
        ) from error
    if len(data) > LARGEST:
        raise LocalError(
            f"{path} is larger than {LARGEST // 2**20} MiB, which no job file is",
            "Give the path of an MPIJob manifest.",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LocalError(
            f"{path} is not UTF-8 text (byte {error.start})",
            "Give the path of an MPIJob manifest, saved as UTF-8.",
        ) from error
