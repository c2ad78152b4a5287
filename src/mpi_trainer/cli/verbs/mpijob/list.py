"""`odh mpijob list`: the jobs, newest first."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import click

from mpi_trainer.api.kinds.conditions import STATES
from mpi_trainer.cli.context import list_jobs
from mpi_trainer.cli.output import formats, formatting, terminal
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import JobSummary

EVERY_SECONDS = 1.0

F = TypeVar("F", bound=Callable[..., object])


def list_options(function: F) -> F:
    """The options of every list of jobs."""
    for option in (
        click.option("--no-headers", is_flag=True, help="Leave the line of headings out."),
        click.option("-w", "--watch", is_flag=True, help="Show changes until Ctrl-C."),
        click.option(
            "--state", type=click.Choice(STATES, case_sensitive=False),
            help="Only jobs in this state.",
        ),
        options.output,
        options.every_namespace,
        options.namespace,
    ):  # fmt: skip
        function = option(function)
    return function


class ListOptions(NamedTuple):
    """What those options say."""

    namespace: str
    everywhere: bool
    form: Format
    state: str | None
    watch: bool
    no_headers: bool


class ListFormat(NamedTuple):
    """How jobs are written: as a document, by name, and as rows of a table."""

    document: Callable[[list[JobSummary]], dict[str, Any]]
    name: Callable[[JobSummary], str]
    columns: Callable[..., tuple[str, ...]]
    row: Callable[..., tuple[str, ...]]


MPIJOBS = ListFormat(
    document=lambda jobs: {"kind": "MPIJobList", "items": [formatting.data(job) for job in jobs]},
    name=lambda job: formatting.kind_and_name(job.kind, job.key.name),
    columns=formatting.columns,
    row=formatting.row,
)


@click.command("list")
@list_options
@verbosity_options
def command(**given: Any) -> None:
    """List jobs, newest first.

    \b
    odh mpijob list                            the jobs of namespace default
    odh mpijob list -A -o wide                 all jobs, with reasons
    odh mpijob list --state Running -o name    names for a script
    """
    print_list(list_jobs, MPIJOBS, ListOptions(**given))


def print_list(
    find: Callable[[str | None], list[JobSummary]], style: ListFormat, asked: ListOptions
) -> None:
    """Print the jobs that `find` has in a namespace, or in all; then, if asked, their changes."""
    form = asked.form

    def jobs() -> list[JobSummary]:
        found = find(None if asked.everywhere else asked.namespace)
        return [job for job in found if asked.state in (None, job.state)]

    def show(chosen: list[JobSummary], *, headers: bool = not asked.no_headers) -> str:
        return shown(chosen, form, style, everywhere=asked.everywhere, headers=headers)

    found = jobs()
    if not found and not form.structured:
        say("no jobs" if asked.everywhere else f"no jobs in namespace {asked.namespace}")
    text = show(found)
    if text:
        click.echo(text)
    if asked.watch:
        _watch(jobs, show, found)


def shown(
    jobs: list[JobSummary],
    form: Format,
    style: ListFormat = MPIJOBS,
    *,
    everywhere: bool,
    headers: bool = True,
) -> str:
    if form.structured:
        return formats.rendered(style.document(jobs), form)
    if form.kind == "name":
        return "\n".join(map(style.name, jobs))
    if not jobs:
        return ""
    wide, now = form.kind == "wide", datetime.now(UTC)
    rows = [style.row(job, now, wide=wide, everywhere=everywhere) for job in jobs]
    table = terminal.table(style.columns(wide=wide, everywhere=everywhere), rows)
    return table if headers else table.partition("\n")[2]


def _watch(
    jobs: Callable[[], list[JobSummary]], show: Callable[..., str], before: list[JobSummary]
) -> None:
    """On a terminal the table is drawn anew; elsewhere the jobs that changed are printed."""
    screen = terminal.Screen.over(show(before))
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
