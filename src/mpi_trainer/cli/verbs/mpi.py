"""`odh mpi`: the MPI builds that local runs use."""

from __future__ import annotations

import click

from mpi_trainer.cli.output import terminal
from mpi_trainer.local.mpi import distributions

NAMES = click.Choice([d.name for d in distributions.DISTRIBUTIONS])


@click.group()
def command() -> None:
    """Install and list the MPI builds for local runs.

    They live in a folder of their own; your Python environment is not touched.
    """


@command.command("list")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def list_(output: str) -> None:
    """Show every build, and whether it is installed."""
    if output == "json":
        import json

        click.echo(json.dumps([_facts(d) for d in distributions.DISTRIBUTIONS], indent=2))
        return
    rows = [
        (d.name, d.implementation, d.version, "yes" if d.installed else "no, on first use")
        for d in distributions.DISTRIBUTIONS
    ]
    click.echo(terminal.table(("NAME", "IMPLEMENTATION", "VERSION", "INSTALLED"), rows))


@command.command()
@click.argument("names", nargs=-1, type=NAMES, required=True, metavar="NAME...")
def install(names: tuple[str, ...]) -> None:
    """Install builds ahead of their first use."""
    for distribution in _chosen(names):
        ensure_installed(distribution)
        terminal.say(f"{distribution.name}: {distribution.title} {distribution.version} is ready")


@command.command()
@click.argument("names", nargs=-1, type=NAMES, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> None:
    """Remove installed builds; the next run that needs one installs it again."""
    for distribution in _chosen(names):
        gone = distributions.remove(distribution)
        terminal.say(f"{distribution.name}: {'removed' if gone else 'was not installed'}")


def ensure_installed(distribution: distributions.Distribution) -> None:
    """Installs it where it is not yet, with a line that shows that it goes on."""
    if distribution.installed:
        return
    what = f"installing {distribution.title} {distribution.version} for local runs"
    terminal.say(f"{what} (once)")
    try:
        distributions.install(distribution, terminal.progress(what))
    finally:
        terminal.clear_progress()


def _chosen(names: tuple[str, ...]) -> list[distributions.Distribution]:
    return [d for d in distributions.DISTRIBUTIONS if d.name in names]


def _facts(d: distributions.Distribution) -> dict[str, object]:
    return {
        "name": d.name,
        "implementation": d.implementation,
        "version": d.version,
        "installed": d.installed,
        "hasCompiler": d.has_compiler,
    }
