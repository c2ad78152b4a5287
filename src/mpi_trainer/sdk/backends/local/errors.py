"""What is wrong on this machine, as the errors of `sdk/errors.py`; and jobs found by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.jobs import store
from mpi_trainer.local.jobs.jobdir import Damaged, JobDir
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.errors import JobError, JobNotFound


@contextmanager
def local_errors() -> Iterator[None]:
    """Errors of `local` inside the block become ours."""
    try:
        yield
    except LocalError as error:
        raise JobError(error.problem, error.hint) from error


@contextmanager
def readable(key: Key) -> Iterator[None]:
    """The job's directory may vanish at any moment, and may have been damaged by hand."""
    try:
        yield
    except FileNotFoundError as error:
        raise JobNotFound(f"job {key} was deleted just now") from error
    except Damaged as damage:
        raise JobError(
            f"the directory of job {key} is damaged: {damage}",
            f"Remove it: `odh mpijob delete {key.typed}`.",
        ) from damage


def find(key: Key) -> JobDir:
    try:
        with local_errors():
            return store.find(key.namespace, key.name)
    except store.NoSuchJob as error:
        raise JobNotFound(
            f"there is no job {key} on this machine", "See which there are: `odh mpijob list -A`."
        ) from error
