"""Lists of jobs of every kind over the REST API: what they say, filters, order, facets."""

from __future__ import annotations

from getpass import getuser
from typing import Any

import pytest

from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.local.jobs import store
from tests.local.odh import until
from tests.local.test_server import JOBS, loopback, manifest, port, problem, server
from tests.rest import Rest

__all__ = ["loopback", "port", "server"]

pytestmark = pytest.mark.timeout(240)
EVERY = "/api/v1/jobs"
Object = dict[str, Any]


def trainjob(name: str) -> Object:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "mpi-openmpi-cpu"},
            "suspend": True,
            "trainer": {"command": ["true"]},
        },
    }


@pytest.fixture
def listed(server: Rest) -> Rest:
    """An MPIJob in a queue, another in none, a TrainJob in another namespace; all suspended."""
    queued = manifest("queued")
    queued["metadata"]["labels"][LABEL_QUEUE] = "fast"
    for path, body in (
        (JOBS, queued),
        (JOBS, manifest("plain")),
        ("/api/v1/namespaces/team/trainjobs", trainjob("train")),
    ):
        assert server.ask("POST", path, body).status == 201
    until("all are suspended", lambda: len(names(server, "state=Suspended")) == 3)
    return server


def names(server: Rest, query: str) -> list[str]:
    return [one["name"] for one in server.get(f"{EVERY}?{query}")["items"]]


def test_a_list_says_of_every_job_what_a_table_needs(listed: Rest) -> None:
    items = {one["name"]: one for one in listed.get(EVERY)["items"]}
    assert {one["owner"] for one in items.values()} == {getuser()}
    assert {one["suspend"] for one in items.values()} == {True}
    assert {one["readOnly"] for one in items.values()} == {False}
    assert [items[name]["queue"] for name in ("queued", "plain")] == ["fast", ""]
    assert (items["train"]["kind"], items["train"]["runtime"]) == ("TrainJob", "mpi-openmpi-cpu")
    for one in items.values():
        path = f"/api/v1/namespaces/{one['namespace']}/{one['kind'].lower()}s/{one['name']}"
        assert one["uid"] == listed.get(path)["uid"] != ""


def test_a_version_changes_with_the_job_and_not_by_itself(listed: Rest) -> None:
    def version() -> str:
        (one,) = listed.get(f"{JOBS}?name=plain")["items"]
        return str(one["resourceVersion"])

    first = version()
    assert version() == first
    assert listed.ask("POST", f"{JOBS}/plain/resume").data["suspend"] is False
    assert version() != first
    (item,) = listed.get(f"{JOBS}?name=plain")["items"]
    assert item["suspend"] is False


def test_pages_are_of_one_read_until_their_caller_changes_something(listed: Rest) -> None:
    first = listed.get(f"{EVERY}?sortBy=name&limit=1")
    following = f"{EVERY}?sortBy=name&limit=1&continue={first['continue']}"
    store.remove(store.find("default", "queued"))
    assert listed.get(following)["items"][0]["name"] == "queued"
    assert names(listed, "") == ["train", "plain"]
    first = listed.get(f"{EVERY}?sortBy=name&limit=1")
    assert listed.ask("DELETE", "/api/v1/namespaces/team/trainjobs/train").status == 204
    rest = listed.get(f"{EVERY}?sortBy=name&limit=1&continue={first['continue']}")
    assert (rest["items"], rest["total"]) == ([], 1)


def test_filters_order_and_facets_are_those_of_all_kinds(listed: Rest) -> None:
    assert names(listed, "kind=TrainJob") == ["train"]
    assert names(listed, "queue=fast,slow") == ["queued"]
    assert names(listed, "runtime=mpi-openmpi-cpu") == ["train"]
    assert names(listed, f"owner={getuser()}&sortBy=kind") == ["plain", "queued", "train"]
    assert names(listed, "owner=nobody") == []
    assert names(listed, "sortBy=queue")[0] == names(listed, "sortBy=queue&order=desc")[0]
    first = listed.get(f"{EVERY}?sortBy=queue&limit=2")
    rest = listed.get(f"{EVERY}?sortBy=queue&limit=2&continue={first['continue']}")
    assert len({one["name"] for one in [*first["items"], *rest["items"]]}) == 3
    found = listed.get(f"{EVERY}?kind=MPIJob")
    assert (found["total"], found["notes"]) == (2, [])
    assert found["facets"] == {
        "state": {"Suspended": 2},
        "kind": {"MPIJob": 2, "TrainJob": 1},
        "queue": {"fast": 1},
        "runtime": {},
        "owner": {getuser(): 2},
        "namespace": {"default": 2},
    }
    in_team = listed.get("/api/v1/namespaces/team/jobs")
    assert in_team["facets"]["namespace"] == {"team": 1}
    bad = problem(listed, 400, "GET", f"{EVERY}?sortBy=color")
    assert "created, duration, gpus, kind, name" in bad["errors"][0]["message"]


def test_on_this_machine_everything_is_allowed_and_namespaces_are_plain(listed: Rest) -> None:
    found = listed.get("/api/v1/namespaces/default/permissions")["items"]
    assert {"action": "create-mpijobs", "allowed": True, "reason": ""} in found
    assert len(found) == 11 and all(one["allowed"] for one in found)
    spaces = listed.get("/api/v1/namespaces")
    assert spaces["items"] == ["default", "team"]
    assert spaces["projects"] == [{"name": name, "displayName": ""} for name in spaces["items"]]


def test_jobs_at_a_glance(listed: Rest) -> None:
    found = listed.get("/api/v1/overview")
    assert (found["total"], found["hours"], found["states"]) == (3, 168, {"Suspended": 3})
    assert [one["name"] for one in found["waiting"]] == ["queued"]
    assert (found["cpusInUse"], found["gpuHours"], found["notes"]) == (0, 0, [])
    assert listed.get("/api/v1/overview?namespace=team")["total"] == 1
    bad = problem(listed, 400, "GET", "/api/v1/overview?hours=0&namespace=x")
    assert bad["errors"][0]["message"].endswith("must be a whole number from 1 to 8784")
