"""The `odh` program: finds the verb, runs it, and turns what went wrong into words.

Verbs are imported only when they are called: `odh --help` and completion must feel instant.
Exit codes: 0 done, 1 the job failed, 2 bad usage or input, 124 time-out, 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from mpi_trainer import __version__

FAILED = 1
USAGE = 2
INTERRUPTED = 130

# verb -> (module under cli, one line of help); the help stands here so that listing is cheap.
VERBS = {
    "run": ("run", "Run a command or a job file with real MPI on this machine."),
    "validate": ("validate", "Check job files without running anything."),
    "mpi": ("mpi", "Install and list the MPI builds for local runs."),
    "doctor": ("doctor", "Say what this machine can do, and mend what is missing."),
}


class Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = import_module(f"mpi_trainer.cli.{VERBS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="odh")
def odh() -> None:
    """MPI training jobs that just run: here, and on OpenShift AI."""


def main() -> None:
    """The entry point of every name under which the program is installed."""
    try:
        sys.exit(odh.main(standalone_mode=False) or 0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        error.show()
        sys.exit(USAGE)
    except click.Abort:
        sys.exit(INTERRUPTED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (`odh … | head`); there is nobody left to tell.
        sys.stderr.close()
        sys.exit(FAILED)
    except Exception as error:
        from mpi_trainer.cli.mistakes import explained

        words = explained(error)
        if words is None:
            raise
        click.echo(words, err=True)
        sys.exit(USAGE)
