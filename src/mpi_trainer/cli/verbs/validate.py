"""`odh validate`: every mistake in a job file at once, without running anything.

A TrainJob is judged with its runtime where one of the files has it, or we ship it.
With `--server` a cluster is asked as well, by a dry run: its schema, its admission, its quotas. The
cluster is not asked about a file that is wrong already.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import click
import msgspec

from mpi_trainer.api.errors import InvalidJob, line
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.cli import context, job_files
from mpi_trainer.cli.main import USAGE
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.jobs import shipped_runtimes

if TYPE_CHECKING:
    from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend

replace = msgspec.structs.replace
_ALONE = "TrainJob {}: its runtime {} is not here, so only the job itself was checked"
_UNASKED = "TrainJob {}: the cluster was not asked, for its runtime comes with the files"


class FileReport(msgspec.Struct, frozen=True):
    """What is known of one file."""

    file: str
    jobs: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@click.command()
@click.option("-f", "--file", "paths", multiple=True, required=True, help="A file; `-`: stdin.")
@click.option("--server", is_flag=True, help="Ask the cluster too, by a dry run.")
@options.noted_namespace
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def command(paths: tuple[str, ...], server: bool, output: str) -> int:
    """Check job files without running anything."""
    cluster = context.cluster(single=True) if server else None
    given = _given(paths)
    reports = [_report(path, given, cluster) for path in paths]
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(reports), indent=2))
    else:
        for report in reports:
            _print(report, asked=server)
    return USAGE if any(f.errors for f in reports) else 0


def _given(paths: tuple[str, ...]) -> tuple[Runtime, ...]:
    """The runtimes that the files bring along; a file that is wrong is told of later."""
    found: list[Runtime] = []
    for path in paths if len(paths) > 1 else ():
        if path != "-":
            with contextlib.suppress(LocalError, InvalidJob):
                found += job_files.objects(path).runtimes
    return tuple(found)


def _report(path: str, given: tuple[Runtime, ...], cluster: ClusterBackend | None) -> FileReport:
    ours = (shipped_runtimes.runtime(name) for name in shipped_runtimes.names())
    known = (*given, *(one for one in ours if one is not None))
    try:
        file = job_files.objects(path, known)
    except LocalError as error:
        return FileReport(path, errors=(f"{error.problem}; {error.hint}",))
    except InvalidJob as invalid:
        wrong = tuple(line(e) for e in invalid.errors)
        return FileReport(path, errors=wrong, warnings=tuple(line(w) for w in invalid.warnings))
    named: tuple[MPIJob | TrainJob | Runtime, ...] = (
        *file.jobs,
        *file.train_jobs,
        *file.runtimes,
    )
    names = tuple(one.name or f"{one.metadata.generate_name}…" for one in named)
    alone = tuple(
        _ALONE.format(job.name, job.spec.runtime_ref.name)
        for job in file.train_jobs
        if not any(serves(one, job) for one in (*file.runtimes, *known))
    )
    report = FileReport(path, names, warnings=(*(line(w) for w in file.warnings), *alone))
    if cluster is None:
        return report
    refused: list[str] = []
    namespace = context.working_namespace()
    brought = [j for j in file.train_jobs if any(serves(r, j) for r in (*file.runtimes, *given))]
    asked: list[MPIJob | TrainJob] = [*file.jobs, *file.train_jobs]
    for job in (one for one in asked if one not in brought):
        where = replace(job.metadata, namespace=job.namespace or namespace)
        refused += context.run_async(cluster.refusals(replace(job, metadata=where)))
    unasked = tuple(_UNASKED.format(job.name) for job in brought)
    return replace(report, errors=tuple(refused), warnings=(*report.warnings, *unasked))


def _print(report: FileReport, *, asked: bool) -> None:
    for text in report.warnings:
        terminal.say(f"warning: {text}")
    for text in report.errors:
        terminal.say(f"{terminal.bad('error')}: {text}")
    if not report.errors:
        by = ", and the cluster would take it" if asked else ""
        click.echo(f"{report.file}: valid ({', '.join(report.jobs)}){by}")
