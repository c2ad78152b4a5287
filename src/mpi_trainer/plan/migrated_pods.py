"""The pods of an MPIJob beside those of the TrainJob that it became, each by our own rendering.

What is called otherwise in both kinds (host names, the job's own volumes, the main container) is
taken as the same thing; everything else that differs is told. The last step of MIG-1: a conversion
is judged by what would run. The same comparison serves for pods that an API server answered to a
dry run, with what its admission made of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, NODE
from mpi_trainer.api.errors import field
from mpi_trainer.api.kinds.labels import without_reserved
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation.volumes import CONFIG_VOLUME
from mpi_trainer.api.yaml import load
from mpi_trainer.migrate.containers import OWN_VOLUMES, runtime_pod
from mpi_trainer.plan.objects import named, planned_mpijob, planned_trainjob
from mpi_trainer.render import names
from mpi_trainer.render.drift import drift
from mpi_trainer.render.frame import Object

_MARKS = ("hostname", "subdomain")
"""of an MPIJob's pods alone: JobSet sets them for its own"""
_TOKEN = "kube-api-access-"
_CONTAINERS = ("initContainers", "containers")

_KNOWN = {
    f"containers.{NODE}.readinessProbe": "a TrainJob is not marked when it seems stuck",
    f"volumes.{OWN_VOLUMES[CONFIG_VOLUME]}.configMap.items": "no discover_hosts.sh there",
    f"containers.{NODE}.env.OMPI_MCA_regx": "hosts have shorter names there, and need it not",
    "initContainers.mpi-prepare.env.NVIDIA_DRIVER_CAPABILITIES": "preparing needs no GPU either",
}


class PodDifference(msgspec.Struct, frozen=True):
    """`before` in the MPIJob's pods of that role, `after` in the TrainJob's; UNSET: not there.

    `known`: why every job differs there, without harm; else it is for the user to judge.
    """

    role: str
    field: str
    before: Any
    after: Any
    known: str = ""


class Pods(msgspec.Struct, frozen=True):
    """What a job's pods are made of, by role (`launcher`, `node`), and how many there are of each;
    `name` is the job's."""

    name: str
    templates: Mapping[str, Object]
    counts: Mapping[str, int]


def pod_differences(before: Mapping[str, Any], after: tuple[Object, ...]) -> list[PodDifference]:
    """`before` is the MPIJob, `after` what it became; none where that is no TrainJob."""
    old, new = pods((before,)), pods(after)
    if old is None or new is None or not any(one["kind"] == "TrainJob" for one in after):
        return []
    found = []
    for role, template in new.templates.items():
        if new.counts[role] != old.counts[role]:
            found.append(PodDifference(role, "pods", old.counts[role], new.counts[role]))
        found += differences(old.name, role, old.templates[role]["spec"], template["spec"])
    return found


def pods(objects: Sequence[Mapping[str, Any]], namespace: str = "") -> Pods | None:
    """Of an MPIJob, or of a TrainJob with its runtime; None of anything else."""
    values = [load.job(one).value for one in objects if one["kind"] == "MPIJob"]
    values += [load.runtime(one).value for one in objects if "Runtime" in one["kind"]]
    values += [load.train_job(one).value for one in objects if one["kind"] == "TrainJob"]
    match values:
        case [MPIJob() as job]:
            return _of_mpijob(named(job, namespace))
        case [Runtime() as runtime, TrainJob() as job]:
            return _of_trainjob(named(job, namespace), named(runtime, namespace))
        case _:
            return None


def pod_to_try(template: Object, name: str) -> Object:
    """One for a dry run: nobody's child, so without the labels that only a controller may set."""
    given = template.get("metadata") or {}
    meta = {key: without_reserved(given[key]) for key in ("labels", "annotations") if key in given}
    spec = {**template["spec"], "restartPolicy": template["spec"].get("restartPolicy", "Never")}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "generateName": f"{name[:40]}-try-"},
        "spec": spec,
    }


def differences(name: str, role: str, before: Object, after: Object) -> list[PodDifference]:
    """Between two pods of one role, rendered ones or such as an API server made of them."""
    return [*_changes(role, _translated(before, name), _without_tokens(after))]


def _of_mpijob(job: MPIJob) -> Pods:
    made = planned_mpijob(job).children
    templates = {LAUNCHER: made.launcher_job["spec"]["template"]}
    if made.workers:
        templates[NODE] = made.workers[0]
    return Pods(job.name, templates, {LAUNCHER: 1, NODE: len(made.workers)})


def _of_trainjob(job: TrainJob, runtime: Runtime) -> Pods:
    made = planned_trainjob(job, runtime).children.job_set["spec"]["replicatedJobs"]
    specs = {one["name"]: one["template"]["spec"] for one in made}
    counts = {name: one.get("parallelism", 1) for name, one in specs.items()}
    return Pods(job.name, {name: one["template"] for name, one in specs.items()}, counts)


def _changes(role: str, before: Object, after: Object) -> Iterator[PodDifference]:
    for change in drift(before, after):
        yield _told(role, field(change.path), change.wanted, change.live)
    for back in drift(after, before):
        if back.live is msgspec.UNSET:
            yield _told(role, field(back.path), back.live, back.wanted)


def _told(role: str, path: str, before: Any, after: Any) -> PodDifference:
    known = "" if role == NODE else _KNOWN.get(path, "")
    return PodDifference(role, path, before, after, known)


def _translated(pod: Object, job: str) -> Object:
    """The MPIJob's pod with the names that a TrainJob has for the same things."""
    text = msgspec.json.encode(_without_tokens(pod)).decode()
    quoted = re.escape(job)
    text = re.sub(rf"\b{quoted}-worker-(\d+)\b", rf"{job}-node-0-\1", text)
    text = re.sub(rf"\b{quoted}-launcher\b", f"{job}-launcher-0-0", text)
    own = {
        **OWN_VOLUMES,
        names.secret(job): names.ssh_secret(job),
        names.config_map(job): names.hostfile(job),
    }
    content = {"spec": msgspec.json.decode(text)}
    renamed = runtime_pod(PodTemplate.of(content), hides_gpus=False)["spec"]
    spec: Object = _with_names(renamed, own)
    for mark in _MARKS:
        spec.pop(mark, None)
    return spec


def _without_tokens(spec: Object) -> Object:
    """Without the volume of the account's token, to which an API server gives a random name."""
    token = {
        one["name"]
        for one in spec.get("volumes") or ()
        if one["name"].startswith(_TOKEN) and "projected" in one
    }
    if not token:
        return spec
    kinds = [kind for kind in _CONTAINERS if kind in spec]
    bare: Object = {kind: [_unmounted(one, token) for one in spec[kind]] for kind in kinds}
    volumes = [one for one in spec["volumes"] if one["name"] not in token]
    return {**spec, **bare, "volumes": volumes}


def _unmounted(container: Object, volumes: Collection[str]) -> Object:
    mounts = [one for one in container.get("volumeMounts") or () if one["name"] not in volumes]
    return {**container, "volumeMounts": mounts}


def _with_names(value: Any, new: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_with_names(item, new) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: new.get(item, item)
        if key in ("name", "secretName") and isinstance(item, str)
        else _with_names(item, new)
        for key, item in value.items()
    }
