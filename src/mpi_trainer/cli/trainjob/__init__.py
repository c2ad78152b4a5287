"""`odh trainjob VERB …`: TrainJobs of this machine, by the verbs of MPI jobs.

Jobs of both kinds share one list and one set of names here, so only `create` differs.
"""

from __future__ import annotations

import click

from mpi_trainer.cli import place
from mpi_trainer.cli.lazy import group
from mpi_trainer.cli.mpijob import VERBS as OF_MPIJOBS

VERBS = {
    **{verb: entry for verb, entry in OF_MPIJOBS.items() if verb != "clone"},
    "create": ("trainjob.create", "Submit a TrainJob from a file."),
}


@click.group(cls=group(VERBS))
@click.pass_context
def command(ctx: click.Context) -> None:
    """TrainJobs on this machine: submit, follow, stop, repeat.

    They run with a runtime that we ship, or with one from a file. A cluster's are reached with
    kubectl.
    """
    place.here(ctx)
