"""What callers send: jobs and job files, sound or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server import bodies
from mpi_trainer.server.endpoint import JSON, YAML
from mpi_trainer.server.problems import Refused
from mpi_trainer.server.values import CloneRequest

Object = dict[str, Any]


def manifest(**metadata: Any) -> Object:
    from mpi_trainer.api.kinds.mpijob import to_wire

    wire = to_wire(NewJob("one", ("echo",), workers=2, image="x").mpijob())
    wire["metadata"] = {"name": "one"} | metadata
    return wire


TRAIN = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "two"},
    "spec": {"runtimeRef": {"name": "mpi-openmpi-cpu"}},
}


def sent(made: Object) -> bytes:
    return json.dumps(made, indent="\t").encode()


def test_a_job_comes_as_json_or_as_yaml() -> None:
    as_json = bodies.job(sent(manifest()), JSON, MPIJob, "team")
    as_yaml = bodies.job(yaml.safe_dump(manifest()).encode(), YAML[0], MPIJob, "team")
    assert as_json == as_yaml and as_json.namespace == "team" and as_json.workers == 2
    assert bodies.job(sent(TRAIN), JSON, TrainJob, "team").name == "two"


def test_a_job_that_was_read_from_a_server_can_be_sent_again() -> None:
    stored = manifest(uid="1", resourceVersion="2", creationTimestamp="2026-01-01T00:00:00Z")
    stored["status"] = {"conditions": [{"type": "Failed", "status": "True"}]}
    found = bodies.job(sent(stored), JSON, MPIJob, "team")
    assert found.metadata.uid == "" and found.status.conditions == ()


def test_a_file_may_hold_several_objects() -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": [manifest(), TRAIN]}
    file = bodies.job_file(sent(whole), JSON)
    assert (len(file.jobs), len(file.train_jobs)) == (1, 1)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (sent(manifest(namespace="other")), "metadata.namespace"),
        (sent(manifest(name="../x")), "metadata.name"),
        (sent({**manifest(), "spec": {}}), "spec.mpiReplicaSpecs"),
        (sent({**manifest(), "spek": {}}), "spek"),
        (sent({**manifest(), "kind": "Secret"}), "apiVersion"),
        (sent({**manifest(), "kind": "Pod"}), "kind"),
        (sent({**manifest(), "kind": ["MPIJob"]}), "kind"),
        (sent({"kind": "List", "items": [1]}), ""),
        (b"{}", "apiVersion"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_with_its_field(body: bytes, field: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        bodies.job(body, JSON, MPIJob, "team")
    assert field in [error.field for error in caught.value.errors]


@pytest.mark.parametrize("media_type", [JSON, YAML[0]])
@pytest.mark.parametrize(
    "body", [b"", b'{"a":"\xff"}', b"\xff\xfe", b"[1, 2", b'"text"', b"{" * 5000, b"[" * 5000]
)
def test_a_body_that_cannot_be_read_is_refused(body: bytes, media_type: str) -> None:
    with pytest.raises((Refused, InvalidJob)):
        bodies.job(body, media_type, MPIJob, "team")


def test_nesting_without_end_is_refused() -> None:
    deep = b'{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "a"},'
    deep += b'"spec": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001
    with pytest.raises((Refused, InvalidJob), match="nested too deeply"):
        bodies.job(deep, JSON, MPIJob, "team")


def test_a_body_holds_one_job_of_the_paths_kind() -> None:
    with pytest.raises(Refused, match="must hold one MPIJob and nothing else"):
        bodies.job(sent(TRAIN), JSON, MPIJob, "team")


def test_types_other_than_json_and_yaml_are_refused() -> None:
    for good in (JSON, *YAML):
        bodies.check_media_type(good)
    for bad in ("", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded"):
        with pytest.raises(Refused) as caught:
            bodies.check_media_type(bad)
        assert caught.value.problem.status == 415


def test_a_value_of_ours_names_the_field_that_is_wrong() -> None:
    assert bodies.value(b'{"name": "b", "workers": 3}', CloneRequest).workers == 3
    with pytest.raises(InvalidJob) as caught:
        bodies.value(b'{"name": "b", "workers": "3"}', CloneRequest)
    assert caught.value.errors[0].field == "workers"
    with pytest.raises(InvalidJob, match="wokers"):
        bodies.value(b'{"name": "b", "wokers": 3}', CloneRequest)
    with pytest.raises(Refused):
        bodies.value(b"{", CloneRequest)
