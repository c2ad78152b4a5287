"""The ConfigMap `<job>-runtime-snapshot`: the runtime as it was when the job began (CTL-13).

Everything else is rendered from it, so whoever edits or deletes a runtime changes no job that has
begun. Its name and content are upstream's, so either controller goes on with a job of the other's.
JSON is YAML, and quicker to read. It never changes; `mark` tells it from any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import TOO_LONG, FieldError, InvalidJob
from mpi_trainer.api.kinds.runtime import Runtime, to_wire
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import documents, load, typed
from mpi_trainer.render.frame import Object, metadata
from mpi_trainer.render.names import runtime_snapshot

KEY = "runtime"


def snapshot(job: TrainJob, runtime: Runtime) -> Object:
    kept: dict[str, Any] = to_wire(runtime)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, runtime_snapshot(job.name)),
        "immutable": True,
        "data": {KEY: msgspec.json.encode(kept).decode()},
    }


def mark(data: Mapping[str, str]) -> str:
    """A digest of what a snapshot holds; nobody can make another one with the same."""
    return hashlib.sha256(data.get(KEY, "").encode()).hexdigest()[:40]


def runtime_in(data: Mapping[str, str], name: str) -> Runtime:
    """The runtime in the data of ConfigMap `name`. InvalidJob where there is none."""
    text = data.get(KEY, "")
    if len(text) > bounds.SNAPSHOT:
        rule = f"has {len(text)} characters, and at most {bounds.SNAPSHOT} are read"
        raise InvalidJob([FieldError(("data", KEY), TOO_LONG, rule=rule, remedy="delete the job")])
    found = load.runtime(_parsed(text, name))
    if found.errors or not isinstance(found.value, Runtime):
        raise InvalidJob(found.errors)
    return found.value


def _parsed(text: str, name: str) -> Mapping[str, Any]:
    try:
        return typed.decode(text, dict[str, Any])
    except msgspec.DecodeError:
        return documents.parse(text, name)[0].data
