"""`odh mpijob logs`: what a job printed, complete and in order, each line with its rank."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.cli import context
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.main import FAILED, INTERRUPTED
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.output.errors import worded
from mpi_trainer.cli.output.mpi_messages import MessageFolder
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import following, options
from mpi_trainer.diagnose.log_levels import LEVELS
from mpi_trainer.sdk.backends.backend import Backend, JobDetails, Key, LogLine, LogQuery

FLUSH_SECONDS = 0.1


@click.command("logs")
@options.name
@options.namespace
@click.option("--rank", type=click.IntRange(0), help="Only this rank.")
@click.option("--worker", type=click.IntRange(0), help="A worker's own lines (its sshd).")
@click.option("--launcher", is_flag=True, help="Only the launcher's pod (mpirun and its ranks).")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--all-pods", is_flag=True, help="Every pod's lines, with its name; launcher first.")
@click.option("--pod", default="", metavar="NAME", help="Only the pod of this name.")
@click.option("--since", type=options.Since(), help="Only lines after this: 10m ago, or a time.")
@click.option("--until", type=options.Since(), help="Only lines up to this: 5m ago, or a time.")
@click.option(
    "--level", type=click.Choice(LEVELS, case_sensitive=False),
    help="Only lines of this level or above.",
)  # fmt: skip
@click.option("--tail", type=click.IntRange(0), help="Only this many lines from the end.")
@click.option("--grep", type=options.Pattern(), help="Only lines that match.")
@click.option("--attempt", type=click.IntRange(1), help="Only this attempt, counted from 1.")
@click.option("--timestamps", is_flag=True, help="Put the time before each line.")
@click.option("--prefix", is_flag=True, help="Put the pod's name before each line.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@verbosity_options
def command(
    *, name: str, namespace: str, timestamps: bool, prefix: bool, output: str, **chosen: Any
) -> int:
    """Print the logs of a job, of all ranks or of one.

    \b
    odh mpijob logs train                         everything so far
    odh mpijob logs train --follow                until the job ends; Ctrl-C leaves it running
    odh mpijob logs train --rank 1 --tail 20      the last lines of one rank
    odh mpijob logs train --grep 'loss' -o json   for a program
    odh mpijob logs train --attempt 1             what the first of several attempts printed
    odh mpijob logs train --all-pods              launcher and workers, each line with its pod
    odh mpijob logs train --level warning         warnings and errors, with their tracebacks

    On a cluster the pods of an attempt go when the next one begins; its last lines stay.
    On a terminal the messages of Open MPI about ranks that ended take one line each; a file or a
    pipe gets every line.
    With --follow the exit code is the job's: 0 succeeded, 1 failed.
    """
    query = LogQuery(**{**chosen, "level": chosen["level"] or ""})
    _check(query)
    key = Key(namespace, name)
    printer = Printer(json=output == "json", timestamps=timestamps, prefix=prefix or query.all_pods)
    backend = connect()
    try:
        return run_async(followed(backend, key, query, printer))
    except KeyboardInterrupt:
        return following.left(key, "logs --follow") if query.follow else INTERRUPTED


def _check(query: LogQuery) -> None:
    """Options that exclude each other."""
    if query.worker is not None and (query.rank is not None or query.launcher):
        raise click.UsageError("--worker excludes --rank and --launcher; give one of them")
    places = (query.all_pods, query.pod, query.launcher, query.worker is not None)
    if sum(map(bool, places)) > 1:
        raise click.UsageError(
            "--all-pods, --pod, --launcher and --worker exclude each other; give one of them"
        )
    if query.until is not None and query.follow:
        raise click.UsageError("--until has no meaning with --follow; give one of them")


async def followed(backend: Backend, key: Key, query: LogQuery, printer: Printer) -> int:
    """Prints the lines; where they were followed, the job's verdict."""
    if query.follow:
        async with following.reported_waits(backend, key) as report:
            await _printed(backend, key, query, printer, report.stop)
        return await following.verdict(backend, key, ranks=True)
    if await _printed(backend, key, query, printer):
        return 0
    details = await backend.details(key)
    nothing_such = _no_such_attempt(details, query.attempt) or _no_such_rank(details, query.rank)
    if nothing_such:
        terminal.say(worded(nothing_such))
        return FAILED
    say(_why_silent(details, query))
    return 0


async def _printed(
    backend: Backend,
    key: Key,
    query: LogQuery,
    printer: Printer,
    at_first: Callable[[], None] = lambda: None,
) -> bool:
    """Whether there was a line; `at_first` is called when it comes."""
    flushing = asyncio.create_task(printer.keep_flushing()) if query.follow else None
    some = False
    try:
        async for line in backend.logs(key, query):
            if not some:
                at_first()
                some = True
            printer.print(line)
    finally:
        if flushing:
            flushing.cancel()
        printer.finish()
    return some


def _no_such_attempt(seen: JobDetails, attempt: int | None) -> str:
    """Says which there are; empty where this is one of them."""
    ended = max((one.attempt for one in seen.attempts), default=0)
    made = ended + (seen.job.state != conditions.FAILED or not ended)
    if attempt is None or attempt <= made:
        return ""
    there = "only attempt 1" if made == 1 else f"attempts 1 to {made}"
    return f"job {seen.job.name} has no attempt {attempt}, but {there}"


def _no_such_rank(seen: JobDetails, rank: int | None) -> str:
    known = sorted(one.rank for one in seen.ranks)
    if rank is None or not known or rank in known:
        return ""
    there = f"ranks {known[0]} to {known[-1]}" if len(known) > 1 else f"only rank {known[0]}"
    return f"job {seen.job.name} has no rank {rank}, but {there}"


def _why_silent(seen: JobDetails, query: LogQuery) -> str:
    role = "worker" if query.worker is not None else "launcher"
    state = seen.job.state
    ended = next((one for one in seen.attempts if one.attempt == query.attempt), None)
    if ended is not None and ended.silence:
        return f"none of the lines of attempt {ended.attempt} were kept: {ended.silence}"
    over = seen.job.finished
    whole = LogQuery(
        worker=query.worker, launcher=query.launcher, pod=query.pod, all_pods=query.all_pods
    )
    if query != whole:
        return f"no lines match; {seen.job.name} is {state}"
    if over and role not in {p.role for p in seen.pods}:
        more = context.command_line("describe", seen.job.name, seen.job.namespace)
        return f"its pods are gone, and what they printed with them; `{more}` says how it ended"
    return f"nothing was printed; {seen.job.name} is {state}"


class Printer:
    """Bytes straight to standard output: a million lines must not wait for a terminal's sake."""

    def __init__(
        self, *, json: bool = False, timestamps: bool = False, prefix: bool = False
    ) -> None:
        self._out = sys.stdout.buffer
        self._json = json
        self._timestamps = timestamps
        self._prefix = prefix
        self._at_once = sys.stdout.isatty()
        self._folder = MessageFolder[LogLine]() if self._at_once and not json else None

    def print(self, line: LogLine) -> None:
        if self._folder is None:
            self._print(line)
            return
        # A note stands before its own line, so that is not folded.
        noted = line.lost or line.notes
        for one in (*self._folder.rest(), line) if noted else self._folder.feed(line):
            self._print(one)

    def finish(self) -> None:
        """After the last line."""
        for line in self._folder.rest() if self._folder else ():
            self._print(line)
        self.flush()

    def _print(self, line: LogLine) -> None:
        if line.lost:
            self._note(f"{line.lost} lines before this one are gone: the log is bounded")
        for note in line.notes:
            self._note(note)
        if self._json:
            text = msgspec.json.encode(line)
        else:
            time = f"{line.time.isoformat(timespec='milliseconds')} " if self._timestamps else ""
            pod = f"[pod/{line.pod}] " if self._prefix else ""
            text = f"{time}{pod}{self._rank(line.rank)}{line.text}".encode(errors="replace")
        self._out.write(text + b"\n")
        if self._at_once:
            self._out.flush()

    def _note(self, text: str) -> None:
        """Between the lines, and in their order: standard error does not wait."""
        self._out.flush()
        say(terminal.faint(f"--- {terminal.inert(text)} ---"))

    def _rank(self, rank: int | None) -> str:
        if rank is None:
            return ""
        # Asking the terminal a million times whether it is one would cost seconds.
        return f"{terminal.rank_tag(rank, sys.stdout)} " if self._at_once else f"[{rank}] "

    def flush(self) -> None:
        self._out.flush()

    async def keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self._out.flush()
