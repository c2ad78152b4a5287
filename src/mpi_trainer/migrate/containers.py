"""The pod template of an MPIJob as a runtime's: its first container is called `node` there.

What refers to a name goes with it: mounts of the job's own volumes, and fields that name a
container. Everything else stays as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.pods import PodTemplate, without_nulls
from mpi_trainer.api.validation import compatibility, volumes
from mpi_trainer.layout.mpijob import NO_GPU
from mpi_trainer.migrate.report import CHANGED, FieldReport, Object

NODE = "node"
OWN_VOLUMES = {
    volumes.SSH_VOLUME: compatibility.SSH_VOLUME,
    volumes.CONFIG_VOLUME: compatibility.HOSTFILE_VOLUME,
}
"""what the job adds to its pods: the name in an MPIJob, and in a TrainJob"""
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def runtime_pod(template: PodTemplate, *, hides_gpus: bool) -> Object:
    """`hides_gpus`: of a launcher that runs no rank, which an MPIJob keeps from all GPUs."""
    pod: Object = without_nulls(template.content)
    spec: Object = pod.setdefault("spec", {})
    containers = _new_names(spec)
    own = _own_names(spec)
    for container in _every_container(spec):
        container["name"] = containers.get(container.get("name", ""), container.get("name"))
        for mount in container.get("volumeMounts") or ():
            mount["name"] = own.get(mount.get("name"), mount.get("name"))
        for variable in container.get("env") or ():
            _renamed((variable.get("valueFrom") or {}).get("resourceFieldRef"), containers)
    for volume in spec.get("volumes") or ():
        volume["name"] = own.get(volume.get("name"), volume.get("name"))
        for file in _downward_files(volume):
            _renamed(file.get("resourceFieldRef"), containers)
    if hides_gpus:
        main = spec["containers"][0]
        hidden = [{"name": name, "value": value} for name, value in NO_GPU]
        given = [one for one in main.get("env") or () if one.get("name") not in dict(NO_GPU)]
        main["env"] = [*given, *hidden]
    spec["restartPolicy"] = "Never"
    return pod


def reports(template: PodTemplate, path: Path) -> Iterator[FieldReport]:
    """What `runtime_pod` changes in it; `path` is the template's."""
    spec: Object = without_nulls(template.content).get("spec") or {}
    given = (*path, "spec")
    for n, container in enumerate(spec.get("containers") or ()):
        new = _new_names(spec).get(container.get("name"))
        if new:
            note = f"`{container.get('name')}` is called `{new}`"
            remedy = f"use `-c {new}` where a script says `-c {container.get('name')}`"
            where = (*given, "containers", n, "name")
            yield FieldReport(where, CHANGED, "containers[].name", note, remedy)
    if spec.get("restartPolicy") not in (None, "Never"):
        note = "Never, as an MPIJob's pods have it whatever their template says"
        yield FieldReport((*given, "restartPolicy"), CHANGED, "restartPolicy", note)
    own = _own_names(spec)
    mounted = {m.get("name") for c in _every_container(spec) for m in c.get("volumeMounts") or ()}
    for old in sorted(mounted & own.keys()):
        note = f"mounts of the volume `{old}` name `{own[old]}`"
        yield FieldReport((*given, "volumes"), CHANGED, "volumes", note)


def _new_names(spec: Mapping[str, Any]) -> dict[str, str]:
    """The names of containers that change."""
    containers = spec.get("containers") or ()
    if not containers or containers[0].get("name") == NODE:
        return {}
    taken = {one.get("name") for one in _every_container(spec)}
    changed = {str(containers[0].get("name")): NODE}
    return {**changed, NODE: _free(f"{NODE}-sidecar", taken)} if NODE in taken else changed


def _own_names(spec: Mapping[str, Any]) -> dict[str, str]:
    """The names of volumes that change: the job's own, and one of the user's that is in the way."""
    taken = {one.get("name") for one in spec.get("volumes") or ()}
    own = {old: new for old, new in OWN_VOLUMES.items() if old not in taken}
    return own | {new: _free(f"own-{new}", taken) for new in OWN_VOLUMES.values() if new in taken}


def _free(name: str, taken: Iterable[Any]) -> str:
    names = set(taken)
    return next(one for n in range(len(names) + 1) if (one := f"{name}{n or ''}") not in names)


def _every_container(spec: Mapping[str, Any]) -> Iterator[Object]:
    for kind in _CONTAINERS:
        yield from spec.get(kind) or ()


def _downward_files(volume: Mapping[str, Any]) -> Iterator[Object]:
    sources = (volume, *((volume.get("projected") or {}).get("sources") or ()))
    for source in sources:
        yield from (source.get("downwardAPI") or {}).get("items") or ()


def _renamed(reference: Object | None, names: Mapping[str, str]) -> None:
    if reference and reference.get("containerName") in names:
        reference["containerName"] = names[reference["containerName"]]
