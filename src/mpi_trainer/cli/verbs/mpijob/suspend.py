"""`odh mpijob suspend`: frees what a job holds, and keeps the job."""

from __future__ import annotations

import click

from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.cli.verbs.mpijob.change import changed


@click.command("suspend")
@options.some_names
@options.namespace
@click.option("--wait", is_flag=True, help="Return when the pods are gone.")
@options.timeout
@verbosity_options
def command(*, names: tuple[str, ...], namespace: str, wait: bool, timeout: float | None) -> int:
    """Stop a job's pods but keep the job; `resume` starts it from the beginning.

    \b
    odh mpijob suspend train --wait
    """
    aim = "Suspended" if wait else ""
    return changed("suspended", names, namespace, lambda b, key: b.suspend(key), (aim, timeout))
