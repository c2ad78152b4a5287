"""The pods of an MPIJob beside those of the TrainJob that it became, each by our own rendering.

What is called otherwise in both kinds (host names, the job's own volumes, the main container) is
taken as the same thing; everything else that differs is told. The last step of MIG-1: a conversion
is judged by what would run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, NODE
from mpi_trainer.api.errors import field
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


_KNOWN = {
    f"containers.{NODE}.readinessProbe": "a TrainJob is not marked when it seems stuck",
    f"volumes.{OWN_VOLUMES[CONFIG_VOLUME]}.configMap.items": "no discover_hosts.sh there",
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


def pod_differences(before: Mapping[str, Any], after: tuple[Object, ...]) -> list[PodDifference]:
    """`before` is the MPIJob, `after` what it became; none where that is no TrainJob."""
    old = load.job(before).value
    values = [load.runtime(one).value for one in after if "Runtime" in one["kind"]]
    values += [load.train_job(one).value for one in after if one["kind"] == "TrainJob"]
    if not isinstance(old, MPIJob) or len(values) != 2:
        return []
    runtime, job = values
    if not isinstance(runtime, Runtime) or not isinstance(job, TrainJob):
        return []
    return [*_differences(named(old, ""), named(runtime, ""), named(job, ""))]


def _differences(old: MPIJob, runtime: Runtime, job: TrainJob) -> Iterator[PodDifference]:
    left = planned_mpijob(old).children
    right = planned_trainjob(job, runtime).children.job_set["spec"]["replicatedJobs"]
    new = {one["name"]: one["template"]["spec"] for one in right}
    pods = {LAUNCHER: left.launcher_job["spec"]["template"]["spec"], NODE: left.workers[0]["spec"]}
    for role, count in ((LAUNCHER, 1), (NODE, len(left.workers))):
        given = new[role].get("parallelism", 1)
        if given != count:
            yield PodDifference(role, "pods", count, given)
        wanted = _translated(pods[role], old)
        yield from _changes(role, wanted, new[role]["template"]["spec"])


def _changes(role: str, before: Object, after: Object) -> Iterator[PodDifference]:
    for change in drift(before, after):
        yield _told(role, field(change.path), change.wanted, change.live)
    for back in drift(after, before):
        if back.live is msgspec.UNSET:
            yield _told(role, field(back.path), back.live, back.wanted)


def _told(role: str, path: str, before: Any, after: Any) -> PodDifference:
    known = "" if role == NODE else _KNOWN.get(path, "")
    return PodDifference(role, path, before, after, known)


def _translated(pod: Object, job: MPIJob) -> Object:
    """The MPIJob's pod with the names that a TrainJob has for the same things."""
    text = msgspec.json.encode(pod).decode()
    quoted = re.escape(job.name)
    text = re.sub(rf"\b{quoted}-worker-(\d+)\b", rf"{job.name}-node-0-\1", text)
    text = re.sub(rf"\b{quoted}-launcher\b", f"{job.name}-launcher-0-0", text)
    own = {
        **OWN_VOLUMES,
        names.secret(job.name): names.ssh_secret(job.name),
        names.config_map(job.name): names.hostfile(job.name),
    }
    content = {"spec": msgspec.json.decode(text)}
    renamed = runtime_pod(PodTemplate.of(content), hides_gpus=False)["spec"]
    spec: Object = _with_names(renamed, own)
    for mark in _MARKS:
        spec.pop(mark, None)
    return spec


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
