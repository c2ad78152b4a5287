"""The one place where the CLI gets its backend, and where its waiting begins.

Everything heavy is imported here and late: a verb that needs no backend does not pay for it.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mpi_trainer.cli import program, target

if TYPE_CHECKING:
    from mpi_trainer.local.execute.settings import LocalSettings
    from mpi_trainer.sdk.backends.backend import Backend, JobSummary
    from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
    from mpi_trainer.sdk.backends.cluster.kinds import Kind

T = TypeVar("T")


def connect(settings: LocalSettings | None = None, *, single: bool = False) -> Backend:
    """Where this command's jobs are; `settings` are for jobs of this machine, `single` is as in
    `cluster`."""
    if target.on_cluster(target.said()):
        return cluster(single=single)
    from mpi_trainer.sdk.backends.local.backend import LocalBackend

    return LocalBackend(settings)


def cluster(*, single: bool = False, kinds: Sequence[Kind] = ()) -> ClusterBackend:
    """The cluster that is meant. Jobs of other kinds than `kinds` are not seen; without them, of
    others than the one that was typed.

    `single` starts in a fraction of the time, and cannot watch, follow or enter anything.
    """
    from mpi_trainer.cli.output.verbosity import say
    from mpi_trainer.sdk.backends.cluster import connections
    from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
    from mpi_trainer.sdk.backends.cluster.kinds import KINDS

    typed = program.typed_kind()
    meant = tuple(kinds) or tuple(k for k in KINDS if k.resource.kind.lower() == typed) or KINDS
    client = connections.single_answers if single else connections.streaming
    return ClusterBackend(target.config(), say, meant, client)


def summaries(namespace: str | None) -> list[JobSummary]:
    """The jobs now, newest first."""
    return list(answer(connect(single=True).list(namespace)))


def answer(work: Coroutine[Any, Any, T]) -> T:
    """Runs the work to its end; a job that is not there is answered with what was meant."""
    import asyncio

    from mpi_trainer.sdk.errors import JobNotFound

    try:
        return asyncio.run(work)
    except JobNotFound as error:
        from mpi_trainer.cli.suggestion import suggestion

        error.hint = suggestion(error.problem) or error.hint
        raise
