"""The CustomResourceDefinitions of our kinds, from our types.

Each has one served and stored version; jobs have the status subresource. All are small enough for
a plain `kubectl apply`, which copies what is applied into an annotation of at most 256 KiB.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from mpi_trainer.api.kinds import mpijob, runtime, trainjob
from tools.crds.podtemplate import Schema
from tools.crds.schemas import struct

Column = tuple[str, str, str, int, str]

_HEADER: Final = """\
# Made by `make manifests`; do not edit. The fields are {types}'s, the words
# {words}'s, and the pods tools/crds/podtemplate.json's, from an API server.
"""
_AGE: Final[Column] = (
    "Age",
    "date",
    ".metadata.creationTimestamp",
    0,
    "How long ago the job was created.",
)


class Kind(msgspec.Struct, frozen=True):
    """One kind of ours; `status` is None where it has none."""

    name: str
    api_version: str
    description: str
    spec: type[msgspec.Struct]
    status: type[msgspec.Struct] | None = None
    scope: str = "Namespaced"
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("kubeflow",)
    columns: tuple[Column, ...] = ()
    rules: tuple[tuple[str, str], ...] = ()
    types: str = "src/mpi_trainer/api/runtime.py"
    words: str = "tools/crds/trainwords.py"

    @property
    def file(self) -> str:
        group = self.api_version.partition("/")[0]
        return f"{group}_{self.name.lower()}s.yaml"


MPIJOB: Final = Kind(
    mpijob.KIND,
    mpijob.API_VERSION,
    "A training job of MPI processes: one launcher, and workers that it reaches over SSH.",
    mpijob.MPIJobSpec,
    mpijob.MPIJobStatus,
    short=("mj",),
    categories=("all", "kubeflow"),
    columns=(
        ("State", "string", ".status.conditions[-1:].type", 0, "Where the job stands."),
        (
            "Workers",
            "integer",
            ".spec.mpiReplicaSpecs.Worker.replicas",
            0,
            "Workers that are wanted.",
        ),
        ("Active", "integer", ".status.replicaStatuses.Worker.active", 0, "Workers that run."),
        ("Slots", "integer", ".spec.slotsPerWorker", 1, "Ranks on each worker."),
        ("MPI", "string", ".spec.mpiImplementation", 1, "The MPI implementation."),
        ("Finished", "date", ".status.completionTime", 1, "How long ago the job ended."),
        ("Why", "string", ".status.conditions[-1:].message", 1, "What happened last."),
        _AGE,
    ),
    types="src/mpi_trainer/api/mpijob.py",
    words="tools/crds/words.py",
)
TRAIN_JOB: Final = Kind(
    trainjob.KIND,
    trainjob.API_VERSION,
    "A training job: a runtime, and what this job changes in it.",
    trainjob.TrainJobSpec,
    trainjob.TrainJobStatus,
    short=("tj",),
    categories=("all", "kubeflow"),
    columns=(
        # The first condition that holds: the last one may be of a suspension that is long over.
        (
            "State",
            "string",
            '.status.conditions[?(@.status=="True")].type',
            0,
            "Where the job stands.",
        ),
        ("Runtime", "string", ".spec.runtimeRef.name", 0, "What the job runs in."),
        ("Nodes", "integer", ".spec.trainer.numNodes", 1, "Nodes that are wanted."),
        _AGE,
    ),
    rules=(
        (
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name must be lower-case letters, digits and -, and start with a letter",
        ),
        ("size(self.metadata.name) <= 63", "metadata.name must be at most 63 characters"),
    ),
    types="src/mpi_trainer/api/trainjob.py",
)
TRAINING_RUNTIME: Final = Kind(
    runtime.NAMESPACED,
    trainjob.API_VERSION,
    "A template for the TrainJobs of one namespace.",
    runtime.RuntimeSpec,
)
CLUSTER_TRAINING_RUNTIME: Final = Kind(
    runtime.CLUSTER,
    trainjob.API_VERSION,
    "A template for the TrainJobs of every namespace.",
    runtime.RuntimeSpec,
    scope="Cluster",
)
KINDS: Final = (MPIJOB, TRAIN_JOB, TRAINING_RUNTIME, CLUSTER_TRAINING_RUNTIME)


def text(kind: Kind = MPIJOB) -> str:
    """The definition as the file that is committed."""
    header = _HEADER.format(types=kind.types, words=kind.words)
    return header + yaml.safe_dump(
        definition(kind), sort_keys=False, width=200, default_flow_style=None
    )


def definition(kind: Kind = MPIJOB) -> dict[str, Any]:
    """The definition, ready to apply."""
    group, _, version = kind.api_version.partition("/")
    plural = kind.name.lower() + "s"
    names: dict[str, Any] = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": plural,
        "singular": kind.name.lower(),
    }
    if kind.short:
        names["shortNames"] = list(kind.short)
    names["categories"] = list(kind.categories)
    served: dict[str, Any] = {"name": version, "served": True, "storage": True}
    if kind.columns:
        served["additionalPrinterColumns"] = [_column(*each) for each in kind.columns]
    served["schema"] = {"openAPIV3Schema": _root(kind)}
    if kind.status is not None:
        served["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": kind.scope, "versions": [served]},
    }


def _column(name: str, kind: str, path: str, priority: int, description: str) -> dict[str, Any]:
    column = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | ({"priority": priority} if priority else {})


def _root(kind: Kind) -> Schema:
    properties: Schema = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": struct(kind.spec),
    }
    if kind.status is not None:
        properties["status"] = struct(kind.status)
    root: Schema = {"type": "object", "description": kind.description, "properties": properties}
    if kind.rules:
        rules = [{"rule": rule, "message": message} for rule, message in kind.rules]
        root["x-kubernetes-validations"] = rules
    return root
