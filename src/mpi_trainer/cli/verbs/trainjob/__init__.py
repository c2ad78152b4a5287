"""`odh trainjob VERB …`: TrainJobs, by the verbs of MPI jobs.

Jobs of both kinds share one set of names on this machine, so only `create` and `list` differ.
"""

from __future__ import annotations

import click

from mpi_trainer.cli import context
from mpi_trainer.cli.lazy import group
from mpi_trainer.cli.verbs.mpijob import ALIASES
from mpi_trainer.cli.verbs.mpijob import VERBS as OF_MPIJOBS

VERBS = {
    **{verb: entry for verb, entry in OF_MPIJOBS.items() if verb != "clone"},
    "create": ("trainjob.create", "Submit a TrainJob from a file."),
}


class _OfTrainJobs(group(VERBS, ALIASES)):  # type: ignore[misc]
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name == "list":
            from mpi_trainer.cli.verbs.all_kinds import command as everything

            return name, everything, [context.TRAINJOB, *rest]
        return name, command, rest


@click.group(cls=_OfTrainJobs)
def command() -> None:
    """TrainJobs: submit, follow, stop, repeat.

    On this machine they run with a runtime that we ship, or with one from a file; on a cluster
    with one that `odh runtime list` names.
    """
