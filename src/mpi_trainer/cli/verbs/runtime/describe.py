"""`odh runtime describe`: what a runtime gives to the jobs that name it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from mpi_trainer.api.kinds.jobset import ReplicatedJobView
from mpi_trainer.api.kinds.runtime import Runtime, to_wire
from mpi_trainer.api.spelling import nearest
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats, terminal
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.errors import JobNotFound

COLUMNS = ("REPLICATED JOB", "PODS", "IMAGE", "RESOURCES", "COMMAND")


@click.command("describe")
@click.argument("name")
@options.namespace
@options.data_output
@verbosity_options
def command(*, name: str, namespace: str, form: Format) -> None:
    """Show a runtime: policy, image, nodes, resources.

    \b
    odh runtime describe mpi-openmpi-cpu
    """
    runtime = find(name, namespace)
    if form.structured:
        click.echo(formats.rendered(to_wire(runtime), form))
        return
    click.echo("\n".join(page(runtime)))


def find(name: str, namespace: str) -> Runtime:
    """The one that a TrainJob of this namespace would get by that name."""
    runtimes = run_async(connect(single=True).runtimes(namespace))
    runtime = next((each for each in runtimes if each.name == name), None)
    if runtime is None:
        names = [each.name for each in runtimes]
        meant = nearest(name, names)
        hint = f"Did you mean `{meant}`?" if meant else f"There are: {', '.join(names) or 'none'}."
        raise JobNotFound(f"there is no runtime {name}", hint)
    return runtime


def page(runtime: Runtime) -> Iterator[str]:
    facts = {
        "Name": runtime.name,
        "Kind": runtime.kind,
        "Namespace": runtime.metadata.namespace,
        "Policy": runtime.policy,
        "Nodes": str((runtime.spec.ml_policy and runtime.spec.ml_policy.num_nodes) or 1),
    }
    if runtime.policy == "mpi":
        facts["MPI"] = runtime.mpi_implementation
        facts["Slots"] = str(runtime.mpi.num_proc_per_node or 1)
        facts["Launcher"] = "runs ranks too" if runtime.mpi.run_launcher_as_node else "runs none"
    width = max(map(len, facts)) + 1
    yield from (f"{name + ':':<{width}} {text}" for name, text in facts.items() if text)
    yield ""
    yield terminal.table(COLUMNS, [_row(job) for job in runtime.jobset.replicated_jobs])


def _row(job: ReplicatedJobView) -> tuple[str, ...]:
    spec = job.template.spec
    containers = spec.template.view.spec.containers
    first = containers[0] if containers else None
    limits = {**first.resources.requests, **first.resources.limits} if first else {}
    words = [*(first.command or ()), *(first.args or ())] if first else []
    return (
        job.name,
        str(spec.parallelism or 1),
        (first.image if first else "") or "the job's",
        ", ".join(f"{name} {amount}" for name, amount in limits.items()) or "-",
        shlex.join(words) or "the job's",
    )
