"""MPIJob v1, v1alpha2 and v1alpha1 → v2beta1 (API-4).

Guarantee: what comes out passes our admission, or `errors` says why not, at fields of the job that
went in where it is its structure that is wrong. The policies of v1 are the same ones in another
place; of v1alpha1 workers are counted from processing units, as its operator did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from mpi_trainer.api.errors import FieldError, Path
from mpi_trainer.api.kinds import mpijob
from mpi_trainer.api.kinds.annotations import ONE_JOB
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, ReplicaSpec
from mpi_trainer.api.validation import size
from mpi_trainer.api.yaml import load
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.migrate import legacy_alpha, legacy_pods, mentions
from mpi_trainer.migrate.legacy_kinds import V1ALPHA1, V1Alpha1Job, V1Job
from mpi_trainer.migrate.report import (
    CARRIED,
    CHANGED,
    LOST,
    TIED,
    TIES,
    Converted,
    FieldReport,
    Object,
    complete,
)

IMPLEMENTATIONS = {"OpenMPI": "OpenMPI", "IntelMPI": "Intel", "Intel": "Intel", "MPICH": "MPICH"}
RESTARTS = {"Always": "OnFailure", "ExitCode": "OnFailure"}
_SPECS: Path = ("spec", "mpiReplicaSpecs")
MOVED = ("cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds")
LATER = (
    "mpiImplementation",
    "sshAuthMountPath",
    "launcherCreationPolicy",
    "runLauncherAsWorker",
)
"""fields of v2beta1 that files of v1 have too"""


def to_v2beta1(data: Mapping[str, Any]) -> Converted:
    """An older MPIJob as plain data; never raises for what a user can write."""
    meta = data.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    name = str(meta.get("name") or meta.get("generateName") or "")
    version = str(data.get("apiVersion"))
    made = Converted(mpijob.KIND, version, name, str(meta.get("namespace") or ""))
    wrong = tuple(size.errors(data))
    if wrong:
        return replace(made, errors=wrong)
    spec, errors, told = from_v1alpha1(data) if version == V1ALPHA1 else _v1(data)
    if errors:
        return replace(made, errors=errors)
    job: Object = {
        "apiVersion": mpijob.API_VERSION,
        "kind": mpijob.KIND,
        "metadata": _metadata(meta),
        "spec": spec,
    }
    wrong = load.job(job).errors
    if wrong:
        return replace(made, errors=wrong)
    return replace(made, objects=(job,), fields=complete(data, (*_common(data), *told)))


Made = tuple[Object, tuple[FieldError, ...], tuple[FieldReport, ...]]


def _v1(data: Mapping[str, Any]) -> Made:
    found = decode(V1Job, data)
    if found.errors:
        return {}, found.errors, ()
    given, job = data.get("spec") or {}, found.value.spec
    main = job.main_container or ""
    roles = job.mpi_replica_specs or {}
    raw = given.get("mpiReplicaSpecs") or {}
    specs = {role: _replica(role, one, main) for role, one in roles.items()}
    spec = _spec(given)
    if job.mpi_replica_specs is not None:
        spec["mpiReplicaSpecs"] = specs
    return spec, (), (*_fields(given), *_roles(roles, raw))


def from_v1alpha1(data: Mapping[str, Any]) -> Made:
    """The spec as v2beta1, or errors, and a report of the fields; nothing is validated here."""
    found = decode(V1Alpha1Job, data)
    if found.errors:
        return {}, found.errors, ()
    given, job = data.get("spec") or {}, found.value.spec
    workers = legacy_alpha.workers(job)
    if isinstance(workers, FieldError):
        return {}, (workers,), ()
    main = job.main_container or ""
    launcher = legacy_alpha.launcher_pod(legacy_pods.launcher_pod(job.template, main), job)
    worker = legacy_alpha.worker_pod(legacy_pods.worker_pod(job.template), job, workers)
    spec = _spec(given)
    spec["slotsPerWorker"] = job.slots_per_worker or max(workers.units, 1)
    spec["mpiReplicaSpecs"] = {
        LAUNCHER: {"replicas": 1, "template": launcher},
        WORKER: {"replicas": workers.count, "template": worker},
    }
    told = (*_fields(given), *legacy_alpha.reports(given, workers))
    path: Path = ("spec", "template")
    mentioned = mentions.old_labels(job.template, path)
    return spec, (), (*told, legacy_pods.ssh_report(path), *mentioned)


def _spec(given: Mapping[str, Any]) -> Object:
    """What v1 and v1alpha1 have in common, where v2beta1 has it. A runPolicy wins."""
    policy = {name: given[name] for name in MOVED if given.get(name) is not None}
    policy |= {k: v for k, v in (given.get("runPolicy") or {}).items() if v is not None}
    distribution = given.get("mpiDistribution")
    wanted = {
        "slotsPerWorker": given.get("slotsPerWorker"),
        "runPolicy": policy or None,
        "mpiImplementation": IMPLEMENTATIONS.get(distribution or "", distribution),
    }
    wanted |= {name: given[name] for name in LATER if given.get(name) is not None}
    return {name: value for name, value in wanted.items() if value is not None}


def _replica(role: str, one: ReplicaSpec, main: str) -> Object:
    as_launcher = role == LAUNCHER
    pod = legacy_pods.launcher_pod(one.template, main)
    policy = one.restart_policy
    wanted = {
        "replicas": one.replicas,
        "restartPolicy": RESTARTS.get(policy or "", policy),
        "template": pod if as_launcher else legacy_pods.worker_pod(one.template),
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _metadata(meta: Mapping[str, Any]) -> Object:
    """What a new object may have: not what the server or a controller wrote."""
    kept = ("name", "generateName", "namespace", "labels")
    made = {key: meta[key] for key in kept if meta.get(key)}
    notes = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in ONE_JOB}
    return {**made, **({"annotations": notes} if notes else {})}


def _common(data: Mapping[str, Any]) -> Iterator[FieldReport]:
    yield FieldReport(("apiVersion",), CHANGED, "apiVersion", mpijob.API_VERSION)
    yield FieldReport(("kind",), CARRIED, "kind")
    kept = _metadata(data.get("metadata") or {})
    for key, value in (data.get("metadata") or {}).items():
        path: Path = ("metadata", key)
        if key == "annotations" and isinstance(value, Mapping):
            for name in value:
                fate = CARRIED if name in kept.get("annotations", {}) else LOST
                note = "" if fate == CARRIED else "it says something of the old object alone"
                yield FieldReport((*path, name), fate, "metadata.annotations", note)
        elif key in kept:
            yield FieldReport(path, CARRIED, f"metadata.{key}")
        elif key in TIES and value:
            yield FieldReport(path, LOST, "", *TIED)
        elif value not in (None, "", [], {}, 0) and key in _SERVERS:
            yield FieldReport(path, LOST, note="the API server writes it")
    if data.get("status"):
        yield FieldReport(("status",), LOST, note="a new job begins with an empty status")


_SERVERS = frozenset(ObjectMeta.__struct_encode_fields__)


def _fields(given: Mapping[str, Any]) -> Iterator[FieldReport]:
    policy = given.get("runPolicy") or {}
    yield from _moved(given, policy)
    for name, value in policy.items():
        if value is not None:
            yield FieldReport(("spec", "runPolicy", name), CARRIED, f"spec.runPolicy.{name}")
    if given.get("slotsPerWorker") is not None:
        yield FieldReport(("spec", "slotsPerWorker"), CARRIED, "spec.slotsPerWorker")
    yield from _later(given)
    if given.get("mainContainer") is not None:
        note = "the first container is the main one, and it is put first"
        yield FieldReport(("spec", "mainContainer"), CHANGED, note=note)


def _later(given: Mapping[str, Any]) -> Iterator[FieldReport]:
    """Fields of v2beta1, and the one that was called otherwise before it."""
    for name in LATER:
        if given.get(name) is not None:
            note = "as v2beta1 has it; older API servers left it out"
            yield FieldReport(("spec", name), CARRIED, f"spec.{name}", note)
    if given.get("mpiDistribution") is not None:
        path: Path = ("spec", "mpiDistribution")
        if given.get("mpiImplementation") is None:
            yield FieldReport(path, CARRIED, "spec.mpiImplementation")
        else:
            yield FieldReport(path, LOST, note="spec.mpiImplementation counts")


def _moved(given: Mapping[str, Any], policy: Mapping[str, Any]) -> Iterator[FieldReport]:
    """Fields that are below runPolicy today."""
    for name in MOVED:
        value = given.get(name)
        if value is None:
            continue
        if policy.get(name) not in (None, value):
            note = f"spec.runPolicy.{name} says {policy[name]}, and counts"
            yield FieldReport(("spec", name), LOST, note=note)
        else:
            yield FieldReport(("spec", name), CARRIED, f"spec.runPolicy.{name}")


def _roles(roles: Mapping[str, ReplicaSpec], raw: Mapping[str, Any]) -> Iterator[FieldReport]:
    for role, one in roles.items():
        path: Path = (*_SPECS, role)
        if raw[role].get("replicas") is not None:
            yield FieldReport((*path, "replicas"), CARRIED, f"spec.mpiReplicaSpecs.{role}.replicas")
        policy = one.restart_policy
        if policy in RESTARTS:
            note = f"{RESTARTS[policy]}; each failure counts against backoffLimit"
            remedy = "annotate the job with mpi-trainer.opendatahub.io/pod-failure-policy"
            more = remedy if policy == "ExitCode" else ""
            yield FieldReport((*path, "restartPolicy"), CHANGED, "restartPolicy", note, more)
        elif policy is not None:
            yield FieldReport((*path, "restartPolicy"), CARRIED, "restartPolicy")
        if raw[role].get("template"):
            about = legacy_pods.launcher_reports if role == LAUNCHER else legacy_pods.worker_reports
            yield from about(one.template, (*path, "template"))
            yield from mentions.old_labels(one.template, (*path, "template"))
