"""`--check-first`: a smoke run with a job's own image and settings, before the job is created."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mpi_trainer.cli.context import run_async
from mpi_trainer.cli.output.verbosity import say

if TYPE_CHECKING:
    from mpi_trainer.sdk.backends.backend import Backend
    from mpi_trainer.sdk.job.check import Target

option = click.option(
    "--check-first", is_flag=True,
    help="Run a job of two pods with its image and settings first; where that fails, create none.",
)  # fmt: skip


def demand(backend: Backend, target: Target, namespace: str) -> None:
    """JobFailed where something is wrong; the report goes to standard error."""
    from mpi_trainer.cli.output import check_report
    from mpi_trainer.sdk.errors import JobFailed
    from mpi_trainer.sdk.job.check import check

    name = target.value.name or target.value.metadata.generate_name
    say(f"checking {name} first with a job of two pods; Ctrl-C removes it")
    report = run_async(check(backend, target, target.value.metadata.namespace or namespace))
    say(check_report.page(report))
    if not report.passed:
        raise JobFailed(
            f"job {name} was not created: {report.summary}",
            "Fix what the report says, or create it without --check-first.",
        )
