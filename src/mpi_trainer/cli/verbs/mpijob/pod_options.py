"""Options in place of YAML: where the pods of a job may run, what they see, how long they may take.

They are added to launcher and workers alike, of a job from a command and of one from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

import click

from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.cli.parameters import Claim, Pair, SecretVariable, Toleration
from mpi_trainer.cli.verbs.mpijob import options

F = TypeVar("F", bound=Callable[..., Any])
_SHM = "/dev/shm"


def job_options(function: F) -> F:
    """Options about the job itself, which jobs of both kinds have."""
    for option in (
        click.option("--label", "labels", type=Pair("label"), multiple=True, help="Add a label."),
        click.option("--queue", metavar="NAME", help="Kueue's LocalQueue that admits the job."),
        click.option(
            "--time-limit", type=options.Span(),
            help="End the job, as failed, when it has run so long.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def pod_options(function: F) -> F:
    for option in (
        click.option(
            "--pvc", "volumes", type=Claim(), multiple=True,
            help="Mount a PersistentVolumeClaim at PATH.",
        ),
        click.option(
            "--env-from-secret", "secrets", type=SecretVariable(), multiple=True,
            help="Variables from a Secret: all of its keys, or one.",
        ),
        click.option("--shm-size", metavar="QUANTITY", help="Size of /dev/shm, such as 8Gi."),
        click.option("--service-account", metavar="NAME", help="ServiceAccount of the pods."),
        click.option(
            "--toleration", "tolerations", type=Toleration(), multiple=True,
            help="A taint that the pods tolerate.",
        ),
        click.option(
            "--node-selector", "node_selector", type=Pair("label"), multiple=True,
            help="Only nodes with this label.",
        ),
        click.option("--priority-class", metavar="NAME", help="PriorityClass of the pods."),
    ):  # fmt: skip
        function = option(function)
    return job_options(function)


def with_pod_options(job: MPIJob, given: dict[str, Any]) -> MPIJob:
    """The job with what these options say."""
    wire = to_wire(job)
    add_to_metadata(wire["metadata"], given)
    if given["time_limit"] is not None:
        policy = wire["spec"].setdefault("runPolicy", {})
        policy["activeDeadlineSeconds"] = options.whole_seconds(given["time_limit"])
    for replica in (wire["spec"].get("mpiReplicaSpecs") or {}).values():
        pod = replica["template"].setdefault("spec", {})
        replica["template"] = {**replica["template"], "spec": _pod(pod, given)}
    return decode(MPIJob, wire).value


def add_to_metadata(metadata: dict[str, Any], given: dict[str, Any]) -> None:
    """The labels, and the queue, which is one."""
    queue = {LABEL_QUEUE: given["queue"]} if given["queue"] else {}
    labels = {**(metadata.get("labels") or {}), **dict(given["labels"]), **queue}
    if labels:
        metadata["labels"] = labels


def _pod(pod: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The pod spec with the options; the one that was given stays as it is."""
    made = dict(pod)
    for option, field in (
        ("priority_class", "priorityClassName"),
        ("service_account", "serviceAccountName"),
    ):
        if given[option]:
            made[field] = given[option]
    if given["node_selector"]:
        made["nodeSelector"] = {**(pod.get("nodeSelector") or {}), **dict(given["node_selector"])}
    if given["tolerations"]:
        made["tolerations"] = [*(pod.get("tolerations") or ()), *given["tolerations"]]
    if pod.get("containers"):
        _add_to_container(made, given)
    return made


def _add_to_container(pod: dict[str, Any], given: dict[str, Any]) -> None:
    """Volumes and variables, for the container that runs the job."""
    first, *others = pod["containers"]
    container = dict(first)
    names = _free_names(pod)
    volumes, mounts = [*(pod.get("volumes") or ())], [*(container.get("volumeMounts") or ())]
    for claim, name in zip(given["volumes"], names, strict=False):
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim.name}})
        read_only = {"readOnly": True} if claim.read_only else {}
        mounts.append({"name": name, "mountPath": claim.path, **read_only})
    if given["shm_size"]:
        name = next(names)
        memory = {"medium": "Memory", "sizeLimit": given["shm_size"]}
        volumes.append({"name": name, "emptyDir": memory})
        mounts.append({"name": name, "mountPath": _SHM})
    if mounts:
        pod["volumes"], container["volumeMounts"] = volumes, mounts
    for secret in given["secrets"]:
        field = "env" if secret.variable else "envFrom"
        container[field] = [*(container.get(field) or ()), secret.source()]
    pod["containers"] = [container, *others]


def _free_names(pod: dict[str, Any]) -> Iterator[str]:
    taken = {volume.get("name") for volume in pod.get("volumes") or ()}
    return (name for name in map("option-{}".format, count()) if name not in taken)
