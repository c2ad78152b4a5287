"""The small job of a smoke run: two pods with one rank each, made from a job or a runtime.

Image, variables, volumes, security, queue, annotations and what mpirun is told stay the job's own;
what it runs, how many pods and how long does not. The pods go to different nodes where the
scheduler can do that. Pure: name and time come from the caller.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER as LAUNCHER_JOB
from mpi_trainer.api.effective.combine import NODE, ReplicatedJob, effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.annotations import CODE, ONE_JOB, TTL
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_JOBSET
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import (
    LAUNCHER,
    WORKER,
    MPIJob,
    MPIJobSpec,
    ReplicaSpec,
    RunPolicy,
)
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import RuntimePatch, RuntimeRef, Trainer, TrainJob, TrainJobSpec
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.check.report import HOSTS
from mpi_trainer.layout import package_files
from mpi_trainer.layout.launch import LAUNCHERS

replace = msgspec.structs.replace

KEPT_SECONDS: Final = 600
"""that the job is there after its end, where nobody removes it"""
MANAGER: Final = "mpi-trainer.opendatahub.io/check"
LONGEST_NAME: Final = 20

# Options of mpirun that a smoke run keeps, with how many words follow each.
_OPTIONS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("allow-run-as-root", "oversubscribe", "disable-auto-cleanup"), 0),
    **dict.fromkeys(("x", "prefix", "bind-to", "iface", "launcher", "launcher-exec"), 1),
    **dict.fromkeys(("envlist", "genvlist", "rmk", "bootstrap", "pmi-port"), 1),
    **dict.fromkeys(("mca", "gmca", "prtemca", "pmixmca", "omca", "env", "genv"), 2),
}
# Those that say how many ranks there are and where: its own matter.
_RANKS: Final[Mapping[str, int]] = dict.fromkeys(
    ("n", "np", "c", "N", "npernode", "ppn", "perhost", "map-by", "rank-by", "hostfile", "H"), 1
)


def smoke_name(name: str, suffix: str) -> str:
    return f"check-{name[:LONGEST_NAME].strip('.-').replace('.', '-') or 'job'}-{suffix}"


def smoke_mpijob(job: MPIJob, name: str, seconds: int, *, allow_root: bool = False) -> MPIJob:
    """Of a job that has workers. `allow_root`: no command is known that does so itself."""
    words = _main(job.launcher.template)
    policy = job.spec.run_policy.scheduling_policy
    alone = policy and replace(policy, min_available=None, min_resources=None)
    launcher = _with_command(job.launcher.template, command(words, allow_root=allow_root))
    spread = _spread(LABEL_JOB, name)
    ranks = bool(job.spec.run_launcher_as_worker)
    spec = replace(
        job.spec,
        slots_per_worker=1,
        run_policy=RunPolicy(
            backoff_limit=0,
            active_deadline_seconds=seconds,
            ttl_seconds_after_finished=KEPT_SECONDS,
            scheduling_policy=alone or None,
        ),
        mpi_replica_specs={
            LAUNCHER: replace(
                job.launcher,
                template=_with_affinity(launcher, spread) if ranks else launcher,
                restart_policy="Never",
            ),
            WORKER: replace(
                job.worker,
                replicas=HOSTS - ranks,
                template=_with_affinity(job.worker.template, spread),
                restart_policy="Never",
            ),
        },
    )
    return MPIJob(metadata=_metadata(job.metadata, name), spec=spec)


def smoke_trainjob(job: TrainJob, runtime: Runtime, name: str, seconds: int) -> TrainJob:
    """Of a job whose runtime is there under its name, and starts ranks by MPI."""
    trainer = replace(
        job.trainer,
        command=command(_words(job, runtime), allow_root=not job.trainer.command),
        args=None,
        num_nodes=HOSTS,
        num_proc_per_node=1,
    )
    patches = job.spec.runtime_patches
    if not any(one.pod and one.pod.affinity for patch in patches for one in patch.replicated_jobs):
        patches = (*patches, _spreading(runtime, name))
    spec = replace(
        job.spec,
        trainer=trainer,
        runtime_patches=patches,
        suspend=None,
        active_deadline_seconds=seconds,
    )
    meta = _metadata(job.metadata, name)
    notes = {**meta.annotations, TTL: str(KEPT_SECONDS)}
    return TrainJob(metadata=replace(meta, annotations=notes), spec=spec)


def job_of(runtime: Runtime, namespace: str) -> TrainJob:
    """A job that says nothing but which runtime it has."""
    ref = RuntimeRef(name=runtime.name, kind=runtime.kind)
    meta = ObjectMeta(name=runtime.name, namespace=namespace)
    return TrainJob(metadata=meta, spec=TrainJobSpec(runtime_ref=ref, trainer=Trainer()))


def as_mpijob(job: TrainJob, runtime: Runtime) -> MPIJob:
    """An MPIJob with the pods of a TrainJob whose runtime is in a file only."""
    merged = effective(job, runtime)
    launcher, node = merged.job(LAUNCHER_JOB), merged.job(NODE)
    assert launcher is not None and node is not None, "validated"
    meta = replace(
        job.metadata,
        annotations={**merged.annotations, **job.metadata.annotations},
    )
    return MPIJob(
        metadata=meta,
        spec=MPIJobSpec(
            slots_per_worker=1,
            run_launcher_as_worker=merged.run_launcher_as_node,
            mpi_implementation=merged.mpi_implementation,
            ssh_auth_mount_path=merged.ssh_auth_mount_path,
            mpi_replica_specs={
                LAUNCHER: ReplicaSpec(1, _bare(launcher), "Never"),
                WORKER: ReplicaSpec(node.count, _bare(node), "Never"),
            },
        ),
    )


def command(words: tuple[str, ...], *, allow_root: bool) -> tuple[str, ...]:
    """What the launcher runs; `words` are the job's own command."""
    script = package_files.text("smoke/start.sh")
    program = package_files.text("smoke/measure.py")
    root = "allow" if allow_root else "as-is"
    # A kubelet reads `$(NAME)` and `$$` in a command; the job's own words are meant so.
    script, program = script.replace("$", "$$"), program.replace("$", "$$")
    return ("sh", "-c", script, "check", mpirun(words), root, program, *options(words))


def mpirun(words: tuple[str, ...]) -> str:
    """How the job calls it; by its usual name where a script of its own does that."""
    known = bool(words) and words[0].rpartition("/")[2] in LAUNCHERS - {"horovodrun", "deepspeed"}
    return words[0] if known else "mpirun"


def options(words: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the job's mpirun that hold for any program, up to one that is not known."""
    if not words or mpirun(words) != words[0]:
        return ()
    found: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        name = word.lstrip("-")
        if not word.startswith("-") or name not in {*_OPTIONS, *_RANKS}:
            break
        more = tuple(itertools.islice(rest, _OPTIONS.get(name, 1)))
        if name in _OPTIONS:
            found += (word, *more)
    return tuple(found)


def _words(job: TrainJob, runtime: Runtime) -> tuple[str, ...]:
    if job.trainer.command:
        return job.trainer.command
    launcher = effective(job, runtime).job(LAUNCHER_JOB)
    return _main(launcher.template, NODE_CONTAINER) if launcher else ()


def _main(template: PodTemplate, name: str = "") -> tuple[str, ...]:
    containers = template.view.spec.containers
    named = (one for one in containers if one.name == name)
    main = next(named, containers[0] if containers else None)
    return (*main.command, *main.args) if main else ()


def _with_command(template: PodTemplate, words: tuple[str, ...]) -> PodTemplate:
    content = template.content
    main = content["spec"]["containers"][0]
    content["spec"]["containers"][0] = {**main, "command": [*words], "args": []}
    return PodTemplate.of(content)


def _spread(label: str, name: str) -> dict[str, Any]:
    """A wish of the scheduler, not a demand: a cluster may have one node."""
    term = {
        "labelSelector": {"matchLabels": {label: name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"weight": 100, "podAffinityTerm": term}


def _with_affinity(template: PodTemplate, wish: Mapping[str, Any]) -> PodTemplate:
    content = template.content
    pod = content["spec"]
    affinity = dict(pod.get("affinity") or {})
    apart = dict(affinity.get("podAntiAffinity") or {})
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    apart[field] = [*(apart.get(field) or ()), wish]
    return PodTemplate.of(
        {**content, "spec": {**pod, "affinity": {**affinity, "podAntiAffinity": apart}}}
    )


def _spreading(runtime: Runtime, name: str) -> RuntimePatch:
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity = {"podAntiAffinity": {field: [_spread(LABEL_JOBSET, name)]}}
    pods = {"template": {"spec": {"template": {"spec": {"affinity": affinity}}}}}
    names = [one.name for one in runtime.jobset.replicated_jobs]
    jobs = [{"name": one, **pods} for one in (LAUNCHER_JOB, NODE) if one in names]
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    return decode(RuntimePatch, {"manager": MANAGER, "trainingRuntimeSpec": spec}).value


def _bare(one: ReplicatedJob) -> PodTemplate:
    """The template with the container that runs the job first, and without a name of its own."""
    content = one.template.content
    pod = content.get("spec") or {}
    sorted_ = sorted(pod.get("containers") or (), key=lambda c: c.get("name") != NODE_CONTAINER)
    kept = {key: value for key, value in pod.items() if key != "restartPolicy"}
    return PodTemplate.of({**content, "spec": {**kept, "containers": sorted_}})


def _metadata(meta: ObjectMeta, name: str) -> ObjectMeta:
    one_job = ONE_JOB | {CODE}
    notes = {key: value for key, value in meta.annotations.items() if key not in one_job}
    return ObjectMeta(name=name, namespace=meta.namespace, labels=meta.labels, annotations=notes)
