"""`odh mpijob describe`: everything that is known of a job, on one page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from mpi_trainer.cli import context
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats, formatting, terminal
from mpi_trainer.cli.output.findings import paragraph
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.layout.mpi import RANK_MARK
from mpi_trainer.sdk.backends.backend import JobDetails, Key
from mpi_trainer.sdk.backends.views import details_summary
from mpi_trainer.sdk.job.explain import kept_findings

WORDS = 12
"""lines of each attempt on the page"""


@click.command("describe")
@options.name
@options.namespace
@options.data_output
@verbosity_options
def command(*, name: str, namespace: str, form: Format) -> None:
    """Show the details of a job: state, attempts, pods, ranks, events.

    \b
    odh mpijob describe train
    odh mpijob describe train -o jsonpath='{.ranks[*].end}'
    """
    backend, key = connect(), Key(namespace, name)
    details = run_async(backend.details(key))
    if form.structured:
        job = dict(details.job.manifest)
        click.echo(formats.rendered({"job": job, **data(details)}, form))
    else:
        click.echo("\n".join(page(details, datetime.now(UTC))))


def data(details: JobDetails) -> dict[str, Any]:
    return {
        "state": details.job.state,
        "waitsFor": details.waits_for,
        "missingOutput": details.missing,
        "findings": [msgspec.to_builtins(one) for one in kept_findings(details)],
        "progress": formatting.progress_data(details.progress),
        "attempts": [msgspec.to_builtins(one) for one in details.attempts],
        "pods": [msgspec.to_builtins(pod) for pod in details.pods],
        "ranks": [msgspec.to_builtins(rank) for rank in details.ranks],
        "events": [msgspec.to_builtins(event) for event in details.events],
    }


def page(details: JobDetails, now: datetime) -> Iterator[str]:
    return map(terminal.inert, _lines(details, now))


def _lines(details: JobDetails, now: datetime) -> Iterator[str]:
    for one in kept_findings(details)[:1]:
        yield from paragraph(one)
        yield ""
    yield from _aligned(_facts(details, now))
    for title, header, rows in _tables(details, now):
        if rows:
            yield f"\n{title}:"
            yield from (f"  {line}" for line in terminal.table(header, rows).splitlines())
    yield from _last_words(details)


def _last_words(details: JobDetails) -> Iterator[str]:
    """Of each attempt that ended, as far as a page has room."""
    for one in details.attempts:
        for said in one.words:
            lines = said.text.split("\n")
            yield f"\nLast words of attempt {one.attempt} ({said.pod}):"
            if said.cut or len(lines) > WORDS:
                call = context.command_line("logs", details.job.name, details.job.namespace)
                yield f"  … more with `{call} --attempt {one.attempt}`"
            yield from (f"  {line}" for line in _shown(lines[-WORDS:]))
        if one.silence:
            yield f"\nLast words of attempt {one.attempt}: none were kept: {one.silence}"


def _shown(lines: Sequence[str]) -> Iterator[str]:
    """As `logs` prints them: the rank, then the text with its indentation. Open MPI 5 puts a space
    behind every mark; one mark without it proves another MPI."""
    marks = [re.match(RANK_MARK, line) for line in lines]
    spaced = all(m is None or m.string[m.end() :][:1] in ("", " ") for m in marks)
    for line, mark in zip(lines, marks, strict=True):
        yield line if mark is None else f"[{mark['rank']}] {line[mark.end() + spaced :]}"


def _facts(details: JobDetails, now: datetime) -> Iterator[tuple[str, str]]:
    job, summary = details.job, details_summary(details)
    times = job.times
    yield "Name", job.name
    yield "Namespace", job.namespace
    yield "Id", job.uid
    yield "State", f"{summary.state} ({summary.reason})" if summary.reason else summary.state
    yield "Message", job.message
    yield "Waits for", details.waits_for
    yield "Output", details.missing
    yield "Created", formatting.moment(times.created) or ""
    yield "Started", formatting.moment(times.started) or ""
    yield "Completed", formatting.moment(times.completed) or ""
    yield "Reconciled", formatting.moment(job.last_reconcile_time) or ""
    if times.started:
        yield "Duration", formatting.between(times.started, times.completed or now)
    yield "MPI", job.implementation
    slots = "1 slot" if job.slots == 1 else f"{job.slots} slots"
    yield "Workers", f"{job.workers}, {slots} each"
    yield "Image", job.image
    yield "Command", shlex.join([_one_line(str(word)) for word in job.command])
    yield "Progress", formatting.progress_words(details.progress)
    yield "Remaining", formatting.eta_words(details.progress, now.timestamp())
    yield "Metrics", formatting.metric_words(details.progress)


def _tables(
    details: JobDetails, now: datetime
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    yield (
        "Conditions",
        ("TYPE", "STATUS", "REASON", "AGE", "MESSAGE"),
        [
            (c.type, c.status, c.reason, formatting.between(c.last_transition_time, now), c.message)
            for c in details.job.conditions
        ],
    )
    yield (
        "Attempts",
        ("ATTEMPT", "BEGAN", "ENDED", "REASON", "CAUSE", "RANK", "HOST", "MESSAGE"),
        [
            (
                str(one.attempt),
                formatting.moment(one.began) or "-",
                formatting.moment(one.ended) or "-",
                one.reason or "-",
                one.cause or "-",
                "-" if one.rank is None else str(one.rank),
                one.host or "-",
                " ".join(one.message.split()) or "-",
            )
            for one in details.attempts
        ],
    )
    yield (
        "Pods",
        ("NAME", "PHASE", "READY", "ADDRESS", "END"),
        [(p.name, p.phase, "yes" if p.ready else "no", p.address, p.end) for p in details.pods],
    )
    yield (
        "Ranks",
        ("RANK", "POD", "ADDRESS", "END"),
        [(str(r.rank), r.pod, r.address, r.end or "running") for r in details.ranks],
    )
    yield (
        "Events",
        ("AGE", "TYPE", "REASON", "MESSAGE"),
        [(formatting.between(e.time, now), e.type, e.reason, e.message) for e in details.events],
    )


def _aligned(facts: Iterator[tuple[str, str]]) -> Iterator[str]:
    known = [(name, text) for name, text in facts if text]
    width = max(len(name) for name, _ in known) + 1
    for name, text in known:
        yield f"{name + ':':<{width}} {text}"


def _one_line(word: str) -> str:
    """Code given as an argument by its first line: `-o yaml` has all of it."""
    first, *more = word.strip().splitlines() or [word]
    return f"{first} … (line 1 of {len(more) + 1})" if more else word
