"""What a list says of a job beside its state, read from its object alone. Pure.

Objects may be of any kind and strangely written: what cannot be understood counts as not said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.annotations import CREATORS
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.validation.resources import gpus_of
from mpi_trainer.sdk.backends.backend import JobSummary, JobView

Object = Mapping[str, Any]
_NONE: Final[Object] = {}
LONGEST_OWNER: Final = 256
"""characters: an annotation holds more than a list of jobs should carry for each"""


def with_facts(listed: JobSummary, job: JobView) -> JobSummary:
    meta, spec = object_in(job.manifest, "metadata"), object_in(job.manifest, "spec")
    return msgspec.structs.replace(
        listed,
        uid=_text(meta.get("uid")),
        resource_version=_text(meta.get("resourceVersion")),
        gpus=_gpus(spec),
        queue=queue(object_in(meta, "labels")),
        runtime=_text(object_in(spec, "runtimeRef").get("name")),
        owner=owner(object_in(meta, "annotations")),
        suspend=job.suspend,
    )


def unversioned(job: JobSummary) -> JobSummary:
    """Two that are equal show the same in a list."""
    return msgspec.structs.replace(job, resource_version="")


def owner(annotations: Object) -> str:
    for key in CREATORS:
        if name := _text(annotations.get(key)):
            return name[:LONGEST_OWNER]
    return ""


def queue(labels: Object) -> str:
    return _text(labels.get(LABEL_QUEUE))


def template_gpus(template: Object) -> int:
    """Of one pod."""
    containers = object_in(template, "spec").get("containers")
    found = containers if isinstance(containers, list | tuple) else ()
    return sum(_amount(one.get("resources")) for one in found if isinstance(one, Mapping))


def object_in(data: Object, *path: str) -> Object:
    """What is there, if it is an object."""
    found: Any = data
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else _NONE


def count_of(replicas: Object, role: str) -> int:
    """How many pods of a role there are to be."""
    return _count(object_in(replicas, role).get("replicas"))


def _gpus(spec: Object) -> int:
    """Of a job of replicas all of them; of a TrainJob what it says itself."""
    replicas = next((spec[key] for key in spec if key.endswith("ReplicaSpecs")), _NONE)
    trainer = object_in(spec, "trainer")
    nodes = _count(trainer.get("numNodes")) * _amount(trainer.get("resourcesPerNode"))
    roles = replicas if isinstance(replicas, Mapping) else _NONE
    return nodes + sum(
        count_of(roles, role) * gpus
        for role in roles
        if (gpus := template_gpus(object_in(roles, role, "template")))
    )


def _amount(resources: Any) -> int:
    if not isinstance(resources, Mapping):
        return 0
    return gpus_of(object_in(resources, "requests"), object_in(resources, "limits"))


def _count(number: Any) -> int:
    """One where it is not said."""
    return max(number, 0) if isinstance(number, int) else 1


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
