"""`odh mpijob explain`, `odh explain`: why a job failed, and what to do about it."""

from __future__ import annotations

import click
import msgspec

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats, terminal
from mpi_trainer.cli.output.findings import also, paragraph
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.job.explain import explained


@click.command("explain")
@options.name
@options.namespace
@options.data_output
@verbosity_options
def command(*, name: str, namespace: str, form: Format) -> None:
    """Say why a job failed: the cause, rank and host, the line that shows it, what to do.

    What was found when the job failed is kept with it. Where nothing certain was, the whole output
    of its last attempt is read, and what else is known of its pods and ranks. Causes are described
    in docs/troubleshooting.md. Of a job that runs and seems to be stuck it says which ranks wait in
    which call (docs/agent.md).

    \b
    odh mpijob explain train
    odh mpijob explain train -o jsonpath='{.findings[*].cause}'
    """
    found = run_async(explained(connect(), Key(namespace, name)))
    if form.structured:
        data = {"findings": [msgspec.to_builtins(one) for one in found]}
        click.echo(formats.rendered(data, form))
        return
    if not found:
        say(f"nothing that job {name} printed, or that is known of it, shows a failure")
    for number, one in enumerate(found):
        lines = also(one) if number else paragraph(one)
        click.echo("\n".join(terminal.inert(line) for line in lines))
