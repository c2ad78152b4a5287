"""`odh migrate`: job files of other APIs and services as ours, with a report of every field.

Guarantee: where anything is wrong nothing is written, neither to standard output nor to a file,
unless `--keep-going` asks for the rest; files are made whole or not at all.
"""

from __future__ import annotations

from pathlib import Path

import click

from mpi_trainer.cli import context
from mpi_trainer.cli.lazy import LazyGroup
from mpi_trainer.cli.main import USAGE
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs.migrate import files, shown
from mpi_trainer.cli.verbs.migrate.checked import Checked, checked
from mpi_trainer.cli.verbs.migrate.written import check_folder, write
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.local.errors import LocalError
from mpi_trainer.migrate.sources import TARGETS, Target

VERBS = {"report": ("migrate.report", "Say what is left to migrate, over namespaces.")}


class _Verbs(LazyGroup):
    """Says what to write to those who give files without `-f`, as a shell's `*.yaml` does."""

    verbs = VERBS

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not ctx.resilient_parsing and (Path(word).exists() or Path(word).suffix or word == "-"):
            raise LocalError(
                f"no `-f` stands before `{files.printable(word)}`",
                "Give each file its own `-f`, or give their folder."
                if ctx.params.get("paths")
                else f"Write `odh migrate -f {files.printable(word)}`.",
            )
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, invoke_without_command=True)
@click.option("-f", "--file", "paths", multiple=True, help="A file or a folder; `-`: stdin.")
@click.option(
    "--to", type=click.Choice(TARGETS, case_sensitive=False), help="The kind that is wanted."
)
@click.option("--output-dir", "folder", metavar="DIR", help="A file for each job, not stdout.")
@click.option("--overwrite", is_flag=True, help="Replace files that are there already.")
@click.option("--keep-going", is_flag=True, help="Write what can be converted, if not all can.")
@click.option("--check", is_flag=True, help="Compare the pods of both; ask the cluster, if any.")
@click.option("--instances", metavar="FILE", help="Resources of machine types: YAML.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    help="What goes to stdout: the objects, or as JSON the report too.",
)
@options.noted_namespace
@click.pass_context
def command(  # noqa: PLR0913 - the options of the command
    ctx: click.Context,
    *,
    paths: tuple[str, ...],
    to: Target | None,
    folder: str | None,
    overwrite: bool,
    keep_going: bool,
    check: bool,
    instances: str | None,
    output: str,
) -> int:
    """Convert job files of other APIs and services, with a report of every field.

    MPIJobs v2beta1 become TrainJobs with a runtime; older MPIJobs, SageMaker's CreateTrainingJob
    and command jobs of Azure ML become MPIJobs v2beta1, or with `--to trainjob` TrainJobs. What is
    converted goes to standard output, the report to standard error. Other objects of the files
    are passed over. Where a job cannot be converted, nothing is written.

    \b
    odh migrate -f mpijob.yaml
    odh migrate -f mpijob.yaml --check > /dev/null
    odh migrate -f mpijob.yaml --output-dir migrated --overwrite
    odh migrate -f mpijob.yaml -o json
    """
    if ctx.invoked_subcommand is not None:
        if paths:
            raise click.UsageError(f"`{ctx.invoked_subcommand}` reads no file")
        return 0
    _check_names(paths, folder)
    found, unread = files.migrated(paths, to, instances, folder)
    made = tuple(job for job in found.jobs if not job.errors)
    whole = not unread and found.sound
    results: Checked = checked(made, context.working_namespace()) if check else {}
    failed = not whole or any(one.refusals for one in results.values())
    if output == "json":
        click.echo(shown.as_json(found, unread, results, whole=keep_going or not failed))
    else:
        shown.say_report(found, unread, results)
    if not made and not unread and whole:
        raise LocalError(
            f"there is no job to convert in {', '.join(map(files.shown, paths))}",
            shown.why_none(found, to),
        )
    if made and (keep_going or not failed):
        if folder is not None:
            write(made, check_folder(folder, made, overwrite=overwrite))
        elif output != "json":
            click.echo("\n---\n".join(shown.documents(made)))
    elif failed and made:
        terminal.say("nothing was written; `--keep-going` writes what can be converted")
    return USAGE if failed else 0


def _check_names(paths: tuple[str, ...], folder: str | None) -> None:
    if not paths:
        raise click.UsageError("say what to convert, with `-f FILE`")
    if "" in paths or folder == "":
        raise click.UsageError("a name is empty; is a variable of your shell not set?")
