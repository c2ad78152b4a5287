"""`odh images list`: what a cluster has to be able to pull, for registries without the internet."""

from __future__ import annotations

import click
import msgspec

from mpi_trainer.cli.installation import bundles
from mpi_trainer.cli.installation.steps import Wanted, names
from mpi_trainer.cli.output import formats, terminal
from mpi_trainer.cli.output.formats import Format, FormatType

COLUMNS = ("IMAGE", "FOR", "PINNED")


@click.group("images")
def command() -> None:
    """Images that an installation uses."""


@command.command("list")
@click.option("--profile", type=click.Choice(bundles.PROFILES), default=bundles.KUBERNETES)
@click.option(
    "--registry",
    default="",
    metavar="HOST/PATH",
    help="Print a mirror map instead: `SOURCE=TARGET` lines, as `oc image mirror -f` reads them.",
)
@click.option("-o", "--output", "form", type=FormatType(("json", "yaml", "name")), default=Format())
def list_(*, profile: str, registry: str, form: Format) -> None:
    """List every image that the controller, admission and the runtimes use.

    Needs no cluster and no network. With the same --registry, `odh install` takes them from there.

    \b
    odh images list
    odh images list --registry registry.example.com/mirror
    """
    found = bundles.images([*names(Wanted(profile)), bundles.RELEASE], registry)
    if form.structured:
        click.echo(formats.rendered({"items": [msgspec.to_builtins(one) for one in found]}, form))
    elif registry:
        for one in found:
            click.echo(f"{one.image}={one.mirror}")
    elif form.kind == "name":
        for one in found:
            click.echo(one.image)
    else:
        rows = [(one.image, ",".join(one.for_what), "yes" if one.pinned else "no") for one in found]
        click.echo(terminal.table(COLUMNS, rows))
    built = [one.image for one in found if one.built]
    if built:
        terminal.say(f"build these from images/ first: {', '.join(built)}")
