"""The report of a check as `odh` prints it, and what else it says beside the data."""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.check.report import CheckReport, words
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.output.findings import also, paragraph


def page(report: CheckReport) -> str:
    """For a person: what reading shows, each step, and why it failed."""
    *lines, last = words(report)
    for number, one in enumerate(report.findings):
        lines += also(one) if number else ["", *paragraph(one)]
    more = ["", last] if lines else [last]
    return "\n".join(terminal.inert(line) for line in (*lines, *more))


def data(report: CheckReport) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(report)
    return {"passed": report.passed, "summary": report.summary, **fields}
