"""What `odh migrate` reads: files, folders of YAML and JSON, standard input."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpi_trainer.api.errors import InvalidJob, line
from mpi_trainer.cli import job_files
from mpi_trainer.local.errors import LocalError
from mpi_trainer.migrate import instances
from mpi_trainer.migrate.instances import INSTANCES
from mpi_trainer.migrate.sources import Migrated, Target, together
from mpi_trainer.migrate.sources import migrated as converted

ENDINGS = (".yaml", ".yml", ".json")
MOST_FILES = 10_000


def migrated(
    paths: Sequence[str], to: Target | None, table: str | None
) -> tuple[Migrated, tuple[str, ...]]:
    """All of them as one, and a line for each file that could not be read."""
    known = INSTANCES if table is None else instances.read(job_files.text(table), table)
    found: list[Migrated] = []
    unread: list[str] = []
    for path in _every(paths):
        try:
            text = job_files.text(path)
            if not _is_empty(text):
                found.append(converted(text, _shown(path), to, known))
        except LocalError as error:
            unread.append(f"{error.problem}; {error.hint}")
        except InvalidJob as error:
            unread += [line(one) for one in error.errors]
    return together(found), tuple(unread)


def _shown(path: str) -> str:
    return "standard input" if path == "-" else path


def _every(paths: Sequence[str]) -> Iterator[str]:
    count = 0
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            yield path
            continue
        for folder, inner, names in os.walk(path):
            inner.sort()
            for name in sorted(one for one in names if one.endswith(ENDINGS)):
                count += 1
                if count > MOST_FILES:
                    raise LocalError(
                        f"{path} holds more than {MOST_FILES} files", "Give a smaller folder."
                    )
                yield str(Path(folder, name))


def _is_empty(text: str) -> bool:
    """A template of Helm that rendered nothing leaves its comments."""
    plain = (part.strip() for part in text.splitlines())
    return all(not part or part.startswith(("#", "---")) for part in plain)
