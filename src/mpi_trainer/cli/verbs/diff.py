"""`odh diff`: a job file against what is on a cluster. Exit codes as `diff` has them."""

from __future__ import annotations

import asyncio

import click
import msgspec

from mpi_trainer.api.errors import shorten
from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.cli import context, controller_settings, job_files
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import Config
from mpi_trainer.plan.comparison import Difference
from mpi_trainer.plan.differences import file_differences
from mpi_trainer.render.drift import Change
from mpi_trainer.render.frame import Facts

SAME, DIFFERENT = 0, 1


@click.command()
@click.option("-f", "--file", "path", required=True, help="A job file; `-`: stdin.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@options.namespace
@controller_settings.options
def command(path: str, output: str, namespace: str, **controller: str) -> int:
    """Say what applying a job file would change on the cluster.

    Jobs and runtimes are compared, and every object that the controller makes for a job, but for
    the Secret, which is not read, and policies and PodGroups that you may not read. A TrainJob
    that has begun keeps its runtime as it was then.
    Ends with 0 where nothing differs, 1 where something does, 2 on trouble.
    """
    config = context.cluster_config()
    file = job_files.objects(path)
    for warning in file.warnings:
        terminal.say(f"warning: {warning}")
    listed = asyncio.run(
        _compared(config, file, namespace, controller_settings.facts(**controller))
    )
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode([_plain(d) for d in listed]), indent=2))
    else:
        for difference in listed:
            _print(difference)
    return DIFFERENT if listed else SAME


async def _compared(
    config: Config, file: JobFile, namespace: str, facts: Facts
) -> list[Difference]:
    async with Client(config) as client:
        return await file_differences(client, file, namespace, facts)


def _plain(difference: Difference) -> dict[str, object]:
    changes = [{"field": c.field, "cluster": c.live, "file": c.wanted} for c in difference.changes]
    shown = [{k: v for k, v in c.items() if v is not msgspec.UNSET} for c in changes]
    return {
        "kind": difference.kind,
        "name": difference.name,
        "state": difference.state,
        "changes": shown,
    }


def _print(difference: Difference) -> None:
    click.echo(f"{difference.kind}/{difference.name}: {difference.state}")
    for change in difference.changes:
        click.echo(f"  {change.field}: {_sides(change)}")


def _sides(change: Change) -> str:
    if change.live is msgspec.UNSET:
        return f"{shorten(change.wanted)} only in the file"
    if change.wanted is msgspec.UNSET:
        return f"{shorten(change.live)} only on the cluster"
    return f"{shorten(change.live)} on the cluster, {shorten(change.wanted)} in the file"
