"""Installs an MPI with a line that shows it is going on, for every verb that may need one."""

from __future__ import annotations

from mpi_trainer.cli.output import terminal
from mpi_trainer.local.mpi import distributions


def ensure(distribution: distributions.Distribution) -> None:
    if distribution.installed:
        return
    what = f"installing {distribution.title} {distribution.version} for local runs"
    terminal.say(f"{what} (once)")
    try:
        distributions.install(distribution, terminal.progress(what))
    finally:
        terminal.clear_progress()
