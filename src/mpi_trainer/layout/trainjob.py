"""`layout`: an MPI TrainJob to its Layout. Host names, their order and the files are upstream's.

A pod is called by its host name, `<job>-<replicated job>-<replica>-<index>`, which stays the same
when its Job makes it anew. The agent is chosen by annotations as for MPIJob, of the job or of its
runtime's template. Danger: for validated MPI jobs only; torch and plain ones have no hosts.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpi_trainer.api.effective.combine import LAUNCHER, NODE, Effective, ReplicatedJob
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.labels import LABEL_TRAINJOB
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.layout.agent.choice import Choice, choice
from mpi_trainer.layout.hosts import host_name
from mpi_trainer.layout.model import Host, Layout
from mpi_trainer.layout.mpi_layout import Role, Topology, TopologyPod, mpi_layout, upstream_keys


def layout(
    job: TrainJob, effective: Effective, domain: str = "", chosen: Choice | None = None
) -> Layout:
    """What an MPI job needs in order to run; `chosen` as for MPIJobs."""
    return mpi_layout(_topology(job, effective, domain), chosen or choose(job, effective))


def choose(job: TrainJob, effective: Effective) -> Choice:
    """How much of the agent the job gets."""
    launcher, nodes = (_template(effective.job(role)) for role in (LAUNCHER, NODE))
    return choice(_annotations(job, effective), launcher, nodes, NODE_CONTAINER)


def hostnames(job: TrainJob, replicated: ReplicatedJob) -> Iterator[str]:
    for replica in range(replicated.replicas):
        for index in range(replicated.count):
            yield host_name(job.name, replicated.name, replica, index)


def _topology(job: TrainJob, effective: Effective, domain: str) -> Topology:
    return Topology(
        name=job.name,
        namespace=job.namespace,
        subdomain=effective.subdomain,
        implementation=effective.mpi_implementation,
        slots=effective.slots,
        hosts=tuple(_hosts(job, effective, domain)),
        launcher=_role(job, effective.job(LAUNCHER)),
        workers=_role(job, effective.job(NODE)),
        keys=upstream_keys(effective.ssh_auth_mount_path),
        annotations=_annotations(job, effective),
    )


def _hosts(job: TrainJob, effective: Effective, domain: str) -> Iterator[Host]:
    """Where ranks go, in the order of the template."""
    roles = {NODE, LAUNCHER} if effective.run_launcher_as_node else {NODE}
    suffix = f".{job.namespace}.svc.{domain}" if domain else ""
    for replicated in effective.jobs:
        if replicated.role in roles:
            for name in hostnames(job, replicated):
                yield Host(name, f"{name}.{effective.subdomain}{suffix}", effective.slots)


def _role(job: TrainJob, replicated: ReplicatedJob | None) -> Role:
    labels = {LABEL_TRAINJOB: job.name}
    names = () if replicated is None else tuple(hostnames(job, replicated))
    pods = tuple(TopologyPod(name, labels) for name in names)
    return Role(pods, _template(replicated), container=NODE_CONTAINER)


def _template(replicated: ReplicatedJob | None) -> PodTemplate:
    return PodTemplate() if replicated is None else replicated.template


def _annotations(job: TrainJob, effective: Effective) -> dict[str, str]:
    return {**effective.annotations, **job.metadata.annotations}
