"""How much is said beside the data: `--quiet` only errors, `--verbose` also the steps between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from mpi_trainer.cli.output import terminal

F = TypeVar("F", bound=Callable[..., Any])
_KEY = "mpi_trainer.verbosity"


def verbosity_options(function: F) -> F:
    """Adds --quiet and --verbose to a verb."""
    quiet = click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_noted("quiet"),
        help="Say nothing but data and errors.",
    )
    verbose = click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_noted("verbose"),
        help="Say more about what happens.",
    )
    return quiet(verbose(function))


def _noted(level: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def note(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if not value:
            return
        if ctx.meta.setdefault(_KEY, level) != level:
            raise click.UsageError("--quiet and --verbose exclude each other; give one of them")

    return note


def say(text: str) -> None:
    """For the user's eyes, on standard error."""
    if _level() != "quiet":
        terminal.say(text)


def detail(text: str) -> None:
    if _level() == "verbose":
        terminal.say(terminal.faint(text))


def _level() -> str:
    ctx = click.get_current_context(silent=True)
    return str(ctx.meta.get(_KEY, "")) if ctx else ""
