"""TrainJob's and the runtimes' definitions on a real API server, beside upstream's.

Upstream's definitions, runtimes and examples come from its released module.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.schemas import checked, nodes
from tests.cluster import Kubectl, Object, define, eventually
from tests.pages import ROOT
from tests.unit.api.trainers import runtime, train_job
from tools.cluster.build import source_of
from tools.cluster.components import TRAINER
from tools.crds import definition
from tools.crds.__main__ import FOLDER

KINDS = definition.KINDS[1:]
SERVED = ("trainjobs", "trainingruntimes", "clustertrainingruntimes")


@pytest.fixture(scope="module")
def upstream() -> Path:
    return source_of(TRAINER)


@pytest.fixture
def jobs(namespace: Kubectl) -> Kubectl:
    """kubectl in a fresh namespace of a cluster that knows our kinds."""
    define(namespace, FOLDER, *SERVED)
    return namespace


def job(*changes: Any) -> Object:
    value = train_job(*changes)
    del value["metadata"]["namespace"]
    return value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_schema_is_upstream_s_but_for_what_is_listed(
    kind: definition.Kind, upstream: Path
) -> None:
    """API-2: fields, types, required fields, defaults, values and limits, one by one."""
    text = (upstream / "manifests/base/crds" / kind.file).read_text()
    theirs, ours = nodes(yaml.safe_load(text)), nodes(definition.definition(kind))
    gone = {path.rpartition(".")[2] for path in theirs.keys() - ours.keys()}
    new = {path.rpartition(".")[2] for path in ours.keys() - theirs.keys()}
    if kind is definition.TRAIN_JOB:
        assert (gone, new) == (set(), {"creationTimestamp"})
    else:
        # The pod API of another Kubernetes; ours keeps the fields that it does not know.
        assert gone == {"schedulingGroup", "podGroupName"}
        assert new == {
            "creationTimestamp", "workloadRef", "name", "podGroup", "podGroupReplicaKey"
        }  # fmt: skip
    different = {
        path.rpartition(".")[2]
        for path in theirs.keys() & ours.keys()
        if _ruleless(theirs[path]) != _ruleless(ours[path])
    }
    if kind is definition.TRAIN_JOB:
        # Two lists of values and patterns in place of rules; then the pod API's own defaults.
        assert different == {"storageUri", "managedBy", "trainerStatus", "cachingMode", "kind"}
    else:
        assert different == {"numProcPerNode", "highestTierAllowed", "spec", "cachingMode", "kind"}


def _ruleless(schema: Object) -> Object:
    return {k: v for k, v in checked(schema).items() if k != "x-kubernetes-validations"}


def test_defaults_are_upstream_s(jobs: Kubectl) -> None:
    jobs.apply(job())
    assert jobs.get("trainjob", "train")["spec"] == {
        "runtimeRef": {
            "apiGroup": "trainer.kubeflow.org",
            "kind": "ClusterTrainingRuntime",
            "name": "mpi",
        },
        "suspend": False,
        "managedBy": "trainer.kubeflow.org/trainjob-controller",
    }
    near = {**runtime(), "kind": "TrainingRuntime"}
    near["spec"]["mlPolicy"] = {"mpi": {}}
    jobs.apply(near)
    assert jobs.get("trainingruntime", "mpi")["spec"]["mlPolicy"]["mpi"] == {
        "numProcPerNode": 1,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": "/root/.ssh",
        "runLauncherAsNode": False,
    }


def test_upstream_s_runtimes_are_accepted_as_they_are(jobs: Kubectl, upstream: Path) -> None:
    """RT-2: with kubectl's strict check of field names."""
    files = [
        file
        for file in sorted((upstream / "manifests/base/runtimes").rglob("*.yaml"))
        if file.name != "kustomization.yaml"
    ]
    assert len(files) >= 5
    for file in files:
        jobs("apply", "--dry-run=server", "--validate=strict", "-f", str(file))


def test_numbers_of_the_public_sdk_are_accepted_as_quantities(jobs: Kubectl) -> None:
    """It sends `2.0` for 2."""
    amounts = {"requests": {"cpu": 2.0}, "limits": {"cpu": 2.0, "memory": "1Gi"}}
    text = json.dumps(job((("spec", "trainer", "resourcesPerNode"), amounts)))
    assert "2.0" in text
    jobs("create", "-f", "-", data=text)


def test_state_is_the_condition_that_holds(jobs: Kubectl) -> None:
    """Upstream shows a resumed job as suspended for ever."""
    jobs.apply(job())
    header, row = jobs("get", "tj").splitlines()
    assert header.split() == ["NAME", "STATE", "RUNTIME", "AGE"]
    at = jobs.get("trainjob", "train")["metadata"]["creationTimestamp"]
    told = {"reason": "Resumed", "message": "m", "lastTransitionTime": at}
    for conditions, state in (
        ([{"type": "Suspended", "status": "True", **told}], "Suspended"),
        ([{"type": "Suspended", "status": "False", **told}], "mpi"),
        (
            [
                {"type": "Suspended", "status": "False", **told},
                {"type": "Complete", "status": "True", **told},
            ],
            "Complete",
        ),
    ):
        patch = json.dumps({"status": {"conditions": conditions}})
        jobs("patch", "tj", "train", "--subresource=status", "--type=merge", "--patch", patch)
        header, row = jobs("get", "tj").splitlines()
        assert row.split()[1] == state
    assert "trainjob.trainer.kubeflow.org/train" in jobs("get", "kubeflow", "-o", "name")


def test_explain_describes_our_fields(jobs: Kubectl) -> None:
    eventually("published", lambda: not jobs.attempt("explain", "trainjob.spec").returncode)
    for path in (
        "trainjob.spec",
        "trainjob.spec.trainer",
        "trainjob.spec.runtimePatches",
        "trainjob.status",
        "clustertrainingruntime.spec.mlPolicy.mpi",
    ):
        text = jobs("explain", path)
        assert "<no description>" not in text.partition("FIELDS:")[2]


def test_the_documented_kustomization_names_another_registry(
    namespace: Kubectl, tmp_path: Path
) -> None:
    """DOC-1, W-10: of every image that nodes could not pull, and of no other."""
    page = (ROOT / "docs/install.md").read_text()
    (text,) = re.findall(r"```yaml\n# my-runtimes/[^\n]*\n(.*?)```", page, re.DOTALL)
    (tmp_path / "manifests").symlink_to(ROOT / "manifests")
    folder = tmp_path / "my-runtimes"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(text)
    made = namespace("kustomize", str(folder))
    images = set(re.findall(r"image: (\S+)", made))
    assert not [image for image in images if image.startswith("localhost/")], images
    assert "registry.example.com/team/mpi-openmpi:5.0" in images
    assert any(image.startswith("quay.io/opendatahub/") for image in images)
