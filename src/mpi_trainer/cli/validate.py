"""`odh validate`: every mistake in a job file at once, without running anything.

With `--server` a cluster is asked as well, by a dry run: its schema, its admission, its quotas. The
cluster is not asked about a file that is wrong already.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import msgspec

from mpi_trainer.api.errors import InvalidJob, line
from mpi_trainer.cli import jobfiles, place, terminal
from mpi_trainer.cli.main import USAGE
from mpi_trainer.cli.mpijob import options
from mpi_trainer.local.errors import LocalError

if TYPE_CHECKING:
    from mpi_trainer.cli.quick import Quick

replace = msgspec.structs.replace


class Finding(msgspec.Struct, frozen=True):
    """What is known of one file."""

    file: str
    jobs: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@click.command()
@click.option("-f", "--file", "paths", multiple=True, required=True, help="A file; `-`: stdin.")
@click.option("--server", is_flag=True, help="Ask the cluster too, by a dry run.")
@options.namespace
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def command(paths: tuple[str, ...], server: bool, namespace: str, output: str) -> int:
    """Check job files without running anything."""
    cluster = _cluster() if server else None
    findings = [_finding(path, cluster, namespace) for path in paths]
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(findings), indent=2))
    else:
        for finding in findings:
            _tell(finding, asked=server)
    return USAGE if any(f.errors for f in findings) else 0


def _cluster() -> Quick:
    from mpi_trainer.cli.quick import Quick

    return Quick(place.config())


def _finding(path: str, cluster: Quick | None, namespace: str) -> Finding:
    try:
        file = jobfiles.read(path)
    except LocalError as error:
        return Finding(path, errors=(f"{error.problem}; {error.hint}",))
    except InvalidJob as invalid:
        wrong = tuple(line(e) for e in invalid.errors)
        return Finding(path, errors=wrong, warnings=tuple(line(w) for w in invalid.warnings))
    names = tuple(job.name or f"{job.metadata.generate_name}…" for job in file.jobs)
    finding = Finding(path, names, warnings=tuple(line(w) for w in file.warnings))
    if cluster is None:
        return finding
    refused: list[str] = []
    for job in file.jobs:
        where = replace(job.metadata, namespace=job.namespace or namespace)
        refused += cluster.refusals(replace(job, metadata=where))
    return replace(finding, errors=tuple(refused))


def _tell(finding: Finding, *, asked: bool) -> None:
    for text in finding.warnings:
        terminal.say(f"warning: {text}")
    for text in finding.errors:
        terminal.say(f"{terminal.bad('error')}: {text}")
    if not finding.errors:
        by = ", and the cluster would take it" if asked else ""
        click.echo(f"{finding.file}: valid ({', '.join(finding.jobs)}){by}")
