"""What `kubectl explain mpijob.spec` says of our own fields, with their defaults and values.

Defaults and lists of values are those of the public MPI operator's definition and no more: what it
lets in, this one lets in, and says later, in the job's status, what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mpi_trainer.api.kinds import conditions, mpijob
from mpi_trainer.layout.mpi import REGISTRY

DESCRIPTIONS: Final[Mapping[type, Mapping[str, str]]] = {
    mpijob.MPIJobSpec: {
        "slotsPerWorker": "How many ranks one worker holds; usually its number of GPUs.",
        "runLauncherAsWorker": "The launcher runs ranks too, and is the first host of the job.",
        "runPolicy": "How the job runs, ends and is cleaned up.",
        "mpiReplicaSpecs": "The pods: `Launcher` (exactly one, it runs mpirun) and `Worker`.",
        "sshAuthMountPath": "Where the job's SSH key is mounted. For an image whose user is not "
        "root: that user's ~/.ssh.",
        "launcherCreationPolicy": "When the launcher pod is made: `AtStartup`, with the workers, "
        "or `WaitForWorkersReady`.",
        "mpiImplementation": "The MPI inside the images; host file and environment follow it.",
    },
    mpijob.ReplicaSpec: {
        "replicas": "How many pods. A launcher has exactly one, a Worker at least one.",
        "template": "The pods, as in any Kubernetes workload. The first container is the one that "
        "runs MPI.",
        "restartPolicy": "`Never` or `OnFailure`. A launcher that may restart is tried again, up "
        "to runPolicy.backoffLimit times.",
    },
    mpijob.RunPolicy: {
        "cleanPodPolicy": "Which pods go when the job has ended: `None`, `Running` (those that "
        "still run) or `All`.",
        "ttlSecondsAfterFinished": "The MPIJob is deleted this long after it ended; never, where "
        "not set.",
        "activeDeadlineSeconds": "The job fails once it has been started for this long.",
        "backoffLimit": "How many times the job is tried again before it has failed; 6 where not "
        "set.",
        "schedulingPolicy": "All pods or none: for clusters with gang scheduling.",
        "suspend": "The job holds no pods while this is true; it starts anew when it becomes "
        "false. Queues such as Kueue set it.",
        "managedBy": "Who runs the job: `kubeflow.org/mpi-operator`, where not set, or "
        "`kueue.x-k8s.io/multikueue`, which runs it on another cluster.",
    },
    mpijob.SchedulingPolicy: {
        "minAvailable": "How many pods must be placed at once; all, where not set.",
        "queue": "The queue, where the scheduler has queues.",
        "minResources": "What must be free at once; the sum of the pods' requests, where not set.",
        "priorityClass": "The group's priority class, where the scheduler has them.",
        "scheduleTimeoutSeconds": "How long the pods may wait for a place together.",
    },
    mpijob.MPIJobStatus: {
        "conditions": "What has been observed. The last one tells where the job stands.",
        "replicaStatuses": "How many pods run, succeeded and failed, for launcher and workers.",
        "startTime": "When the job began, or began anew after a suspension.",
        "completionTime": "When the job ended, well or not.",
        "lastReconcileTime": "When the controller last changed this status.",
    },
    conditions.Condition: {
        "type": "Created, Running, Restarting, Suspended, Succeeded or Failed.",
        "status": "Whether it holds.",
        "reason": "One word for why.",
        "message": "A sentence for a person: what happened, on which rank and host, what to do.",
        "lastUpdateTime": "When anything here last changed.",
        "lastTransitionTime": "When `status` last changed.",
    },
    mpijob.ReplicaStatus: {
        "active": "Pods that run.",
        "succeeded": "Pods that ended well.",
        "failed": "Pods that failed.",
        "selector": "The label selector that finds the pods.",
        "labelSelector": "Not used; see `selector`.",
    },
}
KINDS: Final[Mapping[type, str]] = {
    mpijob.MPIJobSpec: "What to run: a launcher, its workers and the MPI between them.",
    mpijob.MPIJobStatus: "What has become of the job; written by the controller alone.",
}
DEFAULTS: Final[Mapping[type, Mapping[str, Any]]] = {
    mpijob.MPIJobSpec: {
        "slotsPerWorker": 1,
        "runLauncherAsWorker": False,
        "sshAuthMountPath": "/root/.ssh",
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "OpenMPI",
    },
    mpijob.RunPolicy: {"suspend": False},
}
VALUES: Final[Mapping[type, Mapping[str, list[str]]]] = {
    mpijob.MPIJobSpec: {"mpiImplementation": [each.name for each in REGISTRY]},
    conditions.Condition: {"status": ["True", "False", "Unknown"]},
}
REQUIRED: Final[Mapping[type, list[str]]] = {
    mpijob.MPIJobSpec: ["mpiReplicaSpecs"],
    conditions.Condition: ["status", "type"],
}
MAP_KEYS: Final[Mapping[type, list[str]]] = {conditions.Condition: ["type"]}
"""lists of these are maps: one item for each value of the keys"""
