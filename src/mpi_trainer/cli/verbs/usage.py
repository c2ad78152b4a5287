"""`odh usage`: who used how many hours and GPU hours, for reports and bills."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats, formatting, terminal
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import Backend
from mpi_trainer.sdk.team_usage import GROUPS, Report, Row, Window

CSV: Final = "csv"
MOST_JOBS: Final = 200_000
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_DAYS: Final = 30


class _Output(formats.FormatType):
    """As elsewhere, and csv."""

    def __init__(self) -> None:
        super().__init__(("json", "yaml", CSV))


@click.command("usage")
@options.namespace
@options.every_namespace
@click.option("--since", type=options.Since(), help="A time, or as long ago.  [default: 30d]")
@click.option("--until", type=options.Since(), help="A time, or as long ago.  [default: now]")
@click.option(
    "--by",
    multiple=True,
    type=click.Choice(GROUPS),
    help="What to add up by; may be repeated.  [default: all three]",
)
@click.option(
    "-o", "--output", "form", type=_Output(), default=Format(), show_default=False,
    help="json, yaml, csv or jsonpath=EXPRESSION.",
)  # fmt: skip
@verbosity_options
def command(
    *,
    namespace: str,
    everywhere: bool,
    since: datetime | None,
    until: datetime | None,
    by: tuple[str, ...],
    form: Format,
) -> None:
    """Say who used how many hours and GPU hours, by namespace, queue and user.

    A job counts from its start to its end, with all GPUs that it asked for, also while it waited
    for some of its pods. Jobs that were deleted do not count: for months, keep `odh usage -o csv`
    of every week, or ask Prometheus (docs/observability.md).

    \b
    odh usage --since 7d
    odh usage --by user -o csv
    """
    end = until or datetime.now(UTC)
    window = Window(since or end - timedelta(days=_DAYS), end)
    if window.start >= window.end:
        raise click.UsageError("--since is not before --until; give an earlier time")
    chosen = [group for group in GROUPS if not by or group in by]
    report = Report(window, chosen)
    more = run_async(_read(connect(single=True), None if everywhere else namespace, report))
    if more:
        say(f"only the first {MOST_JOBS} jobs were read; ask for one namespace at a time (-n)")
    _print(report, form)


async def _read(backend: Backend, namespace: str | None, report: Report) -> bool:
    """Page by page; whether jobs are left that were not read."""
    token = ""
    while report.jobs < MOST_JOBS:
        page = await backend.list_page(namespace, token=token)
        report.add(page.jobs)
        token = page.token
        if not token:
            return False
    return True


def _print(report: Report, form: Format) -> None:
    rows = report.rows()
    if form.kind == CSV:
        click.echo(_csv(rows, report.by), nl=False)
    elif form.structured:
        window = {"from": _time(report.window.start), "to": _time(report.window.end)}
        items = [_item(row, report.by) for row in rows]
        click.echo(formats.rendered({**window, "items": items}, form))
    elif rows:
        head = (*(name.upper() for name in report.by), "JOBS", "SUCCEEDED", "FAILED", "HOURS",
                "GPU-HOURS")  # fmt: skip
        click.echo(terminal.table(head, [_cells(row, report.by) for row in rows]))
    else:
        say("no job ran in that time")


def _item(row: Row, by: tuple[str, ...]) -> dict[str, Any]:
    figures = msgspec.to_builtins(row)
    left_out = {*GROUPS} - {*by}
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in figures.items()
        if name not in left_out
    }


def _cells(row: Row, by: tuple[str, ...]) -> list[str]:
    item = _item(row, by)
    return [
        f"{v:.1f}" if isinstance(v, float) else formatting.one_line(str(v)) for v in item.values()
    ]


def _csv(rows: list[Row], by: tuple[str, ...]) -> str:
    """For spreadsheets: names that one would take for a formula begin with a quote."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(_item(Row(), by))
    for row in rows:
        writer.writerow(_unharmed(value) for value in _item(row, by).values())
    return made.getvalue()


def _unharmed(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA) and value != "-":
        return f"'{value}"
    return value


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
