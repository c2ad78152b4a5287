"""The jobs that admission must refuse, and those near to them that it must take. Data only.

A case is its area of CTL-4, changes to a sound job, and a part of the words that are expected.
"""

from __future__ import annotations

from typing import Any

from mpi_trainer.api.errors import Path
from tests.unit.api.building import changed

Change = tuple[Path, Any]
Refused = tuple[int, tuple[Change, ...], str]
Taken = tuple[int, tuple[Change, ...]]

ROLES: Path = ("spec", "mpiReplicaSpecs")
POLICY: Path = ("spec", "runPolicy")
GANG: Path = (*POLICY, "schedulingPolicy")
POD: Path = (*ROLES, "Worker", "template", "spec")
LAUNCHER: Path = (*ROLES, "Launcher", "template", "spec")
MAIN: Path = (*POD, "containers", 0)
META: Path = ("metadata",)
RESOURCES: Path = (*MAIN, "resources")

DOMAIN = "mpi-trainer.opendatahub.io"
NETWORK = f"{DOMAIN}/network-policy"
EGRESS = f"{DOMAIN}/network-egress"
MULTUS = "k8s.v1.cni.cncf.io/networks"


def one(area: int, path: Path, value: Any, words: str) -> Refused:
    return area, ((path, value),), words


def closed(path: Path, words: str) -> Refused:
    """A job that closes its network and leaves it at this path."""
    return 4, (((*META, "annotations"), {NETWORK: "restricted"}), (path, True)), words


def fine(area: int, *changes: Change) -> Taken:
    return area, changes


REFUSED: list[Refused] = [
    # 1 resources
    one(1, RESOURCES, {"requests": {"cpu": "4"}, "limits": {"cpu": "2"}}, "at most its limit 2"),
    one(1, RESOURCES, {"limits": {"nvidia.com/gpu": "1.5"}}, "must be a whole number"),
    one(1, RESOURCES, {"requests": {"nvidia.com/gpu": 1}}, "needs an equal limit"),
    one(1, RESOURCES, {"limits": {"gpu": 1}}, "for GPUs use `nvidia.com/gpu`"),
    one(1, RESOURCES, {"limits": {"cpu": "-1"}}, "must not be negative"),
    one(1, RESOURCES, {"limits": {"memory": "16 GB"}}, "limits.memory"),
    # 2 slots
    one(2, ("spec", "slotsPerWorker"), 0, "slotsPerWorker: Invalid value: 0: must be at least 1"),
    one(2, ("spec", "slotsPerWorker"), -4, "set it to the number of ranks per worker"),
    one(2, (*ROLES, "Worker", "replicas"), 0, "Worker.replicas: Invalid value: 0"),
    one(2, (*ROLES, "Worker", "replicas"), -2, "must be at least 1"),
    one(2, (*ROLES, "Worker", "replicas"), 2**31 - 1, "must be at most 10000"),
    one(2, (*ROLES, "Launcher", "replicas"), 2, "a job has one launcher pod"),
    # 3 implementation and MPI settings
    one(3, ("spec", "mpiImplementation"), "OpenMpi", "mpiImplementation: Unsupported value"),
    one(3, ("spec", "mpiImplementation"), "IntelMPI", "mpiImplementation: Unsupported value"),
    one(3, ("spec", "sshAuthMountPath"), "/root:/x", "must not contain `:`"),
    one(3, ("spec", "launcherCreationPolicy"), "Later", "must be one of AtStartup"),
    one(3, (*ROLES, "worker"), {"replicas": 2}, "did you mean `Worker`?"),
    # 4 network
    one(4, (*META, "annotations"), {NETWORK: "strict"}, "must be one of restricted, none"),
    one(4, (*META, "annotations"), {NETWORK: "Restricted"}, "did you mean `restricted`?"),
    one(4, (*META, "annotations"), {NETWORK: ""}, "use one of them"),
    one(4, (*META, "annotations"), {f"{DOMAIN}/networkpolicy": ""}, f"did you mean `{NETWORK}`"),
    one(4, (*META, "annotations"), {f"{DOMAIN}/egress": "none"}, "known are agent, ssh, network-"),
    closed((*POD, "hostNetwork"), "Worker.template.spec.hostNetwork: Forbidden"),
    one(4, (*META, "annotations"), {EGRESS: "10.0.0.1"}, "must be all, none, cluster, or ranges"),
    closed((*LAUNCHER, "hostNetwork"), "no NetworkPolicy holds in a node's network"),
    # 5 run policy
    one(5, (*POLICY, "cleanPodPolicy"), "running", "did you mean `Running`?"),
    one(5, (*POLICY, "ttlSecondsAfterFinished"), -1, "ttlSecondsAfterFinished: Invalid value: -1"),
    one(5, (*POLICY, "activeDeadlineSeconds"), -5, "activeDeadlineSeconds: Invalid value: -5"),
    one(5, (*POLICY, "backoffLimit"), -1, "backoffLimit: Invalid value: -1"),
    one(5, (*POLICY, "managedBy"), "someone/else", "managedBy: Unsupported value"),
    one(5, (*ROLES, "Worker", "restartPolicy"), "Always", "restartPolicy: Unsupported value"),
    # 6 scheduling policy
    one(6, (*GANG, "minAvailable"), 9, "must be at most 3, the pods of the job"),
    one(6, (*GANG, "minAvailable"), -1, "minAvailable: Invalid value: -1"),
    one(6, (*GANG, "scheduleTimeoutSeconds"), -1, "set the seconds to wait"),
    one(6, (*GANG, "queue"), "Team A", "queue: Invalid value"),
    one(6, (*GANG, "priorityClass"), "High!", "priorityClass: Invalid value"),
    one(6, (*GANG, "minResources"), {"cpu": "-2"}, "must not be negative"),
    # 7 containers
    one(7, (*POD, "containers"), [], "must have at least one container"),
    one(7, (*MAIN, "image"), "", "a container must have an image"),
    one(7, (*MAIN, "name"), "Main", "containers[0].name: Invalid value"),
    one(7, (*MAIN, "workingDir"), "work", "must be an absolute path"),
    one(7, (*MAIN, "env"), [{"name": "A=B", "value": "x"}], "env[0].name: Invalid value"),
    one(7, (*MAIN, "envFrom"), [{}], "must have either configMapRef or secretRef"),
    one(7, (*MAIN, "volumeMounts"), [{"name": "no", "mountPath": "/x"}], "has no volume of this"),
    one(7, (*POD, "volumes"), [{"name": "ssh-auth", "emptyDir": {}}], "adds a volume of this name"),
    one(7, (*MAIN, "imagePullPolicy"), "Sometimes", "imagePullPolicy"),
    one(7, (*POD, "activeDeadlineSeconds"), -1, "activeDeadlineSeconds"),
    one(7, (*POD, "dnsPolicy"), "Mine", "dnsPolicy"),
    # 9 security
    one(9, (*MAIN, "securityContext", "runAsUser"), -1, "runAsUser: Invalid value: -1"),
    one(9, (*MAIN, "securityContext", "runAsUser"), 0, "user 0 is root, and runAsNonRoot is set"),
    one(9, (*MAIN, "securityContext", "procMount"), "Open", "procMount: Unsupported value"),
    one(9, (*MAIN, "securityContext", "privileged"), True, "remove `privileged: true`"),
    one(9, (*POD, "securityContext"), {"fsGroup": -1}, "fsGroup: Invalid value: -1"),
    one(
        9,
        (*MAIN, "securityContext", "seccompProfile"),
        {"type": "Localhost"},
        "localhostProfile: Required value",
    ),
    # 9 what the namespace does not allow, in its own words
    one(9, (*MAIN, "securityContext"), {}, "the namespace allows restricted pods only"),
    one(9, (*MAIN, "securityContext"), {}, 'must set securityContext.capabilities.drop=["ALL"]'),
    one(
        9,
        (*MAIN, "securityContext", "capabilities"),
        {"add": ["SYS_ADMIN"]},
        "unrestricted capabilities",
    ),
    one(9, (*POD, "hostNetwork"), True, "host namespaces"),
    one(9, (*POD, "hostPID"), True, "host namespaces"),
    one(
        9, (*POD, "volumes"), [{"name": "h", "hostPath": {"path": "/"}}], "restricted volume types"
    ),
    one(9, (*LAUNCHER, "hostIPC"), True, "Launcher.template.spec.securityContext: Forbidden"),
    # 10 labels, annotations, names
    one(10, (*META, "labels"), {"team": "a b"}, "metadata.labels"),
    one(10, (*META, "labels"), {"-x": "a"}, "metadata.labels"),
    one(10, (*META, "annotations"), {"a b": "x"}, "annotations"),
    one(10, (*META, "annotations"), {f"{DOMAIN}/agnet": "off"}, f"did you mean `{DOMAIN}/agent`?"),
    one(10, (*META, "annotations"), {f"{DOMAIN}/agent": "none"}, "full, environment, off"),
    one(10, (*META, "annotations"), {f"{DOMAIN}/wait-seconds": "2m"}, "must be whole seconds"),
    one(10, (*META, "name"), "x" * 60, "use at most 54 characters"),
    one(10, (*META, "name"), "1st-job", "must"),
    one(
        10,
        (*ROLES, "Worker", "template", "metadata"),
        {"labels": {"team": "a b"}},
        "template.metadata.labels.team: Invalid value",
    ),
]

TAKEN: list[Taken] = [
    fine(1, (RESOURCES, {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}})),
    fine(1, (RESOURCES, {"limits": {"nvidia.com/gpu": 2}})),
    fine(1, (RESOURCES, {"limits": {"memory": "1.5Gi", "cpu": "500m"}})),
    fine(2, (("spec", "slotsPerWorker"), 1)),
    fine(2, (("spec", "slotsPerWorker"), 8)),
    fine(2, ((*ROLES, "Worker", "replicas"), 64)),
    fine(3, (("spec", "mpiImplementation"), "Intel")),
    fine(3, (("spec", "mpiImplementation"), "MPICH")),
    fine(3, (("spec", "sshAuthMountPath"), "/home/mpiuser/.ssh")),
    fine(3, (("spec", "launcherCreationPolicy"), "WaitForWorkersReady")),
    fine(4, ((*META, "annotations"), {NETWORK: "restricted"})),
    fine(4, ((*META, "annotations"), {NETWORK: "none"})),
    fine(4, ((*META, "annotations"), {"example.com/network-policy": "strict"})),
    fine(4, ((*ROLES, "Worker", "template", "metadata"), {"annotations": {MULTUS: "rdma"}})),
    fine(5, ((*POLICY, "cleanPodPolicy"), "Running")),
    fine(5, ((*POLICY, "ttlSecondsAfterFinished"), 0)),
    fine(5, ((*POLICY, "backoffLimit"), 0)),
    fine(5, ((*POLICY, "managedBy"), "kueue.x-k8s.io/multikueue")),
    fine(5, ((*POLICY, "suspend"), True)),
    fine(6, ((*GANG, "minAvailable"), 3)),
    fine(6, ((*GANG, "scheduleTimeoutSeconds"), 0)),
    fine(6, ((*GANG, "queue"), "team-a")),
    fine(7, ((*MAIN, "workingDir"), "/work")),
    fine(7, ((*MAIN, "env"), [{"name": "A", "value": "x"}, {"name": "B.C", "value": "y"}])),
    fine(
        7,
        ((*POD, "volumes"), [{"name": "d", "emptyDir": {}}]),
        ((*MAIN, "volumeMounts"), [{"name": "d", "mountPath": "/d"}]),
    ),
    fine(9, ((*MAIN, "securityContext", "runAsUser"), 1000740000)),
    fine(9, ((*POD, "securityContext"), {"fsGroup": 1000740000})),
    fine(9, ((*MAIN, "securityContext", "capabilities"), {"drop": ["ALL"]})),
    fine(10, ((*META, "labels"), {"team": "a.b_c-d"})),
    fine(10, ((*META, "annotations"), {"example.com/Any": "text with spaces, ünïcode"})),
    fine(10, ((*META, "annotations"), {f"{DOMAIN}/agent": "off", f"{DOMAIN}/lost-seconds": "0"})),
    fine(10, ((*META, "annotations"), {f"{DOMAIN}/record": "{}"})),
    fine(10, ((*META, "name"), "x" * 54)),
    fine(10, ((*ROLES, "Worker", "template", "metadata"), {"labels": {"team": "a"}})),
]


def job(name: str, *changes: Change) -> dict[str, Any]:
    """A sound job for a restricted namespace, changed."""
    data: dict[str, Any] = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {"mpiReplicaSpecs": {"Launcher": _role(), "Worker": {"replicas": 2, **_role()}}},
    }
    return changed(data, changes)


def _role() -> dict[str, Any]:
    security = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "main",
        "image": "example.com/train:1",
        "command": ["mpirun", "train"],
        "securityContext": security,
    }
    return {"template": {"spec": {"containers": [container]}}}
