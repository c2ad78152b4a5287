"""What TrainJob's and the runtimes' fields may hold, as the public definitions say, in numbers.

Without the public definition's rules against changes: Kueue writes a job back through types of its
own, which drop an explicit zero, and a rule in the schema would then refuse to start the job. The
webhook compares meanings instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mpi_trainer.api.kinds import runtime, trainjob
from mpi_trainer.api.kinds.managers import TRAINJOB_MANAGERS
from tools.crds import podtemplate
from tools.crds.podtemplate import Schema

_NAME: Final[Schema] = {"minLength": 1, "maxLength": 253}
_SHORT: Final[Schema] = {"minLength": 1, "maxLength": 64}
_WORDS: Final[Schema] = {
    "maxItems": 128,
    "x-kubernetes-list-type": "atomic",
    "items": {"maxLength": 1048576},
}
_COUNT: Final[Schema] = {"minimum": 0}

JOBSET: Final = (runtime.JobSetTemplate, "spec")

FIELDS: Final[Mapping[tuple[type, str], Schema]] = {
    (trainjob.TrainJobSpec, "runtimePatches"): {"maxItems": 16},
    (trainjob.TrainJobSpec, "activeDeadlineSeconds"): {"minimum": 1},
    (trainjob.TrainJobSpec, "managedBy"): {"maxLength": 253, "enum": list(TRAINJOB_MANAGERS)},
    (trainjob.RuntimeRef, "name"): _NAME,
    (trainjob.RuntimeRef, "apiGroup"): {"maxLength": 253},
    (trainjob.RuntimeRef, "kind"): {"maxLength": 253},
    (trainjob.Source, "storageUri"): {
        "maxLength": 2048,
        "pattern": r"^$|^[A-Za-z][A-Za-z0-9+.-]*://.+$",
    },
    (trainjob.Trainer, "image"): {"maxLength": 500},
    (trainjob.Trainer, "command"): _WORDS,
    (trainjob.Trainer, "args"): _WORDS,
    (trainjob.RuntimePatch, "manager"): _NAME,
    (trainjob.JobSetSpecPatch, "replicatedJobs"): {"maxItems": 100},
    (trainjob.ReplicatedJobPatch, "name"): _NAME,
    (trainjob.PodSpecPatch, "serviceAccountName"): {"maxLength": 253},
    (trainjob.PodSpecPatch, "initContainers"): {"maxItems": 64},
    (trainjob.PodSpecPatch, "containers"): {"maxItems": 64},
    (trainjob.PodSpecPatch, "terminationGracePeriodSeconds"): _COUNT,
    (trainjob.ContainerPatch, "name"): _NAME,
    (trainjob.TrainJobStatus, "conditions"): {"maxItems": 8},
    (trainjob.TrainJobStatus, "jobsStatus"): {"maxItems": 100},
    (trainjob.TrainJobCondition, "type"): {
        "maxLength": 316,
        "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    },
    (trainjob.TrainJobCondition, "reason"): {
        "minLength": 1,
        "maxLength": 1024,
        "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    },
    (trainjob.TrainJobCondition, "message"): {"maxLength": 32768},
    (trainjob.TrainJobCondition, "observedGeneration"): _COUNT,
    (trainjob.ReplicatedJobStatus, "name"): _NAME,
    **{
        (trainjob.ReplicatedJobStatus, name): _COUNT
        for name in ("ready", "succeeded", "failed", "active", "suspended")
    },
    (trainjob.TrainerStatus, "progressPercentage"): {"minimum": 0, "maximum": 100},
    (trainjob.TrainerStatus, "estimatedRemainingSeconds"): _COUNT,
    (trainjob.TrainerStatus, "metrics"): {"maxItems": 256, "x-kubernetes-list-type": "atomic"},
    (trainjob.Metric, "name"): _SHORT,
    (trainjob.Metric, "value"): _SHORT,
    (runtime.EnvInjection, "targets"): {"maxItems": 16},
    (runtime.EnvInjectionTarget, "jobName"): _NAME,
    (runtime.EnvInjectionTarget, "containerNames"): {
        "minItems": 1,
        "maxItems": 8,
        "x-kubernetes-list-type": "set",
        "items": {"maxLength": 63},
        "x-kubernetes-validations": [
            {
                "rule": "!self.exists(c, c == 'node')",
                "message": "the container node always gets the variables: leave it out",
            }
        ],
    },
    (runtime.MPIPolicy, "sshAuthMountPath"): {"maxLength": 4096},
    (runtime.FluxPolicy, "numProcPerNode"): {"minimum": 1},
}

STRUCTS: Final[Mapping[type, Schema]] = {
    trainjob.TrainJobStatus: {"minProperties": 1},
    runtime.RuntimeSpec: {"minProperties": 1},
    runtime.JobSetTemplate: {"minProperties": 1},
    runtime.MLPolicy: {
        "x-kubernetes-validations": [
            {
                "rule": "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost),"
                " has(self.flux)].filter(x, x).size() <= 1",
                "message": "only one framework can be set",
            }
        ]
    },
}


def _pods() -> dict[str, Any]:
    fields: dict[str, Any] = podtemplate.stored()["properties"]["spec"]["properties"]
    return fields


def _by(schema: Schema, key: str, most: int) -> Schema:
    merge = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return {**schema, **merge, "maxItems": most}


def _pod_fields() -> dict[tuple[type, str], Schema]:
    pod = _pods()
    container = pod["containers"]["items"]["properties"]
    env = _by(container["env"], "name", 128)
    patch = trainjob.PodSpecPatch
    return {
        (trainjob.Trainer, "env"): env,
        (trainjob.Source, "env"): env,
        (trainjob.Trainer, "resourcesPerNode"): container["resources"],
        (patch, "volumes"): _by(pod["volumes"], "name", 128),
        (patch, "imagePullSecrets"): _by(pod["imagePullSecrets"], "name", 64),
        (patch, "securityContext"): pod["securityContext"],
        (patch, "affinity"): pod["affinity"],
        (patch, "tolerations"): {**pod["tolerations"], "maxItems": 128},
        (patch, "schedulingGates"): _by(pod["schedulingGates"], "name", 16),
        (trainjob.ContainerPatch, "env"): env,
        (trainjob.ContainerPatch, "volumeMounts"): _by(container["volumeMounts"], "name", 128),
        (trainjob.ContainerPatch, "securityContext"): container["securityContext"],
    }


POD_FIELDS: Final = _pod_fields()
"""fields that are the pod API's"""
