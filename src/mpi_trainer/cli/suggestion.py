"""What was meant by the name of a job that is not there: one spelled alike, or of another kind, or
in another namespace. Asked only when something went wrong, so it may take its time."""

from __future__ import annotations

from contextlib import suppress

from mpi_trainer.api.spelling import nearest
from mpi_trainer.cli import context
from mpi_trainer.cli.context import cluster, list_jobs, run_async
from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.sdk.backends.cluster.kinds import KINDS
from mpi_trainer.sdk.errors import JobError


def suggestion(problem: str) -> str:
    """For the job that `problem` names as namespace/name; empty where nothing is to be said."""
    wanted = next((word for word in problem.split() if "/" in word), "")
    namespace, _, name = wanted.partition("/")
    if not name:
        return ""
    jobs, key = _listed(namespace), Key(namespace, name)
    others = [job.kind for job in jobs if job.key == key and not _meant(job)]
    if others:
        see = f"{context.program_name()} {others[0].lower()}"
        return f"There is a {others[0]} of that name; see `{see}`."
    return _nearby([job.key for job in jobs if _meant(job)], key)


def _nearby(keys: list[Key], wanted: Key) -> str:
    elsewhere = sorted(k.namespace for k in keys if k.name == wanted.name and k != wanted)
    if elsewhere:
        return f"There is one in namespace {elsewhere[0]}: add `-n {elsewhere[0]}`."
    here = [k.name for k in keys if k.namespace == wanted.namespace]
    if wanted.name in here:
        return ""
    meant = nearest(wanted.name, here)
    if meant:
        return f"Did you mean `{meant}`?"
    if not here:
        create = context.command_line("create")
        return f"There are no jobs in namespace {wanted.namespace}; create one: `{create}`"
    return f"See which there are: `{context.command_line('list', namespace=wanted.namespace)}`."


def _meant(job: JobSummary) -> bool:
    """Whether it is of the kind that was typed; on this machine all kinds share their names."""
    return not context.on_cluster() or job.kind.lower() == context.job_kind()


def _listed(namespace: str) -> list[JobSummary]:
    """All jobs of every kind; of the namespace alone where a person may not see the others."""
    for where in (None, namespace):
        with suppress(JobError):
            if not context.on_cluster():
                return list_jobs(where)
            jobs, closed = run_async(cluster(single=True, kinds=KINDS).list_readable(where))
            if jobs or not closed:
                return list(jobs)
    return []
