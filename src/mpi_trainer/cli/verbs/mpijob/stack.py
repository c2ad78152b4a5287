"""`odh mpijob stack`: where each rank is right now, for a job that seems to hang."""

from __future__ import annotations

from collections import defaultdict

import click

from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output import formats
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.errors import JobError


@click.command("stack")
@options.name
@options.namespace
@click.option("--rank", "ranks", type=click.IntRange(0), multiple=True, help="Only this rank.")
@options.data_output
@verbosity_options
def command(*, name: str, namespace: str, ranks: tuple[int, ...], form: Format) -> None:
    """Show where each rank is, for jobs that hang; ranks at the same place are shown together.

    \b
    odh mpijob stack train
    """
    found = run_async(connect().stacks(Key(namespace, name)))
    missing = [rank for rank in ranks if rank not in found]
    if missing:
        raise JobError(f"rank {missing[0]} of job {name} does not run")
    chosen = {rank: text for rank, text in found.items() if not ranks or rank in ranks}
    if form.structured:
        data = {"ranks": [{"rank": rank, "stack": text} for rank, text in sorted(chosen.items())]}
        click.echo(formats.rendered(data, form))
        return
    if not chosen:
        say(
            f"no rank of job {name} runs now, or none is recorded: only those of MPI jobs with "
            "the agent are"
        )
    for text, together in grouped(chosen):
        plural = "s" if len(together) > 1 else ""
        click.echo(f"rank{plural} {', '.join(map(str, together))}:")
        click.echo("\n".join(f"  {line}" for line in text.splitlines()))


def grouped(stacks: dict[int, str]) -> list[tuple[str, list[int]]]:
    """Each place once with its ranks, the loneliest first: that is usually the one to look at.
    Numbers of processes and threads are shown where one rank alone is there."""
    by_place: dict[str, list[int]] = defaultdict(list)
    for rank, text in sorted(stacks.items()):
        by_place["\n".join(map(_without_number, text.splitlines()))].append(rank)
    groups = sorted(by_place.items(), key=lambda each: (len(each[1]), each[1]))
    return [(stacks[r[0]] if len(r) == 1 else place, r) for place, r in groups]


def _without_number(line: str) -> str:
    """`Process 17: python` as `Process: python`, and `Thread 0x7f (idle)` as `Thread (idle)`."""
    kind, _, rest = line.partition(" ")
    if kind.lower() not in ("process", "thread"):
        return line
    number, _, what = rest.partition(" ")
    return f"{kind}{':' if number.endswith(':') else ''} {what}"
