"""`odh training list`: every kind of training job that the cluster has, newest first."""

from __future__ import annotations

from typing import Any

import click

from mpi_trainer.cli import all_kinds
from mpi_trainer.cli.backend import answer, cluster
from mpi_trainer.cli.output.verbosity import say, voiced
from mpi_trainer.cli.verbs.mpijob.list import Style, Wish, listing, look
from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, Kind

EVERY_KIND = Style(all_kinds.data, all_kinds.full_name, all_kinds.columns, all_kinds.row)


@click.command("list")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@listing
@voiced
def command(*, kinds: tuple[str, ...], **given: Any) -> None:
    """List training jobs of every kind, newest first, or of the kinds that are named."""
    wanted = [_kind(word) for word in kinds] or list(KINDS)
    told_of: set[str] = set()

    def found(namespace: str | None) -> list[JobSummary]:
        jobs, closed = answer(cluster(single=True, kinds=wanted).list_readable(namespace))
        unsaid = [kind for kind in closed if kind not in told_of]
        if unsaid:
            say(f"not shown, because you may not list them: {', '.join(unsaid)}")
        told_of.update(unsaid)
        return list(jobs)

    look(found, EVERY_KIND, Wish(**given))


def _kind(word: str) -> Kind:
    found = all_kinds.kind_of(word)
    if found is None:
        known = ", ".join(kind.resource.kind.lower() for kind in KINDS)
        raise click.UsageError(f"{word!r} is not a kind of training job; there are {known}")
    return found
