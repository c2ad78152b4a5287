"""`odh validate`: every mistake in a job file at once, without running anything."""

from __future__ import annotations

import json

import click

from mpi_trainer.api.errors import InvalidJob, line
from mpi_trainer.cli import jobfiles, terminal
from mpi_trainer.cli.main import USAGE
from mpi_trainer.local.errors import LocalError


@click.command()
@click.option("-f", "--file", "paths", multiple=True, required=True, help="A file; `-`: stdin.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def command(paths: tuple[str, ...], output: str) -> int:
    """Check job files without running anything."""
    findings = [_finding(path) for path in paths]
    if output == "json":
        click.echo(json.dumps(findings, indent=2))
    else:
        for finding in findings:
            _tell(finding)
    return USAGE if any(f["errors"] for f in findings) else 0


def _finding(path: str) -> dict[str, list[str] | str]:
    try:
        file = jobfiles.read(path)
    except LocalError as error:
        return {
            "file": path,
            "jobs": [],
            "errors": [f"{error.problem}; {error.hint}"],
            "warnings": [],
        }
    except InvalidJob as invalid:
        return {
            "file": path,
            "jobs": [],
            "errors": [line(e) for e in invalid.errors],
            "warnings": [line(w) for w in invalid.warnings],
        }
    return {
        "file": path,
        "jobs": [job.name for job in file.jobs],
        "errors": [],
        "warnings": [line(w) for w in file.warnings],
    }


def _tell(finding: dict[str, list[str] | str]) -> None:
    for text in finding["warnings"]:
        terminal.say(f"warning: {text}")
    for text in finding["errors"]:
        terminal.say(f"{terminal.bad('error')}: {text}")
    if not finding["errors"]:
        jobs = ", ".join(finding["jobs"])
        click.echo(f"{finding['file']}: valid ({jobs})")
