"""The pods that a check reads: of an MPIJob, or of a TrainJob put together with its runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER as LAUNCHER_JOB
from mpi_trainer.api.effective.combine import NODE, Effective, effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.mpijob import LAUNCHER, OPEN_MPI, WORKER, MPIJob
from mpi_trainer.api.kinds.pods import Container, PodTemplate, TemplateView
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.layout.agent.choice import Choice, choice, container


class RolePods(msgspec.Struct, frozen=True):
    """The pods of one role; `path` is where their template stands."""

    role: str
    path: Path
    template: PodTemplate
    container: str = ""

    @property
    def view(self) -> TemplateView:
        return self.template.view

    @property
    def main(self) -> Container:
        """The container that runs the job."""
        return container(self.view.spec.containers, self.container)

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        """As they are written, with the fields that nothing else reads."""
        return list((self.template.content.get("spec") or {}).get("containers") or ())


class JobPods(msgspec.Struct, frozen=True):
    """`slots` are ranks on each of `hosts` pods; `slots_at` is the field that says so. `settings`
    are the annotations, and `alone` a runtime, whose jobs bring their own resources."""

    launcher: RolePods
    workers: RolePods
    hosts: int
    slots: int
    slots_at: Path
    implementation: str
    launcher_runs_ranks: bool
    ssh_auth_mount_path: str
    settings: Mapping[str, str]
    alone: bool = False

    @property
    def roles(self) -> tuple[RolePods, RolePods]:
        return self.launcher, self.workers

    @property
    def agent(self) -> Choice:
        name = self.launcher.container
        return choice(self.settings, self.launcher.template, self.workers.template, name)


def mpijob_pods(job: MPIJob) -> JobPods | None:
    """None where the job has no workers. With defaults."""
    if not job.workers:
        return None
    path = ("spec", "mpiReplicaSpecs")
    ranks = bool(job.spec.run_launcher_as_worker)
    return JobPods(
        launcher=RolePods("launcher", (*path, LAUNCHER, "template"), job.launcher.template),
        workers=RolePods("worker", (*path, WORKER, "template"), job.worker.template),
        hosts=job.workers + ranks,
        slots=job.slots,
        slots_at=("spec", "slotsPerWorker"),
        implementation=job.spec.mpi_implementation or OPEN_MPI,
        launcher_runs_ranks=ranks,
        ssh_auth_mount_path=job.spec.ssh_auth_mount_path or "",
        settings=job.metadata.annotations,
    )


def trainjob_pods(job: TrainJob, runtime: Runtime, *, alone: bool = False) -> JobPods | None:
    """None where the runtime has no MPI, or not the jobs that it needs. `alone`: nothing is known
    but the runtime, and `job` only names it."""
    merged = effective(job, runtime)
    launcher, workers = (_role(merged, runtime, role) for role in (LAUNCHER_JOB, NODE))
    if launcher is None or workers is None:
        return None
    slots = ("spec", "mlPolicy", "mpi", "numProcPerNode")
    own = job.trainer.num_proc_per_node is not None
    return JobPods(
        launcher=launcher,
        workers=workers,
        hosts=merged.nodes,
        slots=merged.slots,
        slots_at=("spec", "trainer", "numProcPerNode") if own else slots,
        implementation=merged.mpi_implementation,
        launcher_runs_ranks=merged.run_launcher_as_node,
        ssh_auth_mount_path=merged.ssh_auth_mount_path,
        settings={**merged.annotations, **job.metadata.annotations},
        alone=alone,
    )


def _role(merged: Effective, runtime: Runtime, role: str) -> RolePods | None:
    """Where it stands in the runtime."""
    found = merged.job(role)
    if found is None:
        return None
    names = [one.name for one in runtime.jobset.replicated_jobs]
    at = names.index(found.name)
    path = ("spec", "template", "spec", "replicatedJobs", at, "template", "spec", "template")
    return RolePods(found.name, path, found.template, NODE_CONTAINER)
