"""What went wrong, as the user reads it: one `error:` line, a blank line, a `hint:`."""

from __future__ import annotations

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.pod import PodError


def explained(error: Exception) -> str | None:
    """The words for an error of ours; None for one that is a fault of the program."""
    if isinstance(error, InvalidJob):
        return f"error: {error}"
    if isinstance(error, LocalError):
        return worded(error.problem, error.hint)
    if isinstance(error, PodError):
        return worded(str(error))
    return None


def worded(problem: str, hint: str = "") -> str:
    return f"error: {problem}" + (f"\n\nhint: {hint}" if hint else "")
