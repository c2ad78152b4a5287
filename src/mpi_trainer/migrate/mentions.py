"""What pods say of names that their new kind does not have: hosts, files, labels of pods.

Danger: only commands, arguments, variables and selectors are read; a name in a script of a volume
is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.labels import (
    LABEL_JOB,
    LABEL_JOBSET,
    LABEL_REPLICATED_JOB,
    LABEL_ROLE,
    TRAINING_PREFIX,
)
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.api.kinds.pods import PodTemplate, without_nulls
from mpi_trainer.migrate.report import CHANGED, FieldReport

NAMES = {LAUNCHER: "launcher", WORKER: "node"}
_OLD_LABELS: Final = ("mpi_job_name", "mpi_role_type", "mpi-job-name", "mpi-job-role")
_SELECTING: Final = ("affinity", "topologySpreadConstraints")
_SAID: Final = ("command", "args", "env")


def reports(job: MPIJob) -> Iterator[FieldReport]:
    """Of an MPIJob that becomes a TrainJob."""
    for role, template in ((LAUNCHER, job.launcher.template), (WORKER, job.worker.template)):
        spec: Mapping[str, Any] = without_nulls(template.content).get("spec") or {}
        path: Path = ("spec", "mpiReplicaSpecs", role, "template", "spec")
        for kind in ("initContainers", "containers"):
            for n, container in enumerate(spec.get(kind) or ()):
                main = (role, kind, n) == (LAUNCHER, "containers", 0)
                to = "TrainJob spec.trainer" if main else f"replicatedJobs[{NAMES[role]}]"
                for field in _SAID:
                    text = _text(container.get(field))
                    yield from _named(job.name, text, (*path, kind, n, field), to)
        note = "it selects pods by labels that those of a TrainJob do not have"
        remedy = f"select them by {LABEL_JOBSET} and {LABEL_REPLICATED_JOB}: node or launcher"
        for field in _SELECTING:
            if any(one.startswith(TRAINING_PREFIX) for one in _strings(spec.get(field))):
                yield FieldReport((*path, field), CHANGED, field, note, remedy)


def old_labels(template: PodTemplate, path: Path) -> Iterator[FieldReport]:
    """Of an older MPIJob, whose operator had other labels; `path` is the template's."""
    spec: Mapping[str, Any] = without_nulls(template.content).get("spec") or {}
    note = "it selects pods by labels that they do not have any more"
    remedy = f"select them by {LABEL_JOB} and {LABEL_ROLE}: worker or launcher"
    for field in _SELECTING:
        if any(one in _OLD_LABELS for one in _strings(spec.get(field))):
            yield FieldReport((*path, "spec", field), CHANGED, field, note, remedy)


def _named(job: str, said: str, path: Path, to: str) -> Iterator[FieldReport]:
    if "discover_hosts" in said:
        remedy = "read /etc/mpi/hostfile; a TrainJob's nodes do not change while it runs"
        note = "it names discover_hosts.sh, which a TrainJob does not have"
        yield FieldReport(path, CHANGED, to, note, remedy)
    if job and (f"{job}-worker-" in said or f"{job}-launcher" in said):
        remedy = f"name {job}-node-0-0 and {job}-launcher-0-0, or read /etc/mpi/hostfile"
        note = "it names a pod, and pods are called otherwise"
        yield FieldReport(path, CHANGED, to, note, remedy)


def _text(value: Any) -> str:
    return "\n".join(_strings(value))


def _strings(value: Any) -> Iterator[str]:
    """All of them, keys too. How deep a job may be is bounded where it is read."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
