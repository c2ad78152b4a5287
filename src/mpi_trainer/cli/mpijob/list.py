"""`odh mpijob list`: the jobs, newest first."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

import click

from mpi_trainer.api.conditions import STATES
from mpi_trainer.cli import formats, terminal, words
from mpi_trainer.cli.backend import summaries
from mpi_trainer.cli.formats import Format
from mpi_trainer.cli.mpijob import options
from mpi_trainer.cli.redraw import Screen
from mpi_trainer.cli.voice import say, voiced
from mpi_trainer.sdk.backend import JobSummary

EVERY_SECONDS = 1.0


@click.command("list")
@options.namespace
@options.every_namespace
@options.output
@click.option(
    "--state", type=click.Choice(STATES, case_sensitive=False), help="Only jobs in this state."
)
@click.option("-w", "--watch", is_flag=True, help="Show changes until Ctrl-C.")
@click.option("--no-headers", is_flag=True, help="Leave the line of headings out.")
@voiced
def command(
    *,
    namespace: str,
    everywhere: bool,
    form: Format,
    state: str | None,
    watch: bool,
    no_headers: bool,
) -> None:
    """List jobs, newest first.

    \b
    odh mpijob list                            the jobs of namespace default
    odh mpijob list -A -o wide                 all jobs, with reasons
    odh mpijob list --state Running -o name    names for a script
    """

    def jobs() -> list[JobSummary]:
        found = summaries(None if everywhere else namespace)
        return [job for job in found if state is None or job.state == state]

    def show(chosen: list[JobSummary], *, headers: bool = not no_headers) -> str:
        return shown(chosen, form, everywhere=everywhere, headers=headers)

    found = jobs()
    if not found and not form.structured:
        say("no jobs" if everywhere else f"no jobs in namespace {namespace}")
    text = show(found)
    if text:
        click.echo(text)
    if watch:
        _watch(jobs, show, found)


def shown(jobs: list[JobSummary], form: Format, *, everywhere: bool, headers: bool = True) -> str:
    if form.structured:
        items = [words.data(job) for job in jobs]
        return formats.rendered({"kind": "MPIJobList", "items": items}, form)
    if form.kind == "name":
        return "\n".join(words.full_name(job.key.name) for job in jobs)
    if not jobs:
        return ""
    wide, now = form.kind == "wide", datetime.now(UTC)
    rows = [words.row(job, now, wide=wide, everywhere=everywhere) for job in jobs]
    table = terminal.table(words.columns(wide=wide, everywhere=everywhere), rows)
    return table if headers else table.partition("\n")[2]


def _watch(
    jobs: Callable[[], list[JobSummary]], show: Callable[..., str], before: list[JobSummary]
) -> None:
    """On a terminal the table is drawn anew; elsewhere the jobs that changed are printed."""
    screen = Screen.over(show(before))
    while True:
        time.sleep(EVERY_SECONDS)
        now = jobs()
        if screen.alive:
            screen.draw(show(now))
        else:
            changed = [job for job in now if job not in before]
            if changed:
                click.echo(show(changed, headers=False))
        before = now
