"""Which runtime a TrainJob from a file gets: the one given, the file's own, or one that we ship."""

from __future__ import annotations

from mpi_trainer.api.kinds import runtime as api
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.cli import job_files
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.jobs import shipped_runtimes


def chosen(job: TrainJob, file: JobFile, path: str | None) -> Runtime:
    """`path` is what the user gave with --runtime; it wins, whatever name it has."""
    if path is not None:
        return _only(path)
    own = (one for one in file.runtimes if api.serves(one, job))
    ref = job.spec.runtime_ref
    found = next(own, None)
    if found is None and ref.kind in (None, api.CLUSTER):
        found = shipped_runtimes.runtime(ref.name)
    if found is None:
        known = shipped_runtimes.names()
        meant = nearest(ref.name, known)
        hint = f"Did you mean {meant}? " if meant else ""
        raise LocalError(
            f"there is no {ref.kind or api.CLUSTER} {ref.name} here",
            f"{hint}Give it with `--runtime FILE`, put it into the job's file, or use one of "
            f"{', '.join(known)}.",
        )
    return found


def _only(path: str) -> Runtime:
    found = job_files.objects(path).runtimes
    if len(found) != 1:
        raise LocalError(
            f"{path} holds {len(found)} runtimes, and a job has one",
            "Give a file with one TrainingRuntime or ClusterTrainingRuntime.",
        )
    return found[0]
