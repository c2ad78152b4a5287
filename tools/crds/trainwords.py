"""What `kubectl explain trainjob.spec` says, and of the runtimes, with their defaults and values.

Defaults and lists of values are those of the public Trainer's definitions and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mpi_trainer.api import defaults
from mpi_trainer.api.kinds import runtime, trainjob
from mpi_trainer.api.kinds.managers import TRAINJOB_CONTROLLER
from mpi_trainer.api.kinds.mpijob import OPEN_MPI

_PATCH: Final = "What is laid over that part of the runtime."

DESCRIPTIONS: Final[Mapping[type, Mapping[str, str]]] = {
    trainjob.TrainJobSpec: {
        "runtimeRef": "The runtime that the job runs in.",
        "initializer": "What is fetched before the job starts, where the runtime can fetch.",
        "trainer": "What the job runs, and on how many nodes.",
        "runtimePatches": "Changes to the runtime for this job only, one entry for each manager. "
        "Later ones win. Queues such as Kueue add one.",
        "suspend": "The job holds no pods while this is true; it starts anew when it becomes "
        "false. Queues such as Kueue set it.",
        "activeDeadlineSeconds": "The job fails once it has run for this long since its start or "
        "its last resumption.",
        "managedBy": "Who runs the job: this cluster's controller, or Kueue on another cluster.",
    },
    trainjob.RuntimeRef: {
        "name": "The runtime's name.",
        "apiGroup": "The runtime's API group.",
        "kind": "`ClusterTrainingRuntime`, or `TrainingRuntime` for one of the job's namespace.",
    },
    trainjob.Initializer: {
        "dataset": "The dataset to fetch.",
        "model": "The model to fetch.",
    },
    trainjob.Source: {
        "storageUri": "Where it lies, such as `hf://owner/name` or `s3://bucket/path`.",
        "env": "Variables for the container that fetches it.",
        "secretRef": "A Secret whose keys become variables of that container.",
    },
    trainjob.SecretRef: {"name": "The Secret's name, in the job's namespace."},
    trainjob.Trainer: {
        "image": "The image of the nodes; with MPI that of the workers too.",
        "command": "What the nodes run; with MPI what the launcher runs.",
        "args": "The command's arguments.",
        "env": "Variables of the nodes.",
        "numNodes": "How many nodes; the runtime's number, where not set.",
        "resourcesPerNode": "What one node asks for, amount by amount over the runtime's.",
        "numProcPerNode": "Ranks on each node; the runtime's number or the node's GPUs, where not "
        "set.",
    },
    trainjob.RuntimePatch: {
        "manager": "Who makes these changes: a domain and a path, such as `example.com/me`.",
        "time": "When they were last changed; set on admission.",
        "trainingRuntimeSpec": "The changes.",
    },
    trainjob.RuntimeSpecPatch: {"template": _PATCH},
    trainjob.JobSetPatch: {
        "metadata": "Labels and annotations for the JobSet.",
        "spec": _PATCH,
    },
    trainjob.JobSetSpecPatch: {"replicatedJobs": "The jobs to change, by the runtime's names."},
    trainjob.ReplicatedJobPatch: {
        "name": "A job of the runtime, such as `node` or `launcher`.",
        "template": _PATCH,
    },
    trainjob.JobTemplatePatch: {
        "metadata": "Labels and annotations for the Jobs.",
        "spec": _PATCH,
    },
    trainjob.JobSpecPatch: {"template": "What is laid over the pods."},
    trainjob.PodTemplatePatch: {
        "metadata": "Labels and annotations for the pods.",
        "spec": "What is laid over the pods' spec.",
    },
    trainjob.PodSpecPatch: {
        "serviceAccountName": "The account that the pods act as.",
        "volumes": "Volumes to add, or to take the place of those of the same name.",
        "initContainers": "Init containers of the runtime to change, by name.",
        "containers": "Containers of the runtime to change, by name.",
        "imagePullSecrets": "Secrets to pull images with.",
        "securityContext": "Users, groups and profiles of the pods.",
        "nodeSelector": "Labels that the pods' nodes must have.",
        "affinity": "Where the pods want to be.",
        "tolerations": "Taints that the pods bear; takes the place of the runtime's.",
        "schedulingGates": "What must be lifted before the pods are scheduled.",
        "terminationGracePeriodSeconds": "How long the pods may take to end.",
    },
    trainjob.ContainerPatch: {
        "name": "A container of the runtime.",
        "env": "Variables; those of the training containers are under spec.trainer.",
        "volumeMounts": "Volumes to mount.",
        "securityContext": "User, group and privileges of the container.",
    },
    trainjob.TrainJobStatus: {
        "conditions": "What has been observed: Suspended, Complete, Failed.",
        "jobsStatus": "The child Jobs, for each job of the runtime.",
        "trainerStatus": "What the training says of itself.",
    },
    trainjob.TrainJobCondition: {
        "type": "Suspended, Complete or Failed.",
        "status": "Whether it holds.",
        "reason": "One word for why.",
        "message": "A sentence for a person.",
        "lastTransitionTime": "When `status` last changed.",
        "observedGeneration": "The generation of the spec that this was seen of.",
    },
    trainjob.ReplicatedJobStatus: {
        "name": "The job's name in the runtime.",
        "ready": "Child Jobs whose pods are all ready or done.",
        "succeeded": "Child Jobs that ended well.",
        "failed": "Child Jobs that failed.",
        "active": "Child Jobs with pods that run or wait.",
        "suspended": "Child Jobs that are suspended.",
    },
    trainjob.TrainerStatus: {
        "progressPercentage": "How much is done.",
        "estimatedRemainingSeconds": "How long it may still take.",
        "metrics": "The training's own figures.",
        "lastUpdatedTime": "When it last said so.",
    },
    trainjob.Metric: {"name": "What is measured.", "value": "The latest value, as text."},
    runtime.RuntimeSpec: {
        "mlPolicy": "How many nodes, and what starts the ranks on them.",
        "podGroupPolicy": "All pods or none: for clusters with gang scheduling.",
        "template": "The JobSet that jobs of this runtime run in.",
    },
    runtime.MLPolicy: {
        "numNodes": "How many nodes, where the job does not say; 1, where not set.",
        "torch": "torchrun starts the ranks.",
        "mpi": "mpirun on the job `launcher` starts the ranks on the job `node`.",
        "flux": "Flux starts the ranks. Not served by mpi-trainer.",
        "jax": "JAX starts the ranks. Not served by mpi-trainer.",
        "xgboost": "XGBoost starts the ranks. Not served by mpi-trainer.",
    },
    runtime.TorchPolicy: {"envInjection": "More containers that get torchrun's variables."},
    runtime.EnvInjection: {"targets": "Which containers."},
    runtime.EnvInjectionTarget: {
        "jobName": "A job of the runtime.",
        "containerNames": "Containers of it, but for `node`, which always gets them.",
    },
    runtime.MPIPolicy: {
        "numProcPerNode": "Ranks on each node; 1 means one for each of the node's GPUs.",
        "mpiImplementation": "`OpenMPI`. For others, annotate the runtime with "
        "mpi-trainer.opendatahub.io/mpi-implementation.",
        "sshAuthMountPath": "Where the job's SSH key is mounted. For an image whose user is not "
        "root: that user's ~/.ssh.",
        "runLauncherAsNode": "The launcher runs ranks too, and counts as a node.",
    },
    runtime.FluxPolicy: {"numProcPerNode": "Ranks on each node."},
    runtime.EmptyPolicy: {},
    runtime.PodGroupPolicy: {
        "coscheduling": "By the coscheduling plugin of the Kubernetes scheduler.",
        "volcano": "By Volcano.",
    },
    runtime.Coscheduling: {
        "scheduleTimeoutSeconds": "How long the pods may wait for a place together."
    },
    runtime.Volcano: {"networkTopology": "How near to each other the pods must be."},
    runtime.NetworkTopology: {
        "mode": "`hard`: must; `soft`: should.",
        "highestTierAllowed": "The highest tier of the network that may lie between them.",
    },
    runtime.JobSetTemplate: {
        "metadata": "Labels and annotations of the JobSet.",
        "spec": "The JobSet's spec.",
    },
}
KINDS: Final[Mapping[type, str]] = {
    trainjob.TrainJobSpec: "What to run: a runtime, and what this job changes in it.",
    trainjob.TrainJobStatus: "What has become of the job; written by the controller alone.",
    runtime.RuntimeSpec: "What jobs of this runtime are made from.",
}
DEFAULTS: Final[Mapping[type, Mapping[str, Any]]] = {
    trainjob.TrainJobSpec: {"suspend": False, "managedBy": TRAINJOB_CONTROLLER},
    trainjob.RuntimeRef: {"apiGroup": trainjob.GROUP, "kind": runtime.CLUSTER},
    trainjob.SecretRef: {"name": ""},
    runtime.MPIPolicy: {
        "numProcPerNode": 1,
        "mpiImplementation": OPEN_MPI,
        "sshAuthMountPath": defaults.SSH_AUTH_MOUNT_PATH,
        "runLauncherAsNode": False,
    },
    runtime.FluxPolicy: {"numProcPerNode": 1},
    runtime.Coscheduling: {"scheduleTimeoutSeconds": 60},
    runtime.NetworkTopology: {"mode": "hard", "highestTierAllowed": 1},
}
VALUES: Final[Mapping[type, Mapping[str, list[str]]]] = {
    trainjob.TrainJobCondition: {"status": ["True", "False", "Unknown"]},
    runtime.MPIPolicy: {"mpiImplementation": [OPEN_MPI, ""]},
    runtime.NetworkTopology: {"mode": ["hard", "soft"]},
}
REQUIRED: Final[Mapping[type, list[str]]] = {
    trainjob.TrainJobSpec: ["runtimeRef"],
    trainjob.RuntimeRef: ["name"],
    trainjob.RuntimePatch: ["manager"],
    trainjob.ReplicatedJobPatch: ["name"],
    trainjob.ContainerPatch: ["name"],
    trainjob.TrainJobCondition: ["type", "status", "reason", "message", "lastTransitionTime"],
    trainjob.ReplicatedJobStatus: ["name", "ready", "succeeded", "failed", "active", "suspended"],
    trainjob.TrainerStatus: ["lastUpdatedTime"],
    trainjob.Metric: ["name", "value"],
    runtime.EnvInjectionTarget: ["jobName", "containerNames"],
}
MAP_KEYS: Final[Mapping[type, list[str]]] = {
    trainjob.RuntimePatch: ["manager"],
    trainjob.ReplicatedJobPatch: ["name"],
    trainjob.ContainerPatch: ["name"],
    trainjob.TrainJobCondition: ["type"],
    trainjob.ReplicatedJobStatus: ["name"],
    runtime.EnvInjectionTarget: ["jobName"],
}
"""lists of these are maps: one item for each value of the keys"""
