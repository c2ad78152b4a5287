"""`odh diff`: a job file against what is on a cluster. Exit codes as `diff` has them."""

from __future__ import annotations

import asyncio

import click
import msgspec

from mpi_trainer.api.errors import shorten
from mpi_trainer.cli import place
from mpi_trainer.cli.differences import Difference, differences, found
from mpi_trainer.cli.mpijob import options
from mpi_trainer.cli.planned import Planned, planned
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import Config
from mpi_trainer.render.drift import Change

SAME, DIFFERENT = 0, 1


@click.command()
@click.option("-f", "--file", "path", required=True, help="A job file; `-`: stdin.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@options.namespace
@click.option("--cluster-domain", "domain", default="", help="As the controller's option.")
def command(path: str, output: str, namespace: str, domain: str) -> int:
    """Say what applying a job file would change on the cluster.

    The job and every object that the controller makes for it are compared, but for the Secret,
    which is not read. Ends with 0 where nothing differs, 1 where something does, 2 on trouble.
    """
    config = place.config()
    jobs = planned(path, namespace, domain)
    listed = asyncio.run(_compared(config, jobs, domain))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode([_plain(d) for d in listed]), indent=2))
    else:
        for difference in listed:
            _tell(difference)
    return DIFFERENT if listed else SAME


async def _compared(config: Config, jobs: tuple[Planned, ...], domain: str) -> list[Difference]:
    listed: list[Difference] = []
    async with Client(config) as client:
        for job in jobs:
            seen = await found(client, job.job.namespace, job.job.name)
            listed += differences(job, domain, seen)
    return listed


def _plain(difference: Difference) -> dict[str, object]:
    changes = [{"field": c.field, "cluster": c.live, "file": c.wanted} for c in difference.changes]
    shown = [{k: v for k, v in c.items() if v is not msgspec.UNSET} for c in changes]
    return {
        "kind": difference.kind,
        "name": difference.name,
        "state": difference.state,
        "changes": shown,
    }


def _tell(difference: Difference) -> None:
    click.echo(f"{difference.kind}/{difference.name}: {difference.state}")
    for change in difference.changes:
        click.echo(f"  {change.field}: {_sides(change)}")


def _sides(change: Change) -> str:
    if change.live is msgspec.UNSET:
        return f"{shorten(change.wanted)} only in the file"
    if change.wanted is msgspec.UNSET:
        return f"{shorten(change.live)} only on the cluster"
    return f"{shorten(change.live)} on the cluster, {shorten(change.wanted)} in the file"
