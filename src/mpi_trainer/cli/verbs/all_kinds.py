"""`odh list` and `odh training list`: training jobs of every kind, newest first (AC-17).

States are the six words that all kinds share (`sdk.backends.cluster.kinds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import click

from mpi_trainer.cli import context
from mpi_trainer.cli.context import cluster, run_async
from mpi_trainer.cli.output import formatting
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob.list import (
    MPIJOBS,
    ListFormat,
    ListOptions,
    list_options,
    print_list,
)
from mpi_trainer.sdk.backends.backend import JobQuery, JobSummary
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, Kind

KIND: Final = "KIND"


@click.command("list")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@list_options
@verbosity_options
def command(*, kinds: tuple[str, ...], **given: Any) -> None:
    """List training jobs of every kind, newest first, or of the kinds that are named."""
    print_jobs(kinds, ListOptions(**given))


def print_jobs(kinds: Sequence[str], asked: ListOptions) -> None:
    """Of these kinds, or of all where none is named."""
    wanted = [_kind(word) for word in kinds] or list(KINDS)
    reported: set[str] = set()

    def found(namespace: str | None, query: JobQuery) -> list[JobSummary]:
        if not context.on_cluster():
            meant = [kind.resource.kind for kind in wanted]
            return [job for job in context.list_jobs(namespace, query) if job.kind in meant]
        backend = cluster(single=True, kinds=wanted)
        jobs, closed = run_async(backend.list_readable(namespace, query))
        unsaid = [kind for kind in closed if kind not in reported]
        if unsaid:
            say(f"not shown, because you may not list them: {', '.join(unsaid)}")
        reported.update(unsaid)
        return list(jobs)

    print_list(found, EVERY_KIND, asked)


def _kind(word: str) -> Kind:
    found = kind_of(word)
    if found is None:
        known = ", ".join(kind.resource.kind.lower() for kind in KINDS)
        raise click.UsageError(f"{word!r} is not a kind of training job; there are {known}")
    return found


def kind_of(word: str) -> Kind | None:
    """`trainjob`, `TrainJobs` … as the kind that is meant."""
    plain = word.lower()
    return next((k for k in KINDS if plain in (k.resource.kind.lower(), k.resource.plural)), None)


def _columns(*, wide: bool, everywhere: bool) -> tuple[str, ...]:
    return (KIND, *formatting.columns(wide=wide, everywhere=everywhere))


def _row(job: JobSummary, now: datetime, *, wide: bool, everywhere: bool) -> tuple[str, ...]:
    return (job.kind, *formatting.row(job, now, wide=wide, everywhere=everywhere))


def _item(job: JobSummary) -> dict[str, Any]:
    return {"kind": job.kind, **formatting.data(job)}


EVERY_KIND = ListFormat(_item, MPIJOBS.name, _columns, _row)
