"""Files of converted jobs: all of them, or none.

Guarantee: what is there is not replaced unless that was asked for, and a file is never half
written. Danger: between the first and the last rename a crash or a full disk leaves new files
beside old ones.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs.migrate import shown
from mpi_trainer.local.errors import LocalError
from mpi_trainer.migrate.report import Converted


def check_folder(folder: str, jobs: Sequence[Converted], *, overwrite: bool) -> list[Path]:
    """The file of each job; LocalError where one is there already, or two jobs have one file."""
    where = Path(folder)
    if where.exists() and not where.is_dir():
        raise LocalError(f"{folder} is not a directory", "Give another `--output-dir`.")
    paths = [Path(folder) / file_name(job) for job in jobs]
    twice = next((path for path, count in Counter(paths).items() if count > 1), None)
    if twice is not None:
        raise LocalError(f"two jobs would be written to {twice}", "Rename one of them.")
    inner = next((path for path in paths if path.is_dir() and not path.is_symlink()), None)
    if inner is not None:
        raise LocalError(f"{inner} is a directory", "Remove it, or give another `--output-dir`.")
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there and not overwrite:
        raise LocalError(
            f"{', '.join(there[:3])} {'is' if len(there) == 1 else 'are'} there already",
            "Give another `--output-dir`, or `--overwrite` to replace them.",
        )
    return paths


def file_name(job: Converted) -> str:
    """After the new object; with its namespace, where it names one."""
    meta = job.objects[-1]["metadata"]
    name = meta.get("name") or meta["generateName"].rstrip("-")
    return f"{meta['namespace']}.{name}.yaml" if meta.get("namespace") else f"{name}.yaml"


def write(jobs: Sequence[Converted], paths: Sequence[Path]) -> None:
    folder = paths[0].parent
    try:
        _write(jobs, paths)
    except OSError as error:
        raise LocalError(
            f"cannot write to {folder}: {error.strerror}", "Give another `--output-dir`."
        ) from error
    terminal.say(f"wrote {len(paths)} {'file' if len(paths) == 1 else 'files'} to {folder}")


def _write(jobs: Sequence[Converted], paths: Sequence[Path]) -> None:
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    mark = secrets.token_hex(4)
    new = [path.with_name(f".{path.name}.{mark}") for path in paths]
    try:
        for job, path in zip(jobs, new, strict=True):
            path.write_text("\n---\n".join(shown.documents((job,))) + "\n", "utf-8")
        for temporary, path in zip(new, paths, strict=True):
            temporary.replace(path)
    finally:
        for path in new:
            path.unlink(missing_ok=True)
