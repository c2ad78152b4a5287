"""What becomes of each field of an Azure ML command job in an MPIJob, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mpi_trainer.migrate.cloud_job import CloudJob
from mpi_trainer.migrate.report import CARRIED, CHANGED, LOST, FieldReport

_POD: Final = "spec.mpiReplicaSpecs.*.template.spec"
_COMMAND: Final = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command"
_NOTE: Final = "metadata.annotations"

# field → where it went, what is different, and what to do.
_CARRIED: Mapping[str, tuple[str, str, str]] = {
    "$schema": ("kind", "", ""),
    "type": ("kind", "", ""),
    "command": (_COMMAND, "mpirun starts it on every slot, in bash", ""),
    "experiment_name": (_NOTE, "", ""),
    "display_name": (_NOTE, "", ""),
    "description": (_NOTE, "", ""),
    "environment_variables": (f"{_POD}.containers[0].env", "", ""),
}
_CHANGED: Mapping[str, tuple[str, str, str]] = {
    "name": ("metadata.name", "as Kubernetes has names", ""),
    "code": (f"{_POD}.containers[0].workingDir", "nothing uploads a folder",
             "put it into the image at /mnt/azureml/code, or mount a volume there"),
}  # fmt: skip
_WITHOUT: Mapping[str, tuple[str, str]] = {
    "compute": ("pods run where the cluster has room for them",
                "add a nodeSelector, or a queue by the label kueue.x-k8s.io/queue-name"),
    "identity": ("an identity of Azure gives rights to Azure alone",
                 "give the pods a service account or Secret that may read their data"),
    "tags": ("tags of Azure may not be names here",
             "write them as labels, where Kubernetes allows their names"),
    "properties": ("they concern Azure ML alone", ""),
    "services": ("use `odh mpijob exec`, or a Service of your own", ""),
    "queue_settings": ("priority is a matter of queues",
                       "use the label kueue.x-k8s.io/priority-class"),
    "is_deterministic": ("results are not reused", ""),
    "parent_job_name": ("jobs have no parents here", ""),
}  # fmt: skip


def reports(data: Mapping[str, Any], job: CloudJob) -> Iterator[FieldReport]:
    for name in data:
        if name in _CARRIED:
            yield FieldReport((name,), CARRIED, *_CARRIED[name])
        elif name in _CHANGED:
            yield FieldReport((name,), CHANGED, *_CHANGED[name])
        elif name in _WITHOUT:
            note, remedy = _WITHOUT[name]
            yield FieldReport((name,), LOST, note=note, remedy=remedy)
    yield from _environment(data.get("environment"))
    yield from _data(data, job)
    yield from _counts(data, job)


def _environment(given: Any) -> Iterator[FieldReport]:
    remedy = "check that it has MPI and an SSH server, and that the cluster may pull it"
    to = f"{_POD}.containers[0].image"
    yield FieldReport(("environment", "image"), CARRIED, to, remedy=remedy)
    for name in ("conda_file", "build", "inference_config"):
        if given.get(name):
            remedy = "build an image that has it"
            yield FieldReport(("environment", name), LOST, note="nothing is built", remedy=remedy)
    for name in ("name", "version", "description", "tags"):
        if given.get(name):
            yield FieldReport(("environment", name), LOST, note="a name in Azure ML alone")


def _data(data: Mapping[str, Any], job: CloudJob) -> Iterator[FieldReport]:
    claims = {one.path: one.claim for one in job.mounts}
    for group, what in (("inputs", "with its data"), ("outputs", "which all workers can write")):
        for name in data.get(group) or {}:
            folder = f"/mnt/azureml/{group}/{name}"
            if folder in claims:
                note = f"a volume at {folder}; Azure ML moves nothing"
                remedy = f"make the PersistentVolumeClaim `{claims[folder]}` {what}"
                yield FieldReport((group, name), CHANGED, f"{_POD}.volumes", note, remedy)
            else:
                yield FieldReport((group, name), CARRIED, _COMMAND)


def _counts(data: Mapping[str, Any], job: CloudJob) -> Iterator[FieldReport]:
    yield FieldReport(("distribution", "type"), CARRIED, "kind")
    to = "spec.slotsPerWorker"
    yield FieldReport(("distribution", "process_count_per_instance"), CARRIED, to)
    given = data.get("resources") or {}
    pods = f"{job.machines} pods, the launcher among them"
    lines = {
        "instance_count": FieldReport(
            ("resources", "instance_count"), CARRIED, "spec.mpiReplicaSpecs", pods
        ),
        "instance_type": FieldReport(
            ("resources", "instance_type"), CHANGED, f"{_POD}.containers[0].resources",
            "a pod as large as the machine, less a tenth for the node itself",
        ),
        "shm_size": FieldReport(
            ("resources", "shm_size"), CARRIED, f"{_POD}.volumes", "of memory, at /dev/shm"
        ),
        "docker_args": FieldReport(
            ("resources", "docker_args"), LOST, note="there is no Docker",
            remedy="write what it did into both pod templates",
        ),
    }  # fmt: skip
    for name, line in lines.items():
        if given.get(name) is not None:
            yield line
    if not given.get("instance_type"):
        remedy = "set resources in both templates, or resources.instance_type in the file"
        note = "nothing says how large a machine is"
        yield FieldReport(("compute",), LOST, note=note, remedy=remedy)
    if (data.get("limits") or {}).get("timeout") is not None:
        note = "it counts waiting for nodes too"
        to = "spec.runPolicy.activeDeadlineSeconds"
        yield FieldReport(("limits", "timeout"), CHANGED, to, note)
