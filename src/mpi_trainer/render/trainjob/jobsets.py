"""The JobSet of a TrainJob, under the TrainJob's own name.

It carries a mark of what it was rendered from, so that a job that comes back from suspension is
known to be the same or another; `suspend` is no part of it. Danger: of a JobSet that is not
suspended nothing else may change, and of one that is, little.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.kinds.annotations import RENDERED, RUNTIME_SNAPSHOT
from mpi_trainer.api.kinds.labels import without_reserved
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.render.frame import Object, metadata

API_VERSION = "jobset.x-k8s.io/v1alpha2"

_ENCODER = msgspec.json.Encoder(order="deterministic")


def job_set(
    job: TrainJob, effective: Effective, pods: Mapping[str, Object], notes: Mapping[str, str]
) -> Object:
    """`pods` are the pod templates of its replicated jobs, by their names; `notes` annotations."""
    replicated = [_without_reserved(one.wire(pods.get(one.name))) for one in effective.jobs]
    spec: Object = {**effective.rest, "replicatedJobs": replicated}
    marks: Object = {
        "labels": dict(effective.labels),
        "annotations": {**effective.annotations, **notes, RENDERED: ""},
    }
    digest = hashlib.sha256(_ENCODER.encode([marks, spec])).hexdigest()[:16]
    marks["annotations"][RENDERED] = digest
    return {
        "apiVersion": API_VERSION,
        "kind": "JobSet",
        "metadata": metadata(job, job.name, **{k: v for k, v in marks.items() if v}),
        "spec": {**spec, "suspend": bool(job.spec.suspend)},
    }


def _without_reserved(replicated: Object) -> Object:
    """Without marks on the Job that only controllers set."""
    job: Object = replicated["template"]
    meta = {
        key: without_reserved(value) if key in ("labels", "annotations") and value else value
        for key, value in (job.get("metadata") or {}).items()
    }
    return {**replicated, "template": {**job, "metadata": meta}} if meta else replicated


def made_from(job_set: Object, snapshot: str) -> Object:
    """The JobSet with the mark of the snapshot that it was rendered from."""
    meta = job_set["metadata"]
    annotations = {**(meta.get("annotations") or {}), RUNTIME_SNAPSHOT: snapshot}
    return {**job_set, "metadata": {**meta, "annotations": annotations}}
