"""Events about a job of any kind, and texts that fit into a condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.decide import reasons
from mpi_trainer.kube.resources import Resource
from mpi_trainer.kube.watch import WatchMeta
from mpi_trainer.runtime.recorder import EventSubject, Recorder

_LONGEST = 8192


def record_event(
    recorder: Recorder, job: MPIJob | TrainJob, weight: str, reason: str, message: str
) -> None:
    """An event about the job; any other weight than Normal is a Warning."""
    about = EventSubject(job.api_version, job.kind, job.namespace, job.name, job.metadata.uid)
    recorder.record(about, "Normal" if weight == "Normal" else "Warning", reason, message)


def record_unreadable(recorder: Recorder) -> Callable[[Resource, WatchMeta, str], None]:
    """A callback that records that an object cannot be read, and is left alone."""

    def record(resource: Resource, whose: WatchMeta, why: str) -> None:
        about = EventSubject(
            resource.api_version, resource.kind, whose.namespace, whose.name, whose.uid
        )
        text = f"this {resource.kind} cannot be read: {why}; fix or delete it"
        recorder.record(about, "Warning", reasons.INVALID, text)

    return record


def joined_errors(errors: Iterable[FieldError]) -> str:
    return "; ".join(str(error) for error in errors)


def shortened(text: str) -> str:
    """A condition's message may be long, but not without end."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
