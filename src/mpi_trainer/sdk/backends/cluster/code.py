"""Code that travels with a job: a ConfigMap, and a step before each pod that unpacks it. Pure.

The image stays as it is: the step runs in it, with the main container's rights, and needs `tar`
or Python. The ConfigMap is named after its content and belongs to the job, so that it goes with
it. No text of a user is ever part of a shell's program.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.annotations import CODE
from mpi_trainer.api.kinds.mpijob import API_VERSION, KIND, MPIJob
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.render.init_container import modest
from mpi_trainer.sdk.backends.backend import JobView
from mpi_trainer.sdk.code.bundle import Bundle

replace = msgspec.structs.replace
Object = dict[str, Any]

FOLDER: Final = "/mpi-work"
_PACKED: Final = "/etc/mpi-code"
_KEY: Final = "code.tar.gz"
_STEP: Final = "mpi-unpack"
_VOLUME: Final = "mpi-code"
_UNPACK: Final = (
    'command -v tar >/dev/null && exec tar -xzf "$1" -C "$2"; exec python3 -m tarfile -e "$1" "$2"'
)
_ALIKE: Final = ("image", "imagePullPolicy", "securityContext")


def name_of(job: str, bundle: Bundle) -> str:
    return f"{job}-code-{bundle.digest[:10]}"


def with_code(job: MPIJob, bundle: Bundle) -> MPIJob:
    """The job whose pods find the bundle's content as their working directory."""
    name = name_of(job.name, bundle)
    replicas = {
        role: replace(replica, template=PodTemplate.of(_unpacking(replica.template.content, name)))
        for role, replica in (job.spec.mpi_replica_specs or {}).items()
    }
    notes = {**job.metadata.annotations, CODE: name}
    return replace(
        job,
        metadata=replace(job.metadata, annotations=notes),
        spec=replace(job.spec, mpi_replica_specs=replicas),
    )


def renamed(job: MPIJob) -> MPIJob:
    """A copy of a job with code, whose code is in a ConfigMap of its own."""
    before = job.metadata.annotations[CODE]
    name = f"{job.name}-code-{before.rpartition('-')[2]}"
    replicas = {
        role: replace(replica, template=PodTemplate.of(_mounting(replica.template.content, name)))
        for role, replica in (job.spec.mpi_replica_specs or {}).items()
    }
    return replace(
        job,
        metadata=replace(job.metadata, annotations={**job.metadata.annotations, CODE: name}),
        spec=replace(job.spec, mpi_replica_specs=replicas),
    )


def _mounting(template: Object, config_map: str) -> Object:
    made = deepcopy(template)
    for volume in made["spec"].get("volumes") or ():
        if volume.get("name") == _VOLUME:
            volume["configMap"] = {"name": config_map}
    return made


def _unpacking(template: Object, config_map: str) -> Object:
    made = deepcopy(template)
    spec: Object = made["spec"]
    main: Object = spec["containers"][0]
    spec["volumes"] = [
        *(spec.get("volumes") or ()),
        {"name": _VOLUME, "configMap": {"name": config_map}},
        {"name": "mpi-work", "emptyDir": {}},
    ]
    work = {"name": "mpi-work", "mountPath": FOLDER}
    step: Object = {
        "name": _STEP,
        "command": ["/bin/sh", "-c", _UNPACK, _STEP, f"{_PACKED}/{_KEY}", FOLDER],
        "volumeMounts": [{"name": _VOLUME, "mountPath": _PACKED, "readOnly": True}, work],
        **{field: deepcopy(main[field]) for field in _ALIKE if main.get(field)},
    }
    if needs := modest(main.get("resources") or {}):
        step["resources"] = needs
    spec["initContainers"] = [step, *(spec.get("initContainers") or ())]
    main["volumeMounts"] = [*(main.get("volumeMounts") or ()), work]
    main.setdefault("workingDir", FOLDER)
    return made


def data(bundle: Bundle) -> dict[str, str]:
    """As a ConfigMap's binaryData."""
    return {_KEY: base64.b64encode(bundle.data).decode()}


def config_map(job: JobView, binary_data: Mapping[str, str]) -> Object:
    """The code, owned by the job as it is stored.

    Not `blockOwnerDeletion`: that would ask for a right that users of jobs do not have.
    """
    owner = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": job.name,
        "uid": job.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": job.annotations[CODE],
            "namespace": job.namespace,
            "labels": {"app": job.name},
            "ownerReferences": [owner],
        },
        "immutable": True,
        "binaryData": dict(binary_data),
    }
