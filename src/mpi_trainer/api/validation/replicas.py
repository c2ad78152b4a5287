"""The replica specs (V2–V8): which there are, how many pods, and each one's pod template."""

from __future__ import annotations

from msgspec.structs import replace

from mpi_trainer.api.defaults import NEVER, ON_FAILURE
from mpi_trainer.api.errors import INVALID, UNKNOWN, FieldError, Path
from mpi_trainer.api.kinds.labels import MPIJOB_POD_LABELS, reserved_errors
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, ReplicaSpec
from mpi_trainer.api.kinds.pods import PodTemplate, TemplateView
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.validation import containers, resources, rules, security, volumes
from mpi_trainer.api.validation.worker_limits import MOST_WORKERS
from mpi_trainer.api.yaml.decode import decode

SPECS = ("spec", "mpiReplicaSpecs")
RESTART_POLICIES = (NEVER, ON_FAILURE)

_ROLES = (LAUNCHER, WORKER)


def errors(job: MPIJob) -> rules.Errors:
    specs = job.spec.mpi_replica_specs
    if specs is None:
        remedy = "add mpiReplicaSpecs with a Launcher, and a Worker for more than one pod"
        yield rules.required(SPECS, "must be set", remedy)
        return
    slips = {name: nearest(name, _ROLES) for name in specs if name not in _ROLES}
    for name, meant in slips.items():
        remedy = f"did you mean `{meant}`?" if meant else "use Launcher and Worker only"
        rule = "a job has a Launcher and a Worker, no other replicas"
        yield FieldError((*SPECS, name), UNKNOWN, rule=rule, remedy=remedy)
    if LAUNCHER not in specs and LAUNCHER not in slips.values():
        remedy = "add a Launcher with the container that calls mpirun"
        yield rules.required((*SPECS, LAUNCHER), "a job needs a launcher", remedy)
    for name in _ROLES:
        if name in specs:
            yield from _replica(job, name, specs[name])


def _replica(job: MPIJob, name: str, spec: ReplicaSpec) -> rules.Errors:
    path = (*SPECS, name, "replicas")
    if spec.replicas is None:
        yield rules.required(path, "must be set", "set replicas to the number of pods")
    elif name == LAUNCHER and spec.replicas != 1:
        yield FieldError(path, INVALID, spec.replicas, "must be 1", "a job has one launcher pod")
    elif name == WORKER:
        remedy = "set replicas to the number of worker pods"
        yield from rules.at_least(path, spec.replicas, 1, remedy)
        if spec.replicas > MOST_WORKERS:
            rule = f"must be at most {MOST_WORKERS}: a ConfigMap has no room for more host names"
            yield FieldError(path, INVALID, spec.replicas, rule, "use fewer, larger workers")
    path = (*SPECS, name, "restartPolicy")
    yield from rules.one_of(path, spec.restart_policy, RESTART_POLICIES)
    yield from _template(job, name, spec.template)


def _template(job: MPIJob, role: str, template: PodTemplate) -> rules.Errors:
    path: Path = (*SPECS, role, "template")
    found = decode(TemplateView, template.content)
    for error in found.errors:
        yield replace(error, path=(*path, *error.path))
    view = found.value
    yield from rules.label_map((*path, "metadata", "labels"), view.metadata.labels)
    yield from rules.annotation_map((*path, "metadata", "annotations"), view.metadata.annotations)
    labels = view.metadata.labels
    yield from reserved_errors((*path, "metadata", "labels"), labels, MPIJOB_POD_LABELS)
    yield from reserved_errors((*path, "metadata", "annotations"), view.metadata.annotations)
    yield from containers.errors((*path, "spec"), view.spec)
    yield from volumes.errors((*path, "spec"), view.spec, volumes.added_by_mpijob(job, role))
    yield from security.errors((*path, "spec"), view.spec)
    yield from resources.overhead((*path, "spec"), view.spec)
