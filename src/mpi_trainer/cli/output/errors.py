"""What went wrong, as the user reads it: one `error:` line, a blank line, a `hint:`."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

import click

from mpi_trainer.api.errors import ExplainedError, InvalidJob
from mpi_trainer.cli.main import FAILED
from mpi_trainer.kube.errors import ApiError, KubeError
from mpi_trainer.local.errors import LocalError
from mpi_trainer.sdk.errors import JobError, JobFailed, JobTimeout, K8sApiException

# What a full, restricted or overloaded machine answers to anything.
_OF_THE_MACHINE = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN),
    }
)


def explained(error: Exception) -> str | None:
    """The words for an error that the user can mend; None for a fault of the program."""
    if isinstance(error, InvalidJob):
        return f"error: {error}"
    if isinstance(error, K8sApiException):
        return worded(_refused(error), error.hint)
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
    return "Fix this on the machine and try again."


def _refused(error: K8sApiException) -> str:
    """The server's own words, a line for each thing to mend."""
    cause = error.__cause__
    if not isinstance(cause, ApiError) or cause.message not in error.problem:
        return error.problem
    from mpi_trainer.diagnose.refusals import lines

    said = lines(cause.message, cause.details.get("causes") or ())
    head = error.problem.removesuffix(cause.message).rstrip(" :") or "the cluster refuses"
    return f"{head}: {said[0]}" if len(said) == 1 else "\n  ".join([f"{head}:", *said])


def misused(error: click.ClickException) -> str:
    """The words for a command line that makes no sense."""
    text = error.format_message().removesuffix(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    help_of = context.command_path if context else "odh"
    if not text[:2].isupper():  # not the name of a variable
        text = text[:1].lower() + text[1:]
    return worded(text, f"See `{help_of} --help`.")


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
