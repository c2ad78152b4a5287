"""A group of verbs that are imported only when called: `--help` and completion must feel instant.

The one-line help stands beside the module's name, so that listing imports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar

import click

Verbs = Mapping[str, tuple[str, str]]


class LazyGroup(click.Group):
    """`verbs`: verb -> (module under cli.verbs, one line of help). The command is the module's
    `command`, or the one named after a colon."""

    verbs: ClassVar[Verbs] = {}
    aliases: ClassVar[Mapping[str, str]] = {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = self.aliases.get(cmd_name, cmd_name)
        if cmd_name not in self.verbs:
            return None
        path, _, name = self.verbs[cmd_name][0].partition(":")
        command: click.Command = getattr(
            import_module(f"mpi_trainer.cli.verbs.{path}"), name or "command"
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args:
            args = [self.aliases.get(args[0], args[0]), *args[1:]]
        if args and args[0] not in self.verbs and not args[0].startswith("-"):
            from mpi_trainer.api.spelling import nearest

            meant = nearest(args[0], self.verbs)
            if meant and not ctx.resilient_parsing:
                ctx.fail(f"No such command '{args[0]}'; did you mean `{meant}`?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in self.verbs.items()])


def group(verbs: Verbs, aliases: Mapping[str, str] | None = None) -> type[LazyGroup]:
    return type("Verbs", (LazyGroup,), {"verbs": verbs, "aliases": aliases or {}})
