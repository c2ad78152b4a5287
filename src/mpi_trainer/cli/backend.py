"""The one place where the CLI gets its backend, and where its waiting begins.

Everything heavy is imported here and late: a verb that needs no backend does not pay for it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from mpi_trainer.cli import program

if TYPE_CHECKING:
    from mpi_trainer.local.settings import Settings
    from mpi_trainer.sdk.backend import Backend, JobSummary

T = TypeVar("T")


def connect(settings: Settings | None = None) -> Backend:
    from mpi_trainer.sdk.local import LocalBackend

    return LocalBackend(settings)


def summaries(namespace: str | None) -> list[JobSummary]:
    """The jobs now, newest first, without an event loop where the backend can do without."""
    backend = connect()
    quick = getattr(backend, "list_now", None)
    return list(quick(namespace) if quick else answer(_list(backend, namespace)))


async def _list(backend: Backend, namespace: str | None) -> Any:
    return await backend.list(namespace)


def answer(work: Coroutine[Any, Any, T]) -> T:
    """Runs the work to its end; a job that is not there is answered with what was meant."""
    import asyncio

    from mpi_trainer.sdk.errors import JobNotFound

    try:
        return asyncio.run(work)
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
    keys = [summary.key for summary in summaries(None)]
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
