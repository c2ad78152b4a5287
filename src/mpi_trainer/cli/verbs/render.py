"""`odh render`: the objects that a controller would create for a job, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec
from msgspec.structs import replace

from mpi_trainer.cli import controller_settings, job_files
from mpi_trainer.cli.output import terminal
from mpi_trainer.local.errors import LocalError
from mpi_trainer.plan.objects import (
    PlannedMPIJob,
    PlannedTrainJob,
    named,
    planned_mpijob,
    planned_trainjob,
)
from mpi_trainer.render.frame import Facts

_KEYS = "its keys are made by the controller, and left out here"
_OWNER = "owner references are left out: the job has no uid before it exists"


@click.command()
@click.option("-f", "--file", "path", required=True, help="A job file; `-`: stdin.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml")
@click.option("-n", "--namespace", default="", help="For jobs that name none.")
@controller_settings.options
@click.option(
    "--runtime", metavar="FILE", help="A TrainJob's runtime; else the file's own, or one we ship."
)
def command(path: str, output: str, namespace: str, runtime: str | None, **controller: str) -> None:
    """Print the objects that the controller would create for a job.

    No cluster is asked, so what its admission adds is not there. The Secret is shown without its
    keys.

    \b
    odh render -f mpijob.yaml
    odh render -f mpijob.yaml -o json
    odh render -f trainjob.yaml --runtime runtime.yaml
    """
    jobs = _planned(path, namespace, controller_settings.facts(**controller), runtime)
    if output == "yaml":
        click.echo("\n---\n".join(text for job in jobs for text in _documents(job)))
        return
    keys = f"the Secret: {_KEYS}; " if any(job.secret for job in jobs) else ""
    terminal.say(f"note: {keys}{_OWNER}")
    items = [made for job in jobs for made in job]
    listed = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
    click.echo(msgspec.json.format(listed, indent=2))


def _planned(
    path: str, namespace: str, facts: Facts, runtime: str | None
) -> list[PlannedMPIJob | PlannedTrainJob]:
    file = job_files.objects(path)
    for warning in file.warnings:
        terminal.say(f"warning: {warning}")
    if not (file.jobs or file.train_jobs):
        raise LocalError(f"{path} holds no job", "Give a file with an MPIJob or a TrainJob.")
    made: list[PlannedMPIJob | PlannedTrainJob] = [
        planned_mpijob(named(job, namespace), facts) for job in file.jobs
    ]
    file = replace(file, runtimes=tuple(named(one, namespace) for one in file.runtimes))
    for job in (named(one, namespace) for one in file.train_jobs):
        made.append(planned_trainjob(job, job_files.runtime_for(job, file, runtime), facts))
    return made


def _documents(job: PlannedMPIJob | PlannedTrainJob) -> Iterator[str]:
    from mpi_trainer.api.yaml.written import written

    head = f"# {job.job.kind} {job.job.namespace}/{job.job.name}; {_OWNER}\n"
    for made in job:
        remark = f"# {_KEYS}\n" if made is job.secret else ""
        yield head + remark + written(made)
        head = ""
