"""`odh mpijob restart`: a job again from its beginning, ended or not."""

from __future__ import annotations

import click

from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.cli.verbs.mpijob.change import changed


@click.command("restart")
@options.some_names
@options.namespace
@click.option("--wait", is_flag=True, help="Return when the job has succeeded or failed.")
@options.timeout
@verbosity_options
def command(*, names: tuple[str, ...], namespace: str, wait: bool, timeout: float | None) -> int:
    """Run a job again from the beginning.

    A job that has ended is created anew under its name, and its old output goes; one that runs is
    suspended and resumed.

    \b
    odh mpijob restart train --wait
    """
    aim = "Succeeded" if wait else ""
    return changed("restarted", names, namespace, lambda b, key: b.restart(key), (aim, timeout))
