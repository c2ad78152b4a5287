"""Defaults as a patch, and the judgement of a job by itself (AC-20, CTL-4)."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from mpi_trainer.webhook import review
from mpi_trainer.webhook.mpijob.judge import judge, mutation
from tests.unit.api.building import GANG, POD, POLICY, job


def request(
    new: dict[str, Any], old: dict[str, Any] | None = None, namespace: str = "team"
) -> review.AdmissionRequest:
    operation = review.CREATE if old is None else review.UPDATE
    kind = review.GroupVersionKind(group="kubeflow.org", version="v2beta1", kind="MPIJob")
    return review.AdmissionRequest(
        uid="1",
        kind=kind,
        operation=operation,
        namespace=namespace,
        name=new["metadata"].get("name", ""),
        object=new,
        old_object=old,
    )


def applied(data: dict[str, Any], steps: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """What the API server makes of the patch; only `add` to objects, which is all we send."""
    changed: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(data))
    for step in steps:
        assert step["op"] == "add"
        *parents, last = (
            part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]
        )
        place = changed
        for part in parents:
            place = place[part]
        place[last] = step["value"]
    return changed


def test_defaults_are_written_out_and_then_there_is_nothing_left_to_write() -> None:
    once = applied(job(), mutation(request(job()), kueue=False))
    assert once["spec"]["mpiImplementation"] == "OpenMPI"
    assert once["spec"]["runPolicy"]["cleanPodPolicy"] == "None"
    assert once["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] == "OnFailure"
    assert mutation(request(once), kueue=False) == ()


def test_nothing_that_was_written_is_changed() -> None:
    given = job((("spec", "slotsPerWorker"), 4), ((*POLICY, "suspend"), True))
    assert applied(given, mutation(request(given), kueue=False))["spec"]["slotsPerWorker"] == 4
    assert all("template" not in step["path"] for step in mutation(request(given), kueue=False))


def test_queue_of_the_policy_becomes_kueues_label_where_kueue_is() -> None:
    """AC-12."""
    given = job(((*GANG, "queue"), "team-a"), (("metadata", "labels"), {"x": "y"}))
    labels = applied(given, mutation(request(given), kueue=True))["metadata"]["labels"]
    assert labels == {"x": "y", "kueue.x-k8s.io/queue-name": "team-a"}
    assert applied(given, mutation(request(given), kueue=False))["metadata"]["labels"] == {"x": "y"}


def test_a_label_that_is_there_wins_over_the_policy() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "mine"}
    given = job(((*GANG, "queue"), "team-a"), (("metadata", "labels"), labels))
    assert applied(given, mutation(request(given), kueue=True))["metadata"]["labels"] == labels


def test_every_error_is_in_the_response_with_its_field_as_a_cause() -> None:
    asked = request(job((("spec", "slotsPerWorker"), 0), ((*POLICY, "backoffLimit"), -1)))
    answer = review.refused(asked, judge(asked).errors)["response"]
    assert not answer["allowed"]
    assert [c["field"] for c in answer["status"]["details"]["causes"]] == [
        "spec.slotsPerWorker",
        "spec.runPolicy.backoffLimit",
    ]
    assert (
        "MPIJob train is invalid:\n* spec.slotsPerWorker: Invalid" in (answer["status"]["message"])
    )


def test_an_update_that_leaves_the_spec_alone_is_never_refused() -> None:
    broken = job((("spec", "slotsPerWorker"), 0))
    relabelled = {**broken, "metadata": {"name": "train", "labels": {"a": "b"}}}
    assert judge(request(relabelled, old=broken)).errors == ()
    assert judge(request(broken, old=job())).errors


def test_a_job_that_is_being_deleted_may_lose_its_finalizers() -> None:
    gone = job((("metadata", "deletionTimestamp"), "2026-01-01T00:00:00Z"))
    gone["spec"]["slotsPerWorker"] = 0
    assert judge(request(gone, old=job())).errors == ()


def test_garbage_is_refused_and_not_an_exception() -> None:
    garbled: list[dict[str, Any]] = [{"metadata": {}}, {"metadata": {"name": 5}, "spec": []}]
    for garbage in garbled:
        asked = request(garbage)
        assert judge(asked).errors
        assert mutation(asked, kueue=True) == ()


def test_warnings_are_cut_to_what_the_api_server_passes_on() -> None:
    long = job(
        *(((*POLICY, "schedulingPolicy", "minAvailable"), 3),),
        (("spec", "launcherCreationPolicy"), "WaitForWorkersReady"),
    )
    verdict = judge(request(long))
    answer = review.allowed(request(long), verdict.warnings * 40)["response"]
    assert all(len(line) <= 256 for line in answer["warnings"])
    assert sum(map(len, answer["warnings"])) <= 4096


def test_patch_is_sent_as_the_api_server_reads_it() -> None:
    asked = request(job())
    answer = review.allowed(asked, patch=mutation(asked, kueue=False))["response"]
    assert answer["patchType"] == "JSONPatch"
    steps = msgspec.json.decode(base64.b64decode(answer["patch"]))
    assert {"op": "add", "path": "/spec/slotsPerWorker", "value": 1} in steps


NETWORK = "mpi-trainer.opendatahub.io/network-policy"
UNKNOWN = "mpi-trainer.opendatahub.io/from-another-version"


def annotated(*changes: Any, **annotations: str) -> dict[str, Any]:
    names = {"network": NETWORK, "unknown": UNKNOWN}
    given = {names[key]: value for key, value in annotations.items()}
    return job((("metadata", "annotations"), given), *changes)


def test_our_annotations_are_judged_when_they_change() -> None:
    """CTL-4 area 4: the setting is no part of the spec."""
    said = [str(e) for e in judge(request(annotated(network="strict"), job())).errors]
    assert len(said) == 1
    assert "must be one of restricted, none" in said[0]
    on_node = ((*POD, "hostNetwork"), True)
    closed = request(annotated(on_node, network="restricted"), job(on_node))
    assert "no NetworkPolicy holds" in str(judge(closed).errors)


def test_an_annotation_that_another_version_knew_holds_nothing_up() -> None:
    old = annotated(unknown="x")
    suspended = annotated(((*POLICY, "suspend"), True), unknown="x")
    assert judge(request(suspended, old)).errors == ()
    labelled = annotated((("metadata", "labels"), {"a": "b"}), unknown="x")
    assert judge(request(labelled, old)).errors == ()
    assert judge(request(annotated(unknown="y", network="strict"), old)).errors
