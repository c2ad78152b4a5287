"""What a TrainJob is once its runtime, the patches and its own fields are put together.

`effective(job, runtime)` is the one place where that is decided; layout, rendering, validation and
the local backend all start from its value. Names and counts are exactly upstream's, because Kueue
computes them again from the same objects. Inside the pods of an MPI job three things go further:
image, variables and resources reach the workers too, and the command reaches the launcher only.
Danger: a runtime whose template is not structurally sound makes it raise; validate first.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING
from typing import Any

import msgspec
from msgspec.structs import replace

from mpi_trainer.api import quantities
from mpi_trainer.api.defaults import SSH_AUTH_MOUNT_PATH
from mpi_trainer.api.effective import overrides, patches, torchtune
from mpi_trainer.api.effective.overrides import NODE_CONTAINER, TrainerFields
from mpi_trainer.api.effective.torchtune import Devices
from mpi_trainer.api.kinds.jobset import JobSetView, ReplicatedJobView
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.kinds.runtime import MPI, TORCH, XGBOOST, Runtime, jobset_view
from mpi_trainer.api.kinds.trainjob import Source, TrainJob

LAUNCHER = "launcher"
NODE = "node"
TRAINER = "trainer"
DATASET = "dataset-initializer"
MODEL = "model-initializer"
OTHER = "other"

AUTO = 0
MEETING_PORT = 29500
"""of the first node, where there is no MPI"""

_GPU_PREFIXES = ("nvidia.com/mig-", "habana.ai/gaudi")

Raw = Mapping[str, Any]


class ReplicatedJob(msgspec.Struct, frozen=True):
    """One job of the JobSet. `after`: the jobs that must have completed before it begins. `rest`:
    the replicated job as merged, less its pod template."""

    name: str
    role: str
    ancestor: str
    count: int
    replicas: int
    template: PodTemplate
    after: tuple[str, ...]
    rest: Raw

    def wire(self, template: Raw | None = None) -> dict[str, Any]:
        """The entry under `replicatedJobs`, with `template` in place of its own pod template."""
        job: Raw = self.rest.get("template") or {}
        spec = {
            **(job.get("spec") or {}),
            "parallelism": self.count,
            "completions": self.count,
            "template": self.template.content if template is None else template,
        }
        return {**self.rest, "replicas": self.replicas, "template": {**job, "spec": spec}}


class Effective(msgspec.Struct, frozen=True):
    """`slots`: ranks per node; `AUTO` where torchrun finds out itself.

    `nodes`: the pods that run ranks, the launcher among them where it does. `rest`: the JobSet's
    spec less its replicated jobs. `labels` and `annotations` are the JobSet's.
    """

    name: str
    policy: str
    jobs: tuple[ReplicatedJob, ...]
    nodes: int
    slots: int
    mpi_implementation: str
    ssh_auth_mount_path: str
    run_launcher_as_node: bool
    subdomain: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    rest: Raw

    def job(self, role: str) -> ReplicatedJob | None:
        """The first job of that role."""
        return next((job for job in self.jobs if job.role == role), None)

    @property
    def pods(self) -> int:
        return sum(job.count * job.replicas for job in self.jobs)


def effective(job: TrainJob, runtime: Runtime) -> Effective:
    template = runtime.spec.template
    changes = job.spec.runtime_patches
    given = [
        patches.with_patches(one, changes) for one in template.spec.get("replicatedJobs") or ()
    ]
    view = jobset_view({**template.spec, "replicatedJobs": given})
    trainer = next((one for one in view.replicated_jobs if one.ancestor == TRAINER), None)
    jobs = tuple(
        _replicated(job, runtime, raw, one, one is trainer)
        for one, raw in zip(view.replicated_jobs, given, strict=True)
    )
    nodes, slots = _nodes(runtime, jobs), _slots(job, runtime, jobs)
    subdomain = view.network.subdomain or job.name
    if runtime.policy == TORCH and torchtune.is_used(job):
        found = Devices(nodes, slots, gpus(jobs))
        jobs = _tuned(job, found, jobs, subdomain, dict(zip(_names(view), given, strict=True)))
    return Effective(
        name=job.name,
        policy=runtime.policy,
        jobs=jobs,
        nodes=nodes,
        slots=slots,
        mpi_implementation=runtime.mpi_implementation,
        ssh_auth_mount_path=runtime.mpi.ssh_auth_mount_path or SSH_AUTH_MOUNT_PATH,
        run_launcher_as_node=bool(runtime.mpi.run_launcher_as_node),
        subdomain=subdomain,
        labels={**template.metadata.labels, **patches.jobset_metadata(changes, "labels")},
        annotations={
            **template.metadata.annotations,
            **patches.jobset_metadata(changes, "annotations"),
        },
        rest={key: value for key, value in template.spec.items() if key != "replicatedJobs"},
    )


def _replicated(
    job: TrainJob, runtime: Runtime, raw: Raw, view: ReplicatedJobView, first: bool
) -> ReplicatedJob:
    role = _role(runtime.policy, view)
    pod = overrides.with_trainer(
        view.template.spec.template.content, job.trainer, _cut(runtime, view, role)
    )
    source = _source(job, role)
    if source is not None:
        pod = overrides.with_source(pod, source, role)
    return ReplicatedJob(
        name=view.name,
        role=role,
        ancestor=view.ancestor,
        count=_count(job, runtime, view, first),
        replicas=1 if view.ancestor in (TRAINER, DATASET, MODEL) else view.replicas,
        template=PodTemplate.of(pod),
        after=tuple(one.name for one in view.depends_on if one.status == "Complete"),
        rest=_without_pod(raw),
    )


def _role(policy: str, view: ReplicatedJobView) -> str:
    if policy == MPI and view.name in (LAUNCHER, NODE):
        return view.name
    return view.ancestor if view.ancestor in (TRAINER, DATASET, MODEL) else OTHER


def _cut(runtime: Runtime, view: ReplicatedJobView, role: str) -> TrainerFields:
    labelled = view.ancestor == TRAINER
    if role == LAUNCHER:
        runs_ranks = bool(runtime.mpi.run_launcher_as_node)
        return TrainerFields(image=True, command=True, env=True, resources=runs_ranks or labelled)
    if role == NODE:
        return TrainerFields(image=True, env=True, resources=True)
    return TrainerFields(image=labelled, command=labelled, env=labelled, resources=labelled)


def _source(job: TrainJob, role: str) -> Source | None:
    wanted = job.spec.initializer
    if wanted is None or role not in (DATASET, MODEL):
        return None
    return wanted.dataset if role == DATASET else wanted.model


def _count(job: TrainJob, runtime: Runtime, view: ReplicatedJobView, first: bool) -> int:
    """Pods of one replica; `first`: it is the first job labelled as the trainer's."""
    policy = runtime.spec.ml_policy
    count = view.template.spec.parallelism
    if view.ancestor == TRAINER and policy is not None:
        count = policy.num_nodes
    wanted = job.trainer.num_nodes
    if wanted is not None and runtime.policy == MPI and view.name == NODE:
        return max(wanted - 1, 1) if runtime.mpi.run_launcher_as_node else wanted
    if wanted is not None and runtime.policy != MPI and first:
        return wanted
    return max(1 if count is None else count, 1)


def _nodes(runtime: Runtime, jobs: tuple[ReplicatedJob, ...]) -> int:
    roles = {TRAINER}
    if runtime.policy == MPI:
        roles = {NODE, LAUNCHER} if runtime.mpi.run_launcher_as_node else {NODE}
    return sum(job.count * job.replicas for job in jobs if job.role in roles)


def _slots(job: TrainJob, runtime: Runtime, jobs: tuple[ReplicatedJob, ...]) -> int:
    accelerators = gpus(jobs)
    if runtime.policy == XGBOOST:
        return max(accelerators, 1)
    wanted = job.trainer.num_proc_per_node
    if wanted is not None:
        return wanted
    if runtime.policy == TORCH:
        requests, limits = _amounts(jobs)
        processors = _units(requests.get("cpu")) or _units(limits.get("cpu"))
        return AUTO if accelerators else max(processors, 1)
    slots = 1 if runtime.processes is None else runtime.processes
    return max(accelerators, 1) if runtime.policy == MPI and slots == 1 else slots


def _names(view: JobSetView) -> list[str]:
    return [one.name for one in view.replicated_jobs]


def _tuned(
    job: TrainJob,
    found: Devices,
    jobs: tuple[ReplicatedJob, ...],
    subdomain: str,
    given: Mapping[str, Raw],
) -> tuple[ReplicatedJob, ...]:
    """With torchtune's own command in the pods that train."""

    def tuned(one: ReplicatedJob) -> ReplicatedJob:
        if one.ancestor != TRAINER:
            return one
        pod: Raw = ((given[one.name].get("template") or {}).get("spec") or {}).get("template") or {}
        address = f"{job.name}-{one.name}-0-0.{subdomain}:{MEETING_PORT}"
        own = overrides.container(pod, NODE_CONTAINER)
        words = torchtune.command(job, found, own, address)
        return replace(
            one, template=PodTemplate.of(overrides.with_command(one.template.content, words))
        )

    return tuple(tuned(one) for one in jobs)


def devices(effective: Effective) -> Devices:
    return Devices(effective.nodes, effective.slots, gpus(effective.jobs))


def gpus(jobs: tuple[ReplicatedJob, ...]) -> int:
    """Accelerators of a node."""
    requests, limits = _amounts(jobs)
    return _gpus(requests) or _gpus(limits)


def _amounts(jobs: tuple[ReplicatedJob, ...]) -> tuple[Raw, Raw]:
    """Requests and limits of a node, from the first job of nodes that has any."""
    for job in jobs:
        if job.name == NODE or job.ancestor == TRAINER:
            found = overrides.container(job.template.content, NODE_CONTAINER).get("resources")
            if found:
                return found.get("requests") or {}, found.get("limits") or {}
    return {}, {}


def _gpus(amounts: Raw) -> int:
    names = [n for n in amounts if "gpu" in n.lower() or n.startswith(_GPU_PREFIXES)]
    return sum(_units(amounts[name]) for name in names)


def _units(amount: Any) -> int:
    """Whole units, rounded up as Kubernetes does; an amount that is unreadable counts as none."""
    try:
        return int(quantities.parse(amount or 0).to_integral_value(ROUND_CEILING))
    except ValueError:
        return 0


def _without_pod(raw: Raw) -> Raw:
    job: Raw = raw.get("template") or {}
    spec: Raw = job.get("spec") or {}
    rest = {name: value for name, value in spec.items() if name != "template"}
    return {**raw, "template": {**job, "spec": rest}}
