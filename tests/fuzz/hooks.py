"""What schemathesis is told beside the document. Runs in its own environment, not in ours."""

from __future__ import annotations

import zlib
from typing import Any

import schemathesis

Values = dict[str, Any]


def map_path_parameters(context: Any, path_parameters: Values | None) -> Values | None:
    """Half of the calls are about a job that is there; the same ones in every run."""
    if not path_parameters or "name" not in path_parameters or _chance(path_parameters, 2):
        return path_parameters
    job = "train" if "trainjobs" in context.operation.path else "one"
    placed = {"namespace": "default"} if "namespace" in path_parameters else {}
    return {**path_parameters, **placed, "name": job}


def map_body(context: Any, body: Any) -> Any:
    """A third of the objects are put into a job that is almost sound. Its name is taken, or not a
    name at all, so that no job is made of it."""
    if not isinstance(body, dict) or _chance(body, 3):
        return body
    spec: Values = {
        "slotsPerWorker": 1,
        "runPolicy": {"suspend": True},
        "mpiReplicaSpecs": {
            role: {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}
            for role in ("Launcher", "Worker")
        },
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "one", "namespace": "default", **body},
        "spec": {**spec, **body},
    }


def _chance(value: Values, one_in: int) -> bool:
    return zlib.crc32(repr(sorted(value, key=str)).encode() + repr(value).encode()) % one_in != 0


schemathesis.hook(map_path_parameters)
schemathesis.hook(map_body)
