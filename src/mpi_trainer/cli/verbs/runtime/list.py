"""`odh runtime list`: what TrainJobs can name as their runtime."""

from __future__ import annotations

import click

from mpi_trainer.api.kinds.runtime import Runtime, to_wire
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats, terminal
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options

COLUMNS = ("NAME", "KIND", "POLICY", "MPI", "NODES", "IMAGE")


@click.command("list")
@options.namespace
@options.data_output
@verbosity_options
def command(*, namespace: str, form: Format) -> None:
    """List the runtimes that TrainJobs can name.

    \b
    odh runtime list
    """
    runtimes = run_async(connect(single=True).runtimes(namespace))
    if form.structured:
        items = [to_wire(each) for each in runtimes]
        click.echo(formats.rendered({"kind": "List", "items": items}, form))
    elif runtimes:
        click.echo(terminal.table(COLUMNS, [row(each) for each in runtimes]))
    else:
        say("no runtimes; an administrator gives them: `kubectl apply -k manifests/runtimes`")


def row(runtime: Runtime) -> tuple[str, ...]:
    mpi = runtime.mpi_implementation if runtime.policy == "mpi" else "-"
    nodes = runtime.spec.ml_policy.num_nodes if runtime.spec.ml_policy else None
    return (runtime.name, runtime.kind, runtime.policy, mpi, str(nodes or 1), image(runtime) or "-")


def image(runtime: Runtime) -> str:
    """Of the replicated job that does the training."""
    for job in reversed(runtime.jobset.replicated_jobs):
        for container in job.template.spec.template.view.spec.containers:
            if container.image:
                return container.image
    return ""
