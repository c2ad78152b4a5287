"""What can go wrong with a job, as Python programs catch it.

    JobError                     anything of ours about a job; `hint` says what to do
    ├── JobNotFound  (also LookupError)
    ├── JobExists    (also ValueError)
    ├── JobFailed    (also RuntimeError)   the job itself ended badly
    ├── JobTimeout   (also TimeoutError)
    ├── NotShippable (also ValueError)     a function that cannot run anywhere but here
    └── K8sApiException                    the API server refused; keeps its status and body

A job file that is wrong raises `api.errors.InvalidJob`, which is a ValueError.
"""

from __future__ import annotations


class JobError(Exception):
    """`problem` is one sentence without a full stop."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # a traceback shows it below the problem


class JobNotFound(JobError, LookupError):
    pass


class JobExists(JobError, ValueError):
    pass


class JobFailed(JobError, RuntimeError):
    """`reason` is the condition's."""

    def __init__(self, problem: str, hint: str = "", reason: str = "") -> None:
        super().__init__(problem, hint)
        self.reason = reason


class JobTimeout(JobError, TimeoutError):
    pass


class NotShippable(JobError, ValueError):
    """A function, or an argument for it, cannot be sent to other machines as text."""


class K8sApiException(JobError):
    def __init__(self, problem: str, status: int, body: str = "", hint: str = "") -> None:
        super().__init__(problem, hint)
        self.status = status
        self.body = body
