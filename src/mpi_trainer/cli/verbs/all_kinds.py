"""`odh training list`: every kind of training job that the cluster has, newest first (AC-17).

States are the six words that all kinds share (`sdk.backends.cluster.kinds`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import click

from mpi_trainer.cli.context import cluster, run_async
from mpi_trainer.cli.output import formatting
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob.list import ListFormat, ListOptions, list_options, print_list
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, Kind

KIND: Final = "KIND"


@click.command("list")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@list_options
@verbosity_options
def command(*, kinds: tuple[str, ...], **given: Any) -> None:
    """List training jobs of every kind, newest first, or of the kinds that are named."""
    wanted = [_kind(word) for word in kinds] or list(KINDS)
    reported: set[str] = set()

    def found(namespace: str | None) -> list[JobSummary]:
        jobs, closed = run_async(cluster(single=True, kinds=wanted).list_readable(namespace))
        unsaid = [kind for kind in closed if kind not in reported]
        if unsaid:
            say(f"not shown, because you may not list them: {', '.join(unsaid)}")
        reported.update(unsaid)
        return list(jobs)

    print_list(found, EVERY_KIND, ListOptions(**given))


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


def _full_name(job: JobSummary) -> str:
    """As kubectl takes it."""
    kind = kind_of(job.kind)
    group = "" if kind is None else f".{kind.resource.group}"
    return f"{job.kind.lower()}{group}/{job.key.name}"


def _columns(*, wide: bool, everywhere: bool) -> tuple[str, ...]:
    return (KIND, *formatting.columns(wide=wide, everywhere=everywhere))


def _row(job: JobSummary, now: datetime, *, wide: bool, everywhere: bool) -> tuple[str, ...]:
    return (job.kind, *formatting.row(job, now, wide=wide, everywhere=everywhere))


def _document(jobs: Iterable[JobSummary]) -> dict[str, Any]:
    return {"kind": "List", "items": [{"kind": job.kind, **formatting.data(job)} for job in jobs]}


EVERY_KIND = ListFormat(_document, _full_name, _columns, _row)
