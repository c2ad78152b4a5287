"""What went wrong, as the user reads it: one `error:` line, a blank line, a `hint:`."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

import click

from mpi_trainer.api.errors import ExplainedError, InvalidJob
from mpi_trainer.api.spelling import nearest
from mpi_trainer.cli.main import FAILED
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.local.errors import LocalError
from mpi_trainer.sdk.errors import JobError, JobFailed, JobTimeout, K8sApiException

# What a full, restricted or overloaded machine answers to anything.
_OF_THE_MACHINE = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
        *(errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG),
    }
)

# How mpirun, torchrun and Slurm are given the number of ranks.
_RANKS = frozenset(
    {
        *("-n", "--n", "--np", "-c", "-N", "--ntasks", "--ntasks-per-node", "--nodes"),
        *("--nnodes", "--nproc", "--nproc-per-node", "--nproc_per_node", "--ppn", "--ranks"),
    }
)


def explained(error: Exception) -> str | None:
    """The words for an error that the user can mend; None for a fault of the program."""
    if isinstance(error, InvalidJob):
        return f"error: {error}"
    if isinstance(error, K8sApiException):
        from mpi_trainer.sdk.backends.cluster.errors import server_words

        return worded(server_words(error), error.hint)
    if isinstance(error, (ExplainedError, LocalError, JobError)):
        return worded(error.problem, error.hint)
    if isinstance(error, KubeError):
        return worded(str(error))
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        where = f"{error.filename}: " if error.filename else ""
        return worded(f"{where}{error.strerror}", _hint(error))
    return None


def _hint(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return (
            "Get access to it. If it is in another user's home, use `su -` or `sudo -H`, or set "
            "HOME, XDG_STATE_HOME and XDG_DATA_HOME."
        )
    if isinstance(error, NotADirectoryError | FileExistsError):
        return (
            "A part of this path is a file and not a directory. Jobs are kept below "
            "XDG_STATE_HOME, MPI builds below XDG_DATA_HOME: set them to directories, or unset "
            "them."
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            "Free some space there. Jobs are kept below XDG_STATE_HOME, MPI builds below "
            "XDG_DATA_HOME: set them to use another disk."
        )
    return "Fix this on the machine and try again."


def misused(error: click.ClickException) -> str:
    """The words for a command line that makes no sense."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error)
    if type(error) is click.BadParameter and error.param is not None:
        number = error.param.type
        if isinstance(number, click.IntRange):
            error = click.BadParameter(_expected(number), error.ctx, error.param)
    text = error.format_message().removesuffix(".")
    if not text[:2].isupper():  # not the name of a variable
        text = text[:1].lower() + text[1:]
    return worded(text, _see_help(context))


def _expected(number: click.IntRange) -> str:
    if number.max is None:
        return f"must be a whole number, {number.min} or more"
    return f"must be a whole number from {number.min} to {number.max}"


def _unknown_option(error: click.NoSuchOption) -> str:
    options = _options(error.ctx)
    problem = f"no such option '{error.option_name}'"
    meant = nearest(error.option_name, options)
    if meant:
        problem += f"; did you mean `{meant}`?"
    elif error.option_name in _RANKS and "--slots" in options:
        return worded(problem, "The number of ranks is workers times slots: `-w 4 -s 2` starts 8.")
    return worded(problem, _see_help(error.ctx))


def _options(context: click.Context | None) -> set[str]:
    return {name for each in context.command.params for name in each.opts} if context else set()


def _see_help(context: click.Context | None) -> str:
    return f"See `{context.command_path if context else 'odh'} --help`."


def report(error: Exception) -> int:
    """Says what went wrong; the exit code that follows from it."""
    if os.environ.get("ODH_TRACEBACK"):
        raise error
    words = explained(error)
    click.echo(words or fault(error), err=True)
    return exit_code(error) if words else FAILED


def exit_code(error: Exception) -> int:
    """What the program ends with after an explained error."""
    if isinstance(error, JobTimeout):
        return 124
    return 1 if isinstance(error, JobFailed) else 2


def fault(error: Exception) -> str:
    """The words for a fault of the program: where it is, not how it got there."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return worded(
        f"this is a fault of odh, not of the job: {what} "
        f"({Path(place.filename).name}:{place.lineno})",
        "Please report it, with what ODH_TRACEBACK=1 prints.",
    )


def worded(problem: str, hint: str = "") -> str:
    return f"error: {problem}" + (f"\n\nhint: {hint}" if hint else "")
