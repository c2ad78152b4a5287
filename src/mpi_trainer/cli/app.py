"""The commands of `odh`, each imported only when it is called."""

from __future__ import annotations

import click

from mpi_trainer import __version__
from mpi_trainer.cli.context import is_kind, root_options
from mpi_trainer.cli.lazy import group
from mpi_trainer.cli.main import INTERRUPTED, USAGE

# Verbs of `odh mpijob`, for jobs of any kind.
SHORT = {
    "list": ("all_kinds", "List jobs of every kind, newest first (also `ls`, `ps`)."),
    "get": ("mpijob.get", "Show jobs by name, as a table, JSON or YAML."),
    "describe": ("mpijob.describe", "Show the details of a job."),
    "explain": ("mpijob.explain", "Say why a job failed, and what to do."),
    "logs": ("mpijob.logs", "Print the logs of a job, of all ranks or of one."),
    "wait": ("mpijob.wait", "Wait until a job reaches a state."),
    "stop": ("mpijob.change:suspend", "Stop a job's pods but keep the job (also `cancel`)."),
    "resume": ("mpijob.change:resume", "Let a stopped job run."),
    "delete": ("mpijob.delete", "Stop jobs and delete them, with their logs (also `rm`)."),
}
VERBS = {
    "run": ("run", "Run a command or a job file with real MPI on this machine."),
    "history": ("history", "List what `odh run` has run on this machine."),
    **SHORT,
    "mpijob": ("mpijob", "MPI jobs: submit, follow, stop, repeat."),
    "trainjob": ("trainjob", "TrainJobs, by the same verbs."),
    "training": ("training", "The same by verb and kind: `odh training list mpijob`."),
    "top": ("mpijob.top", "Show CPU, memory and GPUs that jobs use."),
    "runtime": ("runtime", "Runtimes for TrainJobs: list and describe them."),
    "validate": ("validate", "Check job files without running anything."),
    "render": ("render", "Print the objects that the controller would create for a job."),
    "diff": ("diff", "Say what applying a job file would change on the cluster."),
    "migrate": ("migrate", "Convert job files of other APIs and services, with a report."),
    "dashboard": ("dashboard", "Open the dashboard, served on this machine for you alone."),
    "mpi": ("mpi", "Install and list the MPI builds for local runs."),
    "doctor": ("doctor", "Say what works here, what is missing, and how to fix it."),
    "must-gather": ("must_gather", "Collect what a report of a fault needs, without secrets."),
    "usage": ("usage", "Say who used how many hours and GPU hours."),
    "install": ("install:install", "Install or upgrade mpi-trainer on a cluster."),
    "uninstall": ("install:uninstall", "Take mpi-trainer off a cluster; jobs stay."),
    "images": ("images", "The images that an installation uses, and a map for a mirror."),
    "completion": ("completion", "Print the shell's completion for this program."),
}


ALIASES = {"ls": "list", "ps": "list", "rm": "delete", "cancel": "stop"}
# What kubectl and others have at the top, and `odh` has below a kind.
CREATE = ("apply", "submit")


class _Odh(group(VERBS, ALIASES)):  # type: ignore[misc]
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args == ["version"]:
            args = ["--version"]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in {*VERBS, *ALIASES} and not ctx.resilient_parsing:
            from mpi_trainer.cli.verbs.mpijob import VERBS as OF_A_KIND

            verb = "create" if args[0] in CREATE else args[0]
            if verb in OF_A_KIND:
                ctx.fail(f"No such command '{args[0]}'; did you mean `mpijob {verb}`?")
        name, command, rest = super().resolve_command(ctx, args)
        if name in SHORT and name != "list" and rest and is_kind(rest[0]):
            return name, command, rest[1:]
        return name, command, rest


@click.group(cls=_Odh, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="odh")
@root_options
def odh() -> None:
    """MPI training jobs that just run: here, and on OpenShift AI.

    Options that say where may also follow the command, as kubectl has it. Without any, jobs are on
    the cluster that kubectl would use; where there is none, on this machine.

    \b
    Exit codes:
      0    done, or the job succeeded
      1    the job failed
      2    wrong usage or input, or no such job
      124  the time given with --timeout is over
      130  interrupted (Ctrl-C)
    """


def run() -> int:
    """Runs the command that was called; its exit code."""
    from mpi_trainer.cli import context

    try:
        return odh.main(prog_name=context.program_name(), standalone_mode=False) or 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        from mpi_trainer.cli.output import errors

        click.echo(errors.misused(error), err=True)
        return USAGE
    except click.Abort:
        return INTERRUPTED
