"""What goes wrong on this machine, in words for its user.

LocalError              something is missing or refused; `hint` says what to do
├── CannotInstall       an MPI could not be installed
└── CannotApply         a part of the job cannot be had locally
"""

from __future__ import annotations


class LocalError(Exception):
    """`problem` is one sentence without a full stop; `hint` is what the user can do about it."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


class CannotInstall(LocalError):
    """An MPI could not be installed."""


class CannotApply(LocalError):
    """A part of the job cannot be had on this machine; the problem begins with its field path."""


class PodError(LocalError):
    """A pod cannot be made as planned."""


class StartError(PodError):
    """A pod was planned well but did not start: which one, at what step, and why."""

    def __init__(self, pod: str, step: str, reason: str) -> None:
        super().__init__(f"pod {pod}: {step}: {reason}")
        self.pod = pod
        self.step = step
        self.reason = reason
