"""`odh mpijob resume`: lets a suspended job run."""

from __future__ import annotations

import click

from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.cli.verbs.mpijob.change import changed


@click.command("resume")
@options.some_names
@options.namespace
@click.option("--wait", is_flag=True, help="Return when the job runs.")
@options.timeout
@verbosity_options
def command(*, names: tuple[str, ...], namespace: str, wait: bool, timeout: float | None) -> int:
    """Let a suspended job run.

    \b
    odh mpijob resume train
    """
    aim = "Running" if wait else ""
    return changed("resumed", names, namespace, lambda b, key: b.resume(key), (aim, timeout))
