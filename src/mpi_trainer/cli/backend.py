"""The one place where the CLI gets its backend, and where its waiting begins.

Everything heavy is imported here and late: a verb that needs no backend does not pay for it, and
one that asks a cluster a single question asks it by `quick`, without an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from mpi_trainer.cli import program, target

if TYPE_CHECKING:
    from mpi_trainer.cli.quick import Quick
    from mpi_trainer.local.execute.settings import LocalSettings
    from mpi_trainer.sdk.backends.backend import Backend, JobSummary

T = TypeVar("T")


def connect(settings: LocalSettings | None = None) -> Backend:
    """Where this command's jobs are; `settings` are for jobs of this machine.

    On a cluster, where a kind was typed, jobs of no other are seen.
    """
    where = target.said()
    if target.on_cluster(where):
        from mpi_trainer.cli.output.verbosity import say
        from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
        from mpi_trainer.sdk.backends.cluster.kinds import KINDS

        typed = program.typed_kind()
        meant = tuple(kind for kind in KINDS if kind.resource.kind.lower() == typed)
        return ClusterBackend(target.config(where), say, meant or KINDS)
    from mpi_trainer.sdk.backends.local.backend import LocalBackend

    return LocalBackend(settings)


def quick() -> Quick | None:
    """The cluster for single questions; None where this machine is meant."""
    where = target.said()
    if not target.on_cluster(where):
        return None
    from mpi_trainer.cli.quick import Quick

    return Quick(target.config(where))


def summaries(namespace: str | None) -> list[JobSummary]:
    """The jobs now, newest first."""
    cluster = quick()
    if cluster is not None:
        return list(cluster.list(namespace))
    from mpi_trainer.sdk.backends.local.backend import LocalBackend

    return list(LocalBackend().list_now(namespace))


def answer(work: Coroutine[Any, Any, T]) -> T:
    """Runs the work to its end; a job that is not there is answered with what was meant."""
    import asyncio
    import gc

    gc.enable()  # from here on it may take hours
    return known(lambda: asyncio.run(work))


def known(work: Callable[[], T]) -> T:
    """The work's result; a job that is not there is answered with what was meant."""
    from mpi_trainer.sdk.errors import JobNotFound

    try:
        return work()
    except JobNotFound as error:
        from mpi_trainer.cli.suggestion import suggestion

        error.hint = suggestion(error.problem) or error.hint
        raise
