"""TrainJobs as the interfaces make and change them.

`trainjob_from_spec` describes an MPIJobSpec as a TrainJob with a runtime that we ship, where a
TrainJob can say all of it. `with_env` and `with_mounts` are what `odh run` adds to a job from a
file: variables go into the job, where they reach every node; mounts into this run's copy of its
runtime.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds import managers
from mpi_trainer.api.kinds.annotations import TTL
from mpi_trainer.api.kinds.mpijob import RunPolicy
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import API_VERSION, KIND, TrainJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.layout.launch import mpi_command
from mpi_trainer.local.jobs import shipped_runtimes
from mpi_trainer.sdk.job.new import HostMount, add_mounts
from mpi_trainer.sdk.job.specs import (
    LOCAL_IMAGE,
    MPIJobSpec,
    ReplicaSpec,
    ResourceRequirements,
    amounts,
    literal,
    variables,
    volume_mount,
    volume_source,
)

ANY_NODE = "-cpu"
"""how the names of runtimes end that ask nothing of a node"""

replace = msgspec.structs.replace


def trainjob_from_spec(spec: MPIJobSpec, name: str, namespace: str) -> TrainJob | None:
    """The job as a TrainJob, whose launcher is one of its nodes; None where that loses something.

    One node alone stays an MPIJob: the public API would make two of it.
    """
    runtime = runtime_for(spec.mpi_implementation)
    nodes = spec.ranks // max(spec.slots, 1)
    if runtime is None or nodes < 2 or not _alike(spec) or not _simple(spec.run_policy):
        return None
    given = tuple(spec.launcher.command)
    command = given if spec.as_is or not given else mpi_command(given, spec.ranks)
    policy = spec.run_policy
    trainer: dict[str, Any] = {
        "numNodes": nodes,
        "numProcPerNode": spec.slots,
        "command": [literal(word) for word in command],
        "env": variables(spec.worker.env),
        "image": "" if spec.worker.image == LOCAL_IMAGE else spec.worker.image,
    }
    if needs := amounts(spec.worker.resources):
        trainer["resourcesPerNode"] = {"requests": needs, "limits": needs}
    ttl = policy.ttl_seconds_after_finished
    wire: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {} if ttl is None else {TTL: str(ttl)},
        },
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": {field: value for field, value in trainer.items() if value},
            "runtimePatches": _patches(spec.worker),
            "suspend": policy.suspend,
            "activeDeadlineSeconds": policy.active_deadline_seconds,
        },
    }
    return decode(TrainJob, wire).value


def runtime_for(implementation: str) -> str | None:
    """The first of our runtimes that starts this MPI on any node."""
    for name in shipped_runtimes.names():
        found = shipped_runtimes.runtime(name) if name.endswith(ANY_NODE) else None
        if found is not None and found.mpi_implementation == implementation:
            return name
    return None


def _alike(spec: MPIJobSpec) -> bool:
    """Whether launcher and workers differ in nothing but the command."""
    launcher, worker = spec.launcher, spec.worker
    bare = replace(launcher, command=(), replicas=worker.replicas, resources=worker.resources)
    return (
        bare == worker
        and launcher.resources in (ResourceRequirements(), worker.resources)
        and not worker.restart_policy
        and not spec.launcher_creation_policy
    )


def _simple(policy: RunPolicy) -> bool:
    """Whether a TrainJob has a word for all that it asks."""
    return (
        policy.clean_pod_policy in (None, "Running")
        and policy.backoff_limit in (None, 0)
        and policy.scheduling_policy is None
        and policy.managed_by is None
    )


def _patches(pods: ReplicaSpec) -> list[dict[str, Any]]:
    """Volumes and node selectors, for launcher and nodes alike."""
    if not pods.volume_mounts and not pods.node_selector:
        return []
    named = [(f"volume-{n}", mount) for n, mount in enumerate(pods.volume_mounts)]
    mounts = [volume_mount(mount, name) for name, mount in named]
    pod = {
        "nodeSelector": dict(pods.node_selector),
        "volumes": [{"name": name, **volume_source(mount)} for name, mount in named],
        "containers": [{"name": NODE_CONTAINER, "volumeMounts": mounts}] if mounts else [],
    }
    template = {"spec": {"template": {"spec": {k: v for k, v in pod.items() if v}}}}
    jobs = [{"name": role, "template": template} for role in ("launcher", "node")]
    return [
        {
            "manager": managers.SDK,
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
        }
    ]


def with_env(job: TrainJob, env: tuple[tuple[str, str], ...]) -> TrainJob:
    """The job with these variables over its own."""
    if not env:
        return job
    given = dict(env)
    own = (one for one in job.trainer.env if one.get("name") not in given)
    trainer = replace(job.trainer, env=(*own, *variables(given)))
    return replace(job, spec=replace(job.spec, trainer=trainer))


def with_mounts(runtime: Runtime, mounts: tuple[HostMount, ...]) -> Runtime:
    """The runtime with these directories shown to the container that runs the job, in every pod."""
    if not mounts:
        return runtime
    jobs = [
        _job_with_mounts(one, mounts)
        for one in runtime.spec.template.spec.get("replicatedJobs") or ()
    ]
    template = replace(
        runtime.spec.template, spec={**runtime.spec.template.spec, "replicatedJobs": jobs}
    )
    return replace(runtime, spec=replace(runtime.spec, template=template))


def _job_with_mounts(job: Any, mounts: tuple[HostMount, ...]) -> Any:
    copy = msgspec.json.decode(msgspec.json.encode(job))
    pod = copy["template"]["spec"]["template"]["spec"]
    pod["containers"].sort(key=lambda one: one["name"] != NODE_CONTAINER)
    add_mounts(pod, mounts)
    return copy
