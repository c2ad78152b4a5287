"""What is refused and what is taken, by kubectl, on the real API server (CTL-4, AC-20, SC-006)."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.api.admission.cases import REFUSED, ROLES, TAKEN, Change, job
from tests.api.admission.serving import Server, quota
from tests.cluster import Kubectl, eventually

QUEUES: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "localqueues.kueue.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements"},
    },
    "spec": {
        "group": "kueue.x-k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "localqueues", "singular": "localqueue", "kind": "LocalQueue"},
        "versions": [
            {
                "name": "v1beta2",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
"""enough of Kueue for the API server to know its group"""
DENIED = re.compile(r"(?=Error from server)")


def tried(kubectl: Kubectl, *jobs: dict[str, Any]) -> str:
    """What kubectl says of jobs that are applied for a try only."""
    document = {"apiVersion": "v1", "kind": "List", "items": list(jobs)}
    answer = kubectl.attempt(
        "apply", "--dry-run=server", "-f", "-", data=json.dumps(document), seconds=110
    )
    return answer.stdout + answer.stderr


def named(n: int, changes: tuple[Change, ...]) -> dict[str, Any]:
    made = job(f"case-{n}")
    name = made["metadata"]["name"]
    changed = job(name, *changes)
    if any(path[:2] == ("metadata", "name") for path, _ in changes):
        return changed
    changed["metadata"]["name"] = name
    return changed


def test_every_bad_job_is_refused_with_field_problem_and_remedy(
    webhook: Server, namespace: Kubectl
) -> None:
    jobs = [named(n, changes) for n, (_, changes, _) in enumerate(REFUSED)]
    said = DENIED.split(tried(namespace, *jobs))[1:]
    assert len(said) == len(REFUSED)
    for (area, changes, words), text in zip(REFUSED, said, strict=True):
        assert words in text, (area, changes, text)
        if "denied the request" in text:
            lines = [line for line in text.splitlines() if line.startswith("* ")]
            assert lines, text
            assert all("; " in line and ": " in line for line in lines), text


def test_every_sound_job_is_taken(webhook: Server, namespace: Kubectl) -> None:
    jobs = [named(n, changes) for n, (_, changes) in enumerate(TAKEN)]
    said = tried(namespace, *jobs)
    assert "Error" not in said
    assert said.count("created (server dry run)") == len(TAKEN)


def test_service_account_that_comes_later_is_warned_about(
    webhook: Server, namespace: Kubectl
) -> None:
    """U-4: the public operator takes such a job."""
    late = ((*ROLES, "Worker", "template", "spec", "serviceAccountName"), "late")
    said = tried(namespace, named(0, (late,)))
    assert "created (server dry run)" in said
    assert "kubectl create serviceaccount late" in said


def test_fields_that_harden_a_pod_are_taken(webhook: Server, namespace: Kubectl) -> None:
    """W-3: they were refused as unknown."""
    pod = (*ROLES, "Worker", "template", "spec")
    own = (*pod, "containers", 0, "securityContext")
    options = {"seLinuxOptions": {"level": "s0:c1,c2"}, "windowsOptions": {"hostProcess": False}}
    said = tried(
        namespace,
        named(1, (((*own, "readOnlyRootFilesystem"), True),)),
        named(2, (((*own, "seLinuxOptions"), {"level": "s0:c1,c2"}),)),
        named(3, (((*pod, "securityContext"), {**options, "seLinuxChangePolicy": "Recursive"}),)),
    )
    assert said.count("created (server dry run)") == 3, said


def test_the_tables_cover_every_area() -> None:
    assert (len(REFUSED) >= 60, len(TAKEN) >= 25) == (True, True)
    refused = [area for area, _, _ in REFUSED]
    taken = [area for area, _ in TAKEN]
    for area in (1, 2, 3, 4, 5, 6, 7, 9, 10):
        assert refused.count(area) >= 5, area
        assert taken.count(area) >= 2, area


GPUS: tuple[Change, ...] = (
    (
        (*ROLES, "Worker", "template", "spec", "containers", 0, "resources"),
        {"limits": {"nvidia.com/gpu": 2}},
    ),
)


def test_more_gpus_than_the_quota_is_refused_with_the_numbers(
    webhook: Server, namespace: Kubectl
) -> None:
    """CTL-4 area 8, REQUIREMENTS §5."""
    quota(namespace, {"requests.nvidia.com/gpu": "8"})
    said = tried(namespace, job("big", *GPUS, ((*ROLES, "Worker", "replicas"), 8)))
    assert "asks for 16 requests.nvidia.com/gpu (8 workers x 2); quota `team` allows 8" in said
    assert "0 in use by 0 jobs, 8 left; use at most 4 workers" in said
    assert "created" in tried(namespace, job("fits", *GPUS, ((*ROLES, "Worker", "replicas"), 4)))
    suspended = (("spec", "runPolicy", "suspend"), True)
    later = job("later", *GPUS, ((*ROLES, "Worker", "replicas"), 8), suspended)
    assert "created" in tried(namespace, later)


def test_a_quota_that_every_container_must_answer_is_explained(
    webhook: Server, namespace: Kubectl
) -> None:
    quota(namespace, {"limits.memory": "64Gi"})
    said = tried(namespace, job("silent"))
    assert "quota `team` counts limits.memory" in said
    assert "add requests and limits" in said


def test_a_limit_range_is_told_in_its_own_numbers(webhook: Server, namespace: Kubectl) -> None:
    namespace.apply(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "small"},
            "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
        }
    )
    asked = ((*ROLES, "Worker", "template", "spec", "containers", 0, "resources"),)
    said = tried(namespace, job("large", (asked[0], {"limits": {"cpu": "4"}})))
    assert "the namespace's LimitRange: maximum cpu usage per Container is 1" in said


def test_defaults_are_in_the_stored_job_and_the_queue_label_only_with_kueue(
    webhook: Server, namespace: Kubectl
) -> None:
    namespace.apply(job("plain", (("spec", "runPolicy", "schedulingPolicy", "queue"), "q")))
    stored = namespace.get("mpijob", "plain")
    assert stored["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] == "OnFailure"
    assert "kueue.x-k8s.io/queue-name" not in stored["metadata"].get("labels", {})


def test_the_queue_of_the_scheduling_policy_becomes_the_label_that_kueue_reads(
    webhook: Server, namespace: Kubectl
) -> None:
    """AC-12: Kueue's own label, where the API server knows Kueue's kinds."""

    def labels(*changes: Any) -> dict[str, str]:
        queued = job("queued", (("spec", "runPolicy", "schedulingPolicy", "queue"), "q"), *changes)
        made = namespace(
            "create", "--dry-run=server", "-o", "json", "-f", "-", data=json.dumps(queued)
        )
        found: dict[str, str] = json.loads(made)["metadata"].get("labels", {})
        return found

    name = "kueue.x-k8s.io/queue-name"
    namespace.apply(QUEUES)
    try:
        eventually("the webhook knows of Kueue", lambda: labels() == {name: "q"}, 60)
        own = (("metadata", "labels"), {"team": "a"})
        assert labels(own) == {"team": "a", name: "q"}
        chosen = (("metadata", "labels"), {name: "another"})
        assert labels(chosen) == {name: "another"}, "a label that is there wins"
    finally:
        namespace("delete", "crd", QUEUES["metadata"]["name"], "--wait=false")


def test_manager_of_a_job_is_fixed_and_a_running_jobs_template_too(
    webhook: Server, namespace: Kubectl
) -> None:
    namespace.apply(job("kept"))
    patch = json.dumps({"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}})
    said = namespace.attempt("patch", "mpijob", "kept", "--type=merge", "-p", patch).stderr
    assert "a job keeps its manager" in said
    status = json.dumps({"status": {"startTime": "2026-01-01T00:00:00Z"}})
    namespace("patch", "mpijob", "kept", "--type=merge", "--subresource=status", "-p", status)
    slots = json.dumps({"spec": {"slotsPerWorker": 3}})
    said = namespace.attempt("patch", "mpijob", "kept", "--type=merge", "-p", slots).stderr
    assert "spec.slotsPerWorker: Forbidden: 3: is 1 in the pods that run" in said
    both = json.dumps({"spec": {"slotsPerWorker": 3, "runPolicy": {"suspend": True}}})
    namespace("patch", "mpijob", "kept", "--type=merge", "-p", both)
    namespace("label", "mpijob", "kept", "team=a")
