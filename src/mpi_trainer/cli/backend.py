"""The one place where the CLI gets its backend, and where its waiting begins.

Everything heavy is imported here and late: a verb that needs no backend does not pay for it, and
one that asks a cluster a single question asks it by `quick`, without an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from mpi_trainer.cli import place, program

if TYPE_CHECKING:
    from mpi_trainer.cli.quick import Quick
    from mpi_trainer.local.settings import Settings
    from mpi_trainer.sdk.backend import Backend, JobSummary

T = TypeVar("T")


def connect(settings: Settings | None = None) -> Backend:
    """Where this command's jobs are; `settings` are for jobs of this machine."""
    where = place.said()
    if place.on_cluster(where):
        from mpi_trainer.cli.voice import say
        from mpi_trainer.sdk.cluster.backend import ClusterBackend

        return ClusterBackend(place.config(where), say)
    from mpi_trainer.sdk.local import LocalBackend

    return LocalBackend(settings)


def quick() -> Quick | None:
    """The cluster for single questions; None where this machine is meant."""
    where = place.said()
    if not place.on_cluster(where):
        return None
    from mpi_trainer.cli.quick import Quick

    return Quick(place.config(where))


def summaries(namespace: str | None) -> list[JobSummary]:
    """The jobs now, newest first."""
    cluster = quick()
    if cluster is not None:
        return list(cluster.list(namespace))
    from mpi_trainer.sdk.local import LocalBackend

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
        error.hint = suggestion(error.problem) or error.hint
        raise


def suggestion(problem: str) -> str:
    """`did you mean …?` for the job that `problem` names as namespace/name; empty where none."""
    from mpi_trainer.api.spelling import nearest

    wanted = next((word for word in problem.split() if "/" in word), "")
    namespace, _, name = wanted.partition("/")
    if not name:
        return ""
    keys = [summary.key for summary in _listed(namespace)]
    elsewhere = sorted(k.namespace for k in keys if k.name == name and k.namespace != namespace)
    if elsewhere:
        return f"There is one in namespace {elsewhere[0]}: add `-n {elsewhere[0]}`."
    here = [k.name for k in keys if k.namespace == namespace]
    if name in here:
        return ""
    meant = nearest(name, here)
    if meant:
        return f"Did you mean `{meant}`?"
    if not here:
        return f"There are no jobs in namespace {namespace}; create one: `{program.call('create')}`"
    return f"See which there are: `{program.call('list', namespace=namespace)}`."


def _listed(namespace: str) -> list[JobSummary]:
    """All jobs; of the namespace alone where a person may not see the others."""
    from mpi_trainer.sdk.errors import JobError

    for where in (None, namespace):
        with suppress(JobError):
            return summaries(where)
    return []
