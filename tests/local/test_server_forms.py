"""A job in its other forms over the REST API: what is answered makes the same job again."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.sdk.job.equivalents.manifest import comparable, comparable_trainjob
from tests.local.test_server import JOBS, created, loopback, manifest, port, problem, server
from tests.local.test_server_lists import trainjob
from tests.rest import Rest

__all__ = ["loopback", "port", "server"]

pytestmark = pytest.mark.timeout(240)
PLAN = "/api/v1/namespaces/default/plan/equivalents"
Object = dict[str, Any]


def same(one: Object, other: Object) -> bool:
    first, second = (decode(MPIJob, wire).value for wire in (one, other))
    return bool(comparable(first) == comparable(second))


def test_a_job_that_is_to_be_submitted_is_told_as_command_program_and_yaml(server: Rest) -> None:
    sent = manifest("one")
    found = server.ask("POST", PLAN, sent).data
    assert found["cli"].startswith("odh mpijob create one -n default --workers 3 --slots 2 ")
    assert "job = MPIJob.from_manifest" in found["sdk"], "labels have no argument"
    made = yaml.safe_load(found["yaml"])
    assert same(made, {**sent, "metadata": {**sent["metadata"], "namespace": "default"}})
    assert server.get(JOBS)["items"] == [], "nothing is made"
    two = {"apiVersion": "v1", "kind": "List", "items": [sent, manifest("two")]}
    assert problem(server, 422, "POST", PLAN, two)["detail"] == "the body holds 2 jobs"


def test_a_job_that_is_there_is_told_without_what_the_server_wrote(server: Rest) -> None:
    stored = created(server, "one")["manifest"]
    found = server.get(f"{JOBS}/one/equivalents")
    made = yaml.safe_load(found["yaml"])
    assert [*made["metadata"]] == ["name", "namespace", "labels"] and "status" not in made
    assert server.ask("DELETE", f"{JOBS}/one").status == 204
    again = server.ask("POST", JOBS, found["yaml"].encode(), {"Content-Type": "application/yaml"})
    assert again.status == 201
    fresh = {**again.data["manifest"], "metadata": stored["metadata"]}
    assert same(fresh, stored)
    assert problem(server, 404, "GET", f"{JOBS}/none/equivalents")


def test_a_trainjob_has_the_same_forms(server: Rest) -> None:
    path = "/api/v1/namespaces/default/trainjobs"
    assert server.ask("POST", path, trainjob("train")).status == 201
    found = server.get(f"{path}/train/equivalents")
    assert found["cli"].startswith("odh trainjob create -n default -f - <<'EOF'\n")
    made = decode(TrainJob, yaml.safe_load(found["yaml"])).value
    placed = {"name": "train", "namespace": "default"}
    wanted = decode(TrainJob, {**trainjob("train"), "metadata": placed}).value
    assert comparable_trainjob(made) == comparable_trainjob(wanted)
    problem(server, 404, "GET", f"{JOBS}/train/equivalents")
