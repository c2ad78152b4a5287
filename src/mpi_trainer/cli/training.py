"""`odh training VERB KIND …`: the other grammar for the same commands.

Nothing is defined here twice: the kind's word is taken out and the verb of `odh mpijob` is called.
Only `list` is more on a cluster, where it shows every kind.
"""

from __future__ import annotations

import click

from mpi_trainer.cli import place
from mpi_trainer.cli.lazy import LazyGroup
from mpi_trainer.cli.mpijob import VERBS

KINDS = ("mpijob", "mpijobs")
OTHERS = ("trainjob", "trainjobs", "pytorchjob", "pytorchjobs", "tfjob", "tfjobs")


class KindAfterVerb(LazyGroup):
    verbs = VERBS

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if rest and rest[0].lower() in KINDS:
            return f"{name} mpijob", command, rest[1:]
        if name == "list" and place.on_cluster(place.told_by(ctx, args)):
            from mpi_trainer.cli.alllist import command as everything

            return name, everything, rest
        if rest and rest[0].lower() in OTHERS and not ctx.resilient_parsing:
            ctx.fail(
                f"{rest[0]} is not a kind that runs here; use `{ctx.command_path} {name} mpijob`"
            )
        return name, command, rest


@click.group(cls=KindAfterVerb, subcommand_metavar="VERB mpijob [ARGS]...")
def command() -> None:
    """The same by verb and kind: `odh training list mpijob`."""
