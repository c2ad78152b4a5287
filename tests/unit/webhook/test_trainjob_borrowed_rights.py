"""Whose rights a TrainJob needs: the user's for what the user brings (S-6, C-4)."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.webhook.trainjob import borrowed_rights
from tests.unit.api.building import changed
from tests.unit.api.traincases import KUEUE, PATCHES, TRAINER
from tests.unit.api.trainers import (
    JOBS,
    loaded,
    loaded_runtime,
    patch,
    replicated,
    runtime,
    train_job,
)

_KEY = {"name": "K", "valueFrom": {"secretKeyRef": {"name": "other-mpi-ssh-auth", "key": "k"}}}
_HOST = {"name": "h", "hostPath": {"path": "/"}}
_ROOT = {"privileged": True}


def claims(
    job: dict[str, Any], template: dict[str, Any], before: dict[str, Any] | None = None
) -> list[str]:
    was = None if before is None else loaded(before)
    found = borrowed_rights.added_claims(loaded(job), loaded_runtime(template), was)
    return [str(claim.refusal("eve")) for claim in found.claims]


def near(template: dict[str, Any]) -> dict[str, Any]:
    """The same as a TrainingRuntime."""
    return changed(template, [(("kind",), "TrainingRuntime"), (("metadata", "namespace"), "ns")])


def granting(**pod: Any) -> dict[str, Any]:
    """A runtime whose node and sidecar `helper` are as `pod` says; the helper is privileged."""
    node = replicated("node")
    spec = node["template"]["spec"]["template"]["spec"]
    helper = {"name": "helper", "image": "x", "securityContext": _ROOT}
    spec["containers"].append(helper)
    spec.update(pod)
    return runtime(((*JOBS, 0), node))


def patched(**pod: Any) -> dict[str, Any]:
    return train_job((PATCHES, [patch("node", **pod)]))


def test_refusal_names_the_job_and_the_field_of_its_pods() -> None:
    assert (
        "in the pods of `node`, serviceAccountName: the pods would act"
        in claims(patched(serviceAccountName="admin"), runtime())[0]
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((PATCHES, [patch("node", serviceAccountName="admin")]), "act as this service account"),
        ((PATCHES, [patch("node", volumes=[_HOST])]), "folder of their node"),
        (
            (PATCHES, [patch("node", containers=[{"name": "node", "securityContext": _ROOT}])]),
            "the container would have full control of its node",
        ),
        (((*TRAINER, "env"), [_KEY]), "hold the keys of other jobs"),
    ],
)
def test_claim_of_a_job_needs_the_users_own_right(change: Any, words: str) -> None:
    found = claims(train_job(change), runtime())
    assert found
    assert all(words in text and text.startswith("spec: Forbidden") for text in found)


def test_claim_of_a_cluster_runtime_is_granted_and_of_a_namespaced_one_is_not() -> None:
    """Users write TrainingRuntimes; a ClusterTrainingRuntime is an administrator's."""
    template = granting(serviceAccountName="admin")
    assert claims(train_job(), template) == []
    found = claims(train_job(), near(template))
    assert len(found) == 2
    assert all("spec.runtimeRef.name: Forbidden" in text for text in found)


def test_what_a_runtime_grants_to_one_container_is_not_granted_to_another() -> None:
    """S-6: by name, not by value."""
    found = claims(patched(containers=[{"name": "node", "securityContext": _ROOT}]), granting())
    assert len(found) == 1
    assert "containers[0].securityContext.privileged" in found[0]


def test_volume_that_a_runtime_gives_to_one_container_is_not_the_users_to_mount() -> None:
    template = granting(volumes=[_HOST])
    assert claims(train_job(), template) == []
    mount = {"name": "h", "mountPath": "/h"}
    (found,) = claims(patched(containers=[{"name": "node", "volumeMounts": [mount]}]), template)
    assert "volumeMounts[0]: the pods would see this folder of their node" in found


@pytest.mark.parametrize(
    "reaching",
    [
        {"containers": [{"name": "helper", "env": [{"name": "LD_PRELOAD", "value": "/x"}]}]},
        {"volumes": [{"name": "scripts", "configMap": {"name": "mine"}}]},
    ],
)
def test_container_that_patches_reach_into_is_not_the_administrators_any_more(
    reaching: dict[str, Any],
) -> None:
    scripts = {"name": "scripts", "configMap": {"name": "theirs"}}
    template = granting(volumes=[scripts])
    assert claims(train_job(), template) == []
    assert "full control of its node" in claims(patched(**reaching), template)[0]
    own = [{"name": "node", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}]
    assert claims(patched(containers=own, volumes=[{"name": "x", "emptyDir": {}}]), template) == []


def test_queue_starts_a_job_whose_account_it_has_no_right_to() -> None:
    """C-4: Kueue's change is judged by what it brings."""
    template = near(granting(serviceAccountName="admin"))
    held = train_job((("spec", "suspend"), True), (PATCHES, [KUEUE]))
    bound = patch("node", "kueue.x-k8s.io/manager", nodeSelector={"pool": "a"})
    assert claims(train_job((PATCHES, [bound])), template, held) == []
    taken = patch("node", "kueue.x-k8s.io/manager", serviceAccountName="other")
    assert len(claims(train_job((PATCHES, [taken])), template, held)) == 2


def test_own_keys_of_a_job_are_its_own() -> None:
    own = {"name": "K", "valueFrom": {"secretKeyRef": {"name": "train-mpi-ssh-auth", "key": "k"}}}
    assert claims(train_job(((*TRAINER, "env"), [own])), runtime()) == []
