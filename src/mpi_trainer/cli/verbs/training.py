"""`odh training VERB KIND …`: the other grammar for the same commands.

Nothing is defined here twice: the kind's word is taken out and the verb of `odh mpijob` or `odh
trainjob` is called. A cluster has more kinds, all of which are listed, read, followed and deleted
by the same verbs; only `list` is a command of its own there.
"""

from __future__ import annotations

import click

from mpi_trainer.cli import context
from mpi_trainer.cli.lazy import LazyGroup
from mpi_trainer.cli.verbs.mpijob import ALIASES, VERBS

MPIJOBS = ("mpijob", "mpijobs")
TRAINJOBS = ("trainjob", "trainjobs")
OLDER = ("pytorchjob", "pytorchjobs", "tfjob", "tfjobs")
NOT_FOR_OLDER = ("create", "clone")


class KindAfterVerb(LazyGroup):
    verbs = VERBS
    aliases = ALIASES

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        kind = rest[0].lower() if rest else ""
        if kind in MPIJOBS:
            return f"{name} mpijob", command, rest[1:]
        cluster = context.on_cluster(context.target_with(ctx, args))
        if name == "list" and cluster:
            from mpi_trainer.cli.verbs.all_kinds import command as everything

            return name, everything, rest
        if kind in TRAINJOBS:
            return self._of_trainjobs(ctx, name or "", rest)
        if kind in OLDER:
            if not ctx.resilient_parsing and (not cluster or name in NOT_FOR_OLDER):
                instead = f"{ctx.command_path} {name} mpijob"
                ctx.fail(f"{rest[0]} is not a kind that runs here; use `{instead}`")
            return f"{name} {kind.removesuffix('s')}", command, rest[1:]
        return name, command, rest

    def _of_trainjobs(
        self, ctx: click.Context, name: str, rest: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from mpi_trainer.cli.verbs.trainjob import command as trainjob

        found = trainjob.get_command(ctx, name)
        if found is None:
            ctx.fail(f"TrainJobs know no `{name}`; use `{ctx.command_path} {name} mpijob`")
        return f"{name} trainjob", found, rest[1:]


@click.group(cls=KindAfterVerb, subcommand_metavar="VERB KIND [ARGS]...")
def command() -> None:
    """The same by verb and kind: `odh training list mpijob`."""
