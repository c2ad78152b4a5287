"""PyTorchJobs and TFJobs as Kubeflow's training operator has them: definitions, jobs and pods.

Definitions come from the operator's own module, at the version and hash in
`tools/cluster/components.py`. Pods are named and labelled as `createNewPod` in its
`pkg/controller.v1/common/pod.go` does; `tests/api/full/test_training_operator.py` holds them
against those of the operator itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cluster import Kubectl, eventually
from tools.cluster.build import source_of
from tools.cluster.components import TRAINING_OPERATOR

Object = dict[str, Any]
API = "kubeflow.org/v1"
PLURALS = ("pytorchjobs", "tfjobs")
_CONTAINERS = {"PyTorchJob": "pytorch", "TFJob": "tensorflow"}
_PREFIX = "training.kubeflow.org/"


def definitions() -> list[Path]:
    folder = source_of(TRAINING_OPERATOR) / "manifests/base/crds"
    return [folder / f"kubeflow.org_{plural}.yaml" for plural in PLURALS]


def define_older(kubectl: Kubectl) -> None:
    for path in definitions():
        kubectl("apply", "--server-side", "-f", str(path))
    for plural in PLURALS:
        name = f"{plural}.kubeflow.org"
        eventually(plural, lambda name=name: not kubectl.attempt("get", name).returncode)  # type: ignore[misc]


def forget_older(kubectl: Kubectl) -> None:
    for plural in PLURALS:
        kubectl("delete", "crd", f"{plural}.kubeflow.org", "--ignore-not-found")


def older_job(kind: str, name: str, replicas: Mapping[str, int], container: Object) -> Object:
    """A job whose replicas all run the same container."""
    template = {"spec": {"containers": [{"name": _CONTAINERS[kind], **container}]}}
    field = f"{kind.lower().removesuffix('job')}ReplicaSpecs"
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            field: {
                role: {"replicas": number, "restartPolicy": "Never", "template": template}
                for role, number in replicas.items()
            }
        },
    }


def operators_pods(job: Object) -> list[Object]:
    """The pods that the training operator makes of a stored job."""
    kind, meta = job["kind"], job["metadata"]
    (specs,) = (v for k, v in job["spec"].items() if k.endswith("ReplicaSpecs"))
    owner = {
        "apiVersion": API,
        "kind": kind,
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    pods = []
    for role, spec in specs.items():
        for index in range(spec["replicas"]):
            labels = {
                "operator-name": f"{kind.lower()}-controller",
                "job-name": meta["name"],
                "replica-type": role.lower(),
                "replica-index": str(index),
            }
            if _is_master(specs, role, index):
                labels["job-role"] = "master"
            named = f"{meta['name']}-{role.lower()}-{index}"
            pods.append(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": named,
                        "labels": {f"{_PREFIX}{key}": value for key, value in labels.items()},
                        "ownerReferences": [owner],
                    },
                    "spec": {**spec["template"]["spec"], "restartPolicy": "Never"},
                }
            )
    return pods


def _is_master(specs: Mapping[str, Object], role: str, index: int) -> bool:
    """Without a chief or a master, the first worker is called so."""
    if not {"Chief", "Master"} & set(specs):
        return role == "Worker" and index == 0
    return role in ("Master", "Chief")
