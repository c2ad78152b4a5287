"""`odh mpijob list`: the jobs, newest first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from mpi_trainer.api.kinds.conditions import RUNNING, STATES
from mpi_trainer.cli.context import list_jobs
from mpi_trainer.cli.output import formats, formatting, terminal
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.sorting import SortBy, SortByType, ordered
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import JobQuery, JobSummary
from mpi_trainer.sdk.backends.job_facts import unversioned

EVERY_SECONDS = 1.0
PROGRESS_EVERY = 5
"""looks; on a cluster one that asks for progress reads logs"""

F = TypeVar("F", bound=Callable[..., object])


def list_options(function: F) -> F:
    """The options of every list of jobs."""
    for option in (
        click.option("--no-headers", is_flag=True, help="Leave the line of headings out."),
        click.option("-w", "--watch", is_flag=True, help="Show changes until Ctrl-C."),
        click.option(
            "--sort-by", type=SortByType(),
            help="name, age, created, state, duration, workers, or a path such as "
            ".metadata.name.  [default: newest first]",
        ),
        click.option(
            "-l", "--selector", type=options.LabelSelector(), default="",
            help="Only jobs with these labels, such as team=a,tier!=dev.",
        ),
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
    selector: str = ""
    sort_by: SortBy | None = None

    def query(self, *, progress: bool) -> JobQuery:
        whole = self.form.whole or (self.sort_by is not None and self.sort_by.whole)
        wanted = progress and self.form.kind != "name"
        return JobQuery(labels=self.selector, manifests=whole, progress=wanted)


class ListFormat(NamedTuple):
    """How jobs are written: as items of a list, by name, and as rows of a table."""

    item: Callable[[JobSummary], dict[str, Any]]
    name: Callable[[JobSummary], str]
    columns: Callable[..., tuple[str, ...]]
    row: Callable[..., tuple[str, ...]]


MPIJOBS = ListFormat(
    item=formatting.data,
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
    odh mpijob list -l team=a --sort-by duration
    odh mpijob list -o custom-columns=NAME:.metadata.name,STATE:.state

    With -o json, yaml, jsonpath and custom-columns a job is the object as the API has it, and
    beside that .state, .progress and what else the table shows.
    On a cluster PROGRESS is what a TrainJob's status says, else what the last lines of the log
    say. Logs are read of the newest 20 running jobs, for at most 2 seconds, and where you may
    read them.
    """
    print_list(list_jobs, MPIJOBS, ListOptions(**given))


def print_list(
    find: Callable[[str | None, JobQuery], list[JobSummary]],
    style: ListFormat,
    asked: ListOptions,
) -> None:
    """Print the jobs that `find` has in a namespace, or in all; then, if asked, their changes."""
    form = asked.form

    def jobs(*, progress: bool = True) -> list[JobSummary]:
        query = asked.query(progress=progress)
        listed = find(None if asked.everywhere else asked.namespace, query)
        found = [job for job in listed if asked.state in (None, job.state)]
        if asked.sort_by is None:
            return found
        return ordered(found, asked.sort_by, datetime.now(UTC), style.item)

    def show(chosen: list[JobSummary], *, headers: bool = not asked.no_headers) -> str:
        return shown(chosen, form, style, everywhere=asked.everywhere, headers=headers)

    found = jobs()
    if not found and not form.structured:
        what = "no jobs match" if asked.selector or asked.state else "no jobs"
        say(what if asked.everywhere else f"{what} in namespace {asked.namespace}")
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
        items = [style.item(job) for job in jobs]
        return formats.rendered({"apiVersion": "v1", "kind": "List", "items": items}, form)
    if form.kind == "custom-columns":
        from mpi_trainer.cli.output import custom_columns

        cells = custom_columns.rows(form.columns, map(style.item, jobs))
        return _table([column.header for column in form.columns], cells, headers=headers)
    if form.kind == "name":
        return "\n".join(map(style.name, jobs))
    if not jobs:
        return ""
    wide, now = form.kind == "wide", datetime.now(UTC)
    rows = [style.row(job, now, wide=wide, everywhere=everywhere) for job in jobs]
    return _table(style.columns(wide=wide, everywhere=everywhere), rows, headers=headers)


def _table(header: Sequence[str], rows: list[tuple[str, ...]], *, headers: bool) -> str:
    table = terminal.table(header, rows)
    return table if headers else table.partition("\n")[2]


def _watch(
    jobs: Callable[..., list[JobSummary]], show: Callable[..., str], before: list[JobSummary]
) -> None:
    """On a terminal the table is drawn anew; elsewhere the jobs that changed are printed."""
    screen = terminal.Screen.over(show(before))
    for look in count(1):
        time.sleep(EVERY_SECONDS)
        fresh = look % PROGRESS_EVERY == 0
        now = jobs(progress=fresh)
        if not fresh:
            now = _with_known_progress(now, before)
        if screen.alive:
            screen.draw(show(now))
        else:
            known = [unversioned(job) for job in before]
            changed = [job for job in now if unversioned(job) not in known]
            if changed:
                click.echo(show(changed, headers=False))
        before = now


def _with_known_progress(jobs: list[JobSummary], before: list[JobSummary]) -> list[JobSummary]:
    """Those that run, with what they said last where nobody has asked them now."""
    known = {(job.kind, job.key): job.progress for job in before if job.state == RUNNING}
    return [
        msgspec.structs.replace(job, progress=known.get((job.kind, job.key)))
        if job.state == RUNNING and job.progress is None
        else job
        for job in jobs
    ]
