"""Why a job waits, in one sentence with numbers, from what a real cluster says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mpi_trainer.diagnose.evidence import Event, Evidence, Node, Pod, Quota, Workload
from mpi_trainer.diagnose.waiting import why

UNSCHEDULABLE = (
    "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/"
    "control-plane: }, 2 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: "
    "3 No preemption victims found for incoming pod."
)
REFUSED = (
    'pods "train-worker-0" is forbidden: exceeded quota: team, requested: '
    "requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=8, limited: "
    "requests.nvidia.com/gpu=8"
)
KUEUE = (
    "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in "
    "flavor default, 4 more needed"
)


def pod(name: str = "train-worker-0", **status: Any) -> Pod:
    spec = {
        "nodeName": status.pop("node", ""),
        "schedulingGates": status.pop("gates", []),
        "containers": [
            {"name": "mpi", "image": "quay.io/t/train:1",
             "resources": {"limits": {"nvidia.com/gpu": 2, "memory": "8Gi"}}}
        ],
    }  # fmt: skip
    meta = {"name": name, **({"deletionTimestamp": "2026-11-15T12:00:00Z"}
                             if status.pop("going", False) else {})}  # fmt: skip
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod)


def unplaced(message: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}


def held(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    waiting = {"reason": reason, "message": message}
    container = {"name": "mpi", "image": "quay.io/t/train:1", "state": {"waiting": waiting}, **more}
    return {"node": "n1", "containerStatuses": [container]}


def evidence(*pods: Pod, wanted: int = 3, **more: Any) -> Evidence:
    return Evidence(name="train", wanted=wanted, pods=pods, **more)


def workload(queue: str = "team", *conditions: tuple[str, str, str], **more: Any) -> Workload:
    found = [{"type": t, "status": s, "message": m} for t, s, m in conditions]
    admission = {"clusterQueue": more.pop("by", "")}
    data = {"spec": {"queueName": queue, **more},
            "status": {"conditions": found, "admission": admission}}  # fmt: skip
    return msgspec.convert(data, Workload)


def node(name: str, **allocatable: str) -> Node:
    given = {key.replace("_", "."): value for key, value in allocatable.items()}
    given = {"nvidia.com/gpu" if key == "gpu" else key: value for key, value in given.items()}
    return msgspec.convert({"metadata": {"name": name}, "status": {"allocatable": given}}, Node)


def test_a_job_whose_pods_run_waits_for_nothing() -> None:
    ready = [{"type": "Ready", "status": "True"}]
    pods = [pod(f"p{i}", phase="Running", conditions=ready, node="n1") for i in range(3)]
    assert why(evidence(*pods)) == ""


def test_pods_without_a_node_say_what_each_asks_and_what_nodes_lack() -> None:
    pods = [pod(f"p{i}", **unplaced(UNSCHEDULABLE)) for i in range(2)]
    said = why(evidence(*pods))
    assert said.startswith("2 of 3 pods have no node: each asks for 2 nvidia.com/gpu, 8Gi memory; ")
    assert "of 3 nodes 2 have too little nvidia.com/gpu left" in said
    assert "1 had untolerated taint {node-role.kubernetes.io/control-plane: }" in said
    assert "preemption" not in said


def test_a_pod_that_no_node_could_ever_hold_is_told_so() -> None:
    nodes = (node("a", gpu="1", memory="64Gi"), node("b", gpu="0", memory="64Gi"))
    said = why(evidence(pod(**unplaced(UNSCHEDULABLE)), nodes=nodes))
    assert said.endswith("the largest node has 1 nvidia.com/gpu, so it never can")


def test_a_pod_that_fits_a_full_node_is_not_told_that_it_never_can() -> None:
    nodes = (node("a", gpu="8", memory="64Gi"),)
    assert "never" not in why(evidence(pod(**unplaced(UNSCHEDULABLE)), nodes=nodes))


def test_a_queued_job_says_its_queue_and_kueue_s_own_numbers() -> None:
    waiting = workload("team", ("QuotaReserved", "False", KUEUE))
    said = why(evidence(suspended=True, queue="team", workload=waiting))
    assert said == f"it is in queue `team`: {KUEUE}"


def test_a_preempted_job_says_so() -> None:
    kicked = ("Evicted", "True", "Preempted to accommodate a workload (UID: 1) in the ClusterQueue")
    said = why(evidence(suspended=True, queue="team", workload=workload("team", kicked)))
    assert "it had to make room: Preempted" in said


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (workload("team", active=False), "somebody has set its Workload inactive"),
        (workload("team"), "Kueue has not looked at it yet"),
        (workload("team", ("QuotaReserved", "True", ""), by="gpus"), "an admission check"),
        (
            workload("team", ("QuotaReserved", "True", ""), ("Admitted", "True", ""), by="gpus"),
            "admitted by ClusterQueue `gpus`",
        ),
        (None, "Kueue has not taken notice of it"),
    ],
)
def test_every_stage_of_a_queue_has_its_words(found: Workload | None, words: str) -> None:
    assert words in why(evidence(suspended=True, queue="team", workload=found))


def test_a_suspended_job_without_a_queue_waits_for_a_person() -> None:
    assert "resumes it" in why(evidence(suspended=True))


def test_pods_that_a_quota_refuses_are_told_with_its_numbers() -> None:
    event = msgspec.convert(
        {"type": "Warning", "reason": "FailedCreate", "message": REFUSED}, Event
    )
    said = why(evidence(events=(event,)))
    assert said == (
        "none of its 3 pods exists: quota exceeded: `team` has no room: 8 of 8 "
        "requests.nvidia.com/gpu in use, and 2 more asked for"
    )


def test_a_full_quota_of_pods_is_seen_without_an_event() -> None:
    full = {"metadata": {"name": "few"}, "status": {"hard": {"pods": "2"}, "used": {"pods": "2"}}}
    ready = [{"type": "Ready", "status": "True"}]
    running = [pod(f"p{i}", phase="Running", conditions=ready, node="n") for i in range(2)]
    said = why(evidence(*running, quotas=(msgspec.convert(full, Quota),)))
    assert said == "1 of 3 pods do not exist: quota exceeded: `few` has no room: 2 of 2 pods in use"


def test_a_job_that_nothing_serves_is_told_from_one_that_is_young() -> None:
    assert "no controller has taken notice" in why(evidence(served=False))
    assert why(evidence()) == "none of its 3 pods exists yet"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (held("ImagePullBackOff", "not found"), "cannot get image `quay.io/t/train:1` (ImagePull"),
        (
            held("CreateContainerConfigError", 'secret "s" not found'),
            'cannot start (CreateContainerConfigError): secret "s" not found',
        ),
        (
            held("CrashLoopBackOff", restartCount=4,
                 lastState={"terminated": {"exitCode": 3}}),
            "crash again and again: 4 times, last with exit code 3",
        ),
        (held("ContainerCreating"), "have their node, which starts them"),
        ({"gates": [{"name": "kueue.x-k8s.io/admission"}]}, "held back by kueue.x-k8s.io/a"),
        ({"going": True}, "are being deleted"),
        ({"phase": "Running", "node": "n",
          "conditions": [{"type": "Ready", "status": "False",
                          "message": "containers with unready status: [mpi]"}]},
         "run and are not ready: containers with unready status: [mpi]"),
        ({}, "no scheduler has looked at them yet"),
    ],
)  # fmt: skip
def test_every_way_of_not_running_has_its_words(status: dict[str, Any], words: str) -> None:
    assert words in why(evidence(pod(**status)))


def test_a_volume_that_does_not_come_is_told_by_its_event() -> None:
    message = 'MountVolume.SetUp failed for volume "data" : configmap "data" not found'
    data = {"reason": "FailedMount", "type": "Warning", "message": message,
            "involvedObject": {"kind": "Pod", "name": "train-worker-0"}}  # fmt: skip
    said = why(evidence(pod(**held("ContainerCreating")), events=(msgspec.convert(data, Event),)))
    assert said == f"1 of 3 pods wait for a volume: {message}"


_PREEMPTION = (
    "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not "
    "helpful for scheduling."
)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            f"0/3 nodes are available: 3 node(s) were unschedulable. {_PREEMPTION}",
            "of 3 nodes 3 were unschedulable",
        ),
        (
            f"0/3 nodes are available: 1 Insufficient memory, 3 Insufficient cpu. {_PREEMPTION}",
            "of 3 nodes 3 have too little cpu left, 1 have too little memory left",
        ),
        (
            f'0/3 nodes are available: persistentvolumeclaim "data" not found. {_PREEMPTION}',
            'persistentvolumeclaim "data" not found',
        ),
    ],
)
def test_what_the_scheduler_says_is_neither_garbled_nor_dropped(message: str, words: str) -> None:
    """W-7, W-4: a claim that does not exist is no lack of nodes."""
    said = why(evidence(pod(**unplaced(message)), wanted=1))
    assert said.startswith("1 of 1 pods have no node: ")
    assert said.partition("no node: ")[2].rpartition("; ")[2] == words


def test_several_causes_are_counted_the_most_common_first() -> None:
    placeless = unplaced("0/1 nodes are available: 1 Insufficient cpu.")
    pods = [
        pod("a", **held("ErrImagePull", "x")),
        pod("b", **placeless),
        pod("c", **held("ErrImagePull", "x")),
        pod("d", going=True),
    ]
    said = why(evidence(*pods, wanted=4))
    assert said.startswith("2 of 4 pods cannot get image")
    assert said.endswith("and 1 wait for other things")


def test_a_message_never_floods_the_screen() -> None:
    assert len(why(evidence(pod(**held("X", "y" * 5000))))) < 400


@pytest.mark.parametrize(
    ("reason", "message", "remedy"),
    [
        ("InvalidImageName", "couldn't parse image name", "no name of an image; correct it"),
        ("ErrImageNeverPull", "not present", "imagePullPolicy Never forbids more"),
        ("ErrImagePull", "failed to resolve reference: not found", "; check its name and tag"),
        (
            "ErrImagePull",
            "pull access denied, repository does not exist or may require authorization",
            "name a Secret in imagePullSecrets",
        ),
        ("ImagePullBackOff", "dial tcp: lookup quay.io: no such host", "cannot reach the registry"),
        ("ImagePullBackOff", "Back-off pulling image", "check its name and tag, and that nodes"),
    ],
)
def test_image_that_never_comes_has_a_remedy(reason: str, message: str, remedy: str) -> None:
    """W-9."""
    said = why(evidence(pod(**held(reason, message))))
    assert "cannot get image `quay.io/t/train:1`" in said
    assert remedy in said


def test_image_that_never_comes_is_told_in_the_same_words_at_every_try() -> None:
    """The kubelet changes between two reasons; a wait that prints what is new would not end."""
    error = 'failed to pull "t:1": connection refused'
    prefaced = f'Back-off pulling image "t:1": ErrImagePull: {error}'
    pods = [pod("a", **held("ErrImagePull", error)), pod("b", **held("ImagePullBackOff", prefaced))]
    said = why(evidence(*pods, wanted=2))
    assert said.startswith("2 of 2 pods cannot get image `quay.io/t/train:1` (ImagePullBackOff)")
    assert error in said and "Back-off" not in said
