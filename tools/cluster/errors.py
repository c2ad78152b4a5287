"""What goes wrong, as one exception that says what to do.

Every failure that a person can act on is a ClusterError; the command line prints it as
`error:` and `hint:` and exits 1. Anything else is a defect and keeps its traceback.
"""

from __future__ import annotations


class ClusterError(Exception):
    """A failure with a sentence on what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n\nhint: {self.hint}" if self.hint else message


class PortTakenError(ClusterError):
    """Somebody else on this machine listens where the cluster would; another slot may be free."""
