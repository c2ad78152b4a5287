"""What can go wrong with a job, as Python programs catch it.

    JobError                     anything of ours about a job; `hint` says what to do
    ├── JobNotFound  (also LookupError)
    ├── RuntimeNotFound (also LookupError)
    ├── VolumeNotFound (also LookupError)
    ├── JobExists    (also ValueError)
    ├── JobChanged                         not as the caller has seen it
    ├── JobFailed    (also RuntimeError)   the job itself ended badly
    ├── JobTimeout   (also TimeoutError)
    ├── NotShippable (also ValueError)     a function that cannot run anywhere but here
    ├── ClusterUnreachable (also ConnectionError)   no answer from the API server
    └── K8sApiException                    the API server refused; keeps its status and body

A job file that is wrong raises `api.errors.InvalidJob`, which is a ValueError.
"""

from __future__ import annotations


class JobError(Exception):
    """Anything about a job; `problem` is one sentence, and `hint` says what to do."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # a traceback shows it below the problem


class JobNotFound(JobError, LookupError):
    """There is no such job, or it was deleted meanwhile."""


class RuntimeNotFound(JobError, LookupError):
    """There is no such TrainingRuntime or ClusterTrainingRuntime."""


class VolumeNotFound(JobError, LookupError):
    """There is no PersistentVolumeClaim and no data connection of that name."""


class JobExists(JobError, ValueError):
    """The name is taken."""


class JobChanged(JobError):
    """The job is no longer as the caller has seen it, and was left as it is."""


class JobFailed(JobError, RuntimeError):
    """The job itself ended badly; `reason` is the condition's."""

    def __init__(self, problem: str, hint: str = "", reason: str = "") -> None:
        super().__init__(problem, hint)
        self.reason = reason


class JobTimeout(JobError, TimeoutError):
    """Something has not come about in time; the job goes on."""


class NotShippable(JobError, ValueError):
    """A function, or an argument for it, cannot be sent to other machines as text."""


class ClusterUnreachable(JobError, ConnectionError):
    """The API server does not answer; what was asked for may or may not have happened."""


class K8sApiException(JobError):
    """The API server refused; `status` and `body` are its answer."""

    def __init__(self, problem: str, status: int, body: str = "", hint: str = "") -> None:
        super().__init__(problem, hint)
        self.status = status
        self.body = body
