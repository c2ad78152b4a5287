"""What Kubernetes says of pods: in events, conditions and container states, and in logs."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import HOST, PROOF, STARTUP, Cause, Detail, Rule, said

CAUSES: Final = (
    Cause(
        "ImagePullFailed",
        "An image cannot be pulled",
        "The name or tag is wrong, the registry wants credentials, or nodes cannot reach it.",
        "Correct `image`, or name a Secret with the registry's credentials in `imagePullSecrets`.",
    ),
    Cause(
        "ContainerStartFailed",
        "A container could not be created",
        "A ConfigMap, Secret or key that it names is missing, or its security settings forbid it.",
        "Correct the field that the message names, or create what is missing.",
    ),
    Cause(
        "VolumeFailed",
        "A volume cannot be mounted",
        "The claim does not exist or is not bound, or another node holds the volume.",
        "Check it with `kubectl describe pvc NAME`; a volume for several workers needs the access "
        "mode ReadWriteMany.",
    ),
    Cause(
        "QuotaExceeded",
        "The namespace's quota has no room",
        "A ResourceQuota or LimitRange forbids pods of this size or number.",
        "Ask for less (`--workers`, `--cpu`, `--memory`, `--gpu`), or have the quota raised: "
        "`kubectl describe quota`.",
    ),
    Cause(
        "NoNodeFits",
        "No node has room for a pod",
        "The requests are greater than what any node has free, or selectors and taints exclude "
        "all.",
        "Ask for less (`resources.requests`), or correct `nodeSelector` and `tolerations`.",
    ),
    Cause(
        "Evicted",
        "A node evicted a pod",
        "The node ran out of memory, disk or process ids, or is being drained.",
        "Set `resources.requests` to what a rank uses, `ephemeral-storage` too, and "
        "`runPolicy.backoffLimit` (`--retries`) so that the job starts again.",
        ("WorkerLost", "RankTerminated"),
    ),
    Cause(
        "Preempted",
        "A pod had to make room for a more important one",
        "The scheduler or Kueue took its place for a higher priority.",
        "Give the job a higher `priorityClassName`, or let it start again and go on from "
        "checkpoints.",
        ("Evicted", "WorkerLost", "RankTerminated"),
    ),
    Cause(
        "NodeLost",
        "A node is gone or does not answer",
        "The machine was stopped or lost its network; its pods are given up after some minutes.",
        "Check it with `kubectl get nodes`, and set `runPolicy.backoffLimit` (`--retries`).",
        ("WorkerLost", "WorkerUnreachable"),
    ),
    Cause(
        "PodDeleted",
        "A pod of the job was deleted",
        "Somebody, or another controller, deleted it while the job ran.",
        "Start the job again (`odh mpijob restart NAME`); `kubectl get events` may say who it was.",
        ("WorkerLost",),
    ),
)

RULES: Final = (
    *said(
        "ImagePullFailed",
        PROOF,
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "ErrImageNeverPull",
        "Failed to pull image",
        "manifest unknown",
    ),
    *said(
        "ContainerStartFailed",
        PROOF,
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "ContainerCannotRun",
        "failed to create containerd task",
        "OCI runtime create failed",
        "container has runAsNonRoot and image will run as root",
    ),
    *said(
        "VolumeFailed",
        PROOF,
        "FailedMount",
        "FailedAttachVolume",
        "MountVolume.SetUp failed",
        "Multi-Attach error for volume",
        "Unable to attach or mount volumes",
    ),
    *said("QuotaExceeded", PROOF, "exceeded quota:"),
    *said("NoNodeFits", STARTUP, "FailedScheduling"),
    Rule(
        "NoNodeFits",
        STARTUP,
        "nodes are available:",
        r"^0/\d{1,9} nodes are available:",
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",),
    ),
    *said(
        "Evicted",
        PROOF,
        "The node was low on resource",
        "TaintManagerEviction",
        "Pod ephemeral local storage usage exceeds",
        "exceeded its local ephemeral storage limit",
        "EvictionByEvictionAPI",
        "DeletionByTaintManager",
        "TerminationByKubelet",
    ),
    # What kubectl says where it takes the place of ssh.
    Rule(
        "PodDeleted",
        STARTUP,
        "Error from server (NotFound): pods",
        rf'^Error from server \(NotFound\): pods "{HOST}" not found',
        ('Error from server (NotFound): pods "train-worker-0" not found',),
    ),
    *said("Preempted", PROOF + 1, "PreemptionByScheduler", "Preempted in order to admit"),
    *said("NodeLost", PROOF, "NodeNotReady", "NodeLost", "Node is not ready", "NodeShutdown"),
)

BY_REASON: Final = {
    "OOMKilled": "OutOfMemory",
    "Evicted": "Evicted",
    "Preempting": "Preempted",
    "Preempted": "Preempted",
    "PreemptionByScheduler": "Preempted",
    "PreemptionByKueueScheduler": "Preempted",
    "DeletionByTaintManager": "NodeLost",
    "DeletionByPodGC": "NodeLost",
    "EvictionByEvictionAPI": "Evicted",
    "TerminationByKubelet": "Evicted",
    "NodeLost": "NodeLost",
    "NodeShutdown": "NodeLost",
    "Terminated": "NodeLost",
    "NodeNotReady": "NodeLost",
    "DeadlineExceeded": "TimeLimit",
    "ImagePullBackOff": "ImagePullFailed",
    "ErrImagePull": "ImagePullFailed",
    "InvalidImageName": "ImagePullFailed",
    "ErrImageNeverPull": "ImagePullFailed",
    "CreateContainerConfigError": "ContainerStartFailed",
    "CreateContainerError": "ContainerStartFailed",
    "RunContainerError": "ContainerStartFailed",
    "ContainerCannotRun": "ContainerStartFailed",
    "StartError": "ProgramNotFound",
    "FailedMount": "VolumeFailed",
    "FailedAttachVolume": "VolumeFailed",
    "FailedScheduling": "NoNodeFits",
    "Unschedulable": "NoNodeFits",
    "PodDeleted": "PodDeleted",
}
"""What the reasons of container states, conditions and events prove."""

BY_START: Final = (
    ("permission denied", "ProgramNotExecutable"),
    ("is a directory", "ProgramNotExecutable"),
    ("exec format error", "ProgramWrongArchitecture"),
    ("chdir to cwd", "WorkingDirectoryMissing"),
    ("error mounting", "VolumeFailed"),
    ("nvidia-container-cli", "GpuUnavailable"),
)
"""What the runtime's message of a container that did not start proves; else it is `BY_REASON`'s."""

BY_WAITING: Final = (
    ("exceeded quota", "QuotaExceeded"),
    ("quota exceeded", "QuotaExceeded"),
    ("cannot get image", "ImagePullFailed"),
    ("cannot get an image", "ImagePullFailed"),
    ("wait for a volume", "VolumeFailed"),
    ("persistentvolumeclaim", "VolumeFailed"),
    ("cannot start (", "ContainerStartFailed"),
    ("DNS has known no name", "NameResolution"),
)
"""What a job's own message proves that has waited too long for pods or workers (`pod_waiting`)."""

DETAILS: Final[tuple[Detail, ...]] = ()
BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final[tuple[str, ...]] = ()
