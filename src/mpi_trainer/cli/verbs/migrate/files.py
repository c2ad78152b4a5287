"""What `odh migrate` reads: files, folders of YAML and JSON, standard input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mpi_trainer.api.errors import InvalidJob, line
from mpi_trainer.cli import job_files
from mpi_trainer.cli.output import terminal
from mpi_trainer.local.errors import LocalError
from mpi_trainer.migrate import instances
from mpi_trainer.migrate.instances import INSTANCES
from mpi_trainer.migrate.sources import Migrated, Target, together
from mpi_trainer.migrate.sources import migrated as converted

ENDINGS = (".yaml", ".yml", ".json")
MOST_FILES = 10_000


def migrated(
    paths: Sequence[str], to: Target | None, table: str | None, without: str | None = None
) -> tuple[Migrated, tuple[str, ...]]:
    """All of them as one, and a line for each file that could not be read. Of folders, the one
    `without` is left out: what was made there before is no source."""
    known = INSTANCES if table is None else instances.read(job_files.text(table), table)
    found: list[Migrated] = []
    unread: list[str] = []
    for path in _once(_every(paths, without)):
        try:
            text = job_files.text(path)
            if not _is_empty(text):
                found.append(converted(text, shown(path), to, known))
        except LocalError as error:
            hint = error.hint[:1].lower() + error.hint[1:].removesuffix(".")
            unread.append(printable(f"{error.problem}; {hint}"))
        except InvalidJob as error:
            unread += [line(one) for one in error.errors]
    return together(found), tuple(unread)


def shown(path: str) -> str:
    return "standard input" if path == "-" else printable(path)


def printable(text: str) -> str:
    """A file may be called anything, also by bytes that are no text or that a terminal obeys."""
    return terminal.inert(os.fsencode(text).decode("utf-8", "backslashreplace"))


def _once(paths: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for path in paths:
        real = path if path == "-" else os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            yield path


def _every(paths: Sequence[str], without: str | None) -> Iterator[str]:
    count = 0
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            yield path
            continue
        for one in _inside(path, without):
            count += 1
            if count > MOST_FILES:
                raise LocalError(
                    f"{shown(path)} holds more than {MOST_FILES} files", "Give a smaller folder."
                )
            yield one


def _inside(path: str, without: str | None) -> Iterator[str]:
    """Neither hidden folders, which are other programs', nor what would be waited for."""
    left_out = None if without is None else os.path.realpath(without)
    for folder, inner, names in os.walk(path, onerror=_unlisted):
        inner[:] = sorted(
            one
            for one in inner
            if not one.startswith(".") and os.path.realpath(Path(folder, one)) != left_out
        )
        for name in sorted(one for one in names if one.endswith(ENDINGS)):
            found = Path(folder, name)
            if found.is_file() or not found.exists():
                yield str(found)


def _unlisted(error: OSError) -> None:
    problem = f"cannot list {shown(str(error.filename))}: {error.strerror}"
    raise LocalError(problem, "Check its permissions, or give the files themselves.")


def _is_empty(text: str) -> bool:
    """A template of Helm that rendered nothing leaves its comments."""
    plain = (part.strip() for part in text.splitlines())
    return all(not part or part.startswith(("#", "---")) for part in plain)
