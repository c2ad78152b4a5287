"""What the store keeps of pods and Jobs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mpi_trainer.controller import stored_pods
from mpi_trainer.controller.objects import Job, Pod
from mpi_trainer.controller.observed_pods import end_of, observed_pod

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j1", "controller": True}


def pod(name: str, phase: str, code: int = 0, **more: Any) -> Pod:
    meta = {
        "name": name,
        "namespace": "lab",
        "uid": name,
        "labels": {"training.kubeflow.org/job-role": "launcher"},
        "ownerReferences": [OWNER],
    }
    told = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "DisruptionTarget")]
    state = {"terminated": {"exitCode": code, "message": "out of memory", "reason": "OOMKilled"}}
    status = {
        "phase": phase,
        "conditions": told,
        "containerStatuses": [{"name": "c", "state": state if phase != "Running" else {}}],
    }
    raw = {"metadata": {**meta, **more}, "spec": {"nodeName": "n"}, "status": status}
    return msgspec.json.decode(msgspec.json.encode(raw), type=Pod)


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_what_a_look_sees_of_a_pod_is_kept(phase: str) -> None:
    found = pod("a", phase, code=137)
    kept = stored_pods.kept_pod(found)
    assert observed_pod(kept, "a", "worker") == observed_pod(found, "a", "worker")
    assert end_of(kept) == end_of(found)
    assert kept.metadata == found.metadata
    assert (kept == found) == (phase == "Running")


def test_of_annotations_only_ours_are_kept() -> None:
    mine = {"mpi-trainer.opendatahub.io/attempt": "2"}
    found = pod("a", "Running", annotations={**mine, "example.com/huge": "x" * 200_000})
    assert stored_pods.kept_pod(found).metadata.annotations == mine


def test_words_that_many_have_in_common_are_kept_once() -> None:
    """C-1: twenty thousand launchers stay after their jobs."""
    one, two = (stored_pods.kept_pod(pod(name, "Succeeded")) for name in "ab")
    assert one.metadata.namespace is two.metadata.namespace
    (first,), (second,) = one.metadata.labels.items(), two.metadata.labels.items()
    assert first[0] is second[0]
    assert first[1] is second[1]
    assert one.metadata.owner_references[0].kind is two.metadata.owner_references[0].kind


def test_the_common_words_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_pods, "_MANY", 10)
    for number in range(100):
        made = pod(f"p{number}", "Running", labels={f"label-{number}": "x"})
        assert stored_pods.kept_pod(made).metadata == made.metadata
        job = Job(metadata=made.metadata)
        assert stored_pods.kept_job(job) == job
    assert len(stored_pods._texts) <= 10
