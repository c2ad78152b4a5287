"""What the REST API offers each of several users on a real API server: rights, projects, jobs of
the namespaces they can see, jobs at a glance.

OpenShift's projects are a definition of the same group and kind, whose objects the tests write.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.cli.app import odh
from mpi_trainer.sdk.job.copies import as_new
from mpi_trainer.sdk.job.equivalents.manifest import comparable
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server.everywhere import MOST
from tests.api.accounts import Account
from tests.api.admin import JOBS, Admin, Object
from tests.api.clients.test_server import Team, other, ours, port, theirs
from tests.api.lab import admin, served
from tests.api.running import job
from tests.cluster import Kubectl, eventually
from tests.rest import Rest
from tools.cluster.spec import Spec

__all__ = ["admin", "other", "ours", "port", "served", "theirs"]

ROLE = "sees-projects"


@pytest.fixture
def projects(served: Spec, ours: Team, theirs: Team) -> Iterator[None]:
    """Both namespaces are projects, which both users may list."""
    kubectl = Kubectl(served)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    kubectl.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "projects.project.openshift.io"},
            "spec": {
                "group": "project.openshift.io",
                "names": {"kind": "Project", "plural": "projects", "singular": "project"},
                "scope": "Cluster",
                "versions": [{**version, "schema": {"openAPIV3Schema": anything}}],
            },
        }
    )
    path = ("get", "--raw", "/apis/project.openshift.io/v1/projects")
    eventually("projects", lambda: not kubectl.attempt(*path).returncode)
    for team, shown in ((ours, "Our team"), (theirs, "")):
        meta: Object = {"name": team.admin.namespace}
        if shown:
            meta["annotations"] = {"openshift.io/display-name": shown}
        kubectl.apply(
            {"apiVersion": "project.openshift.io/v1", "kind": "Project", "metadata": meta}
        )
    rights = ("--verb=list", "--resource=projects.project.openshift.io")
    kubectl("create", "clusterrole", ROLE, *rights)
    kubectl(
        "create",
        "clusterrolebinding",
        ROLE,
        f"--clusterrole={ROLE}",
        "--group=system:authenticated",
    )
    yield
    kubectl("delete", "clusterrolebinding,clusterrole", ROLE)
    kubectl("delete", "crd", "projects.project.openshift.io")


def permissions(port: int, who: Account, namespace: str) -> dict[str, bool]:
    found = Rest(port, who.token).get(f"/api/v1/namespaces/{namespace}/permissions")["items"]
    for one in found:
        assert bool(one["reason"]) is not one["allowed"], one
    return {one["action"]: one["allowed"] for one in found}


def test_permissions_are_what_the_cluster_allows_this_caller_there(
    port: int, ours: Team, theirs: Team
) -> None:
    user = permissions(port, ours.user, ours.admin.namespace)
    viewer = permissions(port, ours.viewer, ours.admin.namespace)
    foreign = permissions(port, ours.user, theirs.admin.namespace)
    assert all(user[f"{verb}-mpijobs"] for verb in ("create", "delete", "change"))
    assert user["read-logs"] and user["read-pods"] and user["read-events"]
    assert not any(viewer[f"{verb}-mpijobs"] for verb in ("create", "delete", "change"))
    assert viewer["read-logs"] and not viewer["upload-code"] and not viewer["test-runtimes"]
    assert not any(foreign.values())
    for kind, rest in (("mpijobs", "create"), ("mpijobs", "delete"), ("trainjobs", "create")):
        assert user[f"{rest}-{kind}"] is ours.user.may(rest, kind, ours.admin.namespace)


def test_a_missing_right_is_told_with_what_to_do(port: int, ours: Team) -> None:
    path = f"/api/v1/namespaces/{ours.admin.namespace}/permissions"
    found = Rest(port, ours.viewer.token).get(path)["items"]
    (create,) = (one for one in found if one["action"] == "create-mpijobs")
    assert create["reason"] == (
        f"you have no right to `create mpijobs.kubeflow.org` in namespace {ours.admin.namespace}: "
        "ask an administrator for it"
    )


def test_projects_are_seen_with_the_names_people_gave_them(
    port: int, ours: Team, theirs: Team, projects: None
) -> None:
    found = Rest(port, ours.user.token).get("/api/v1/namespaces")
    mine, other = ours.admin.namespace, theirs.admin.namespace
    assert found["items"] == sorted([mine, other])
    assert {"name": mine, "displayName": "Our team"} in found["projects"]
    assert {"name": other, "displayName": ""} in found["projects"]


def test_without_projects_and_the_right_to_list_namespaces_there_is_the_default_one(
    port: int, ours: Team
) -> None:
    found = Rest(port, ours.user.token).get("/api/v1/namespaces")
    assert found["items"] == [found["default"]]


def test_whoever_may_not_list_all_jobs_gets_those_of_their_own_namespaces(
    port: int, ours: Team, theirs: Team, projects: None
) -> None:
    """0 foreign objects, in lists and in figures."""
    for team, name in ((ours, "ours"), (theirs, "theirs")):
        user = Rest(port, team.user.token)
        for path in ("/api/v1/jobs", "/api/v1/mpijobs", "/api/mpijobs"):
            found = user.get(path)
            assert [one["name"] for one in found["items"]] == [name], found
            assert found["facets"]["namespace"] == {team.admin.namespace: 1}
            assert found["notes"] == [
                "you may not list jobs of all namespaces: these are of 1 namespace"
            ]
        glance = user.get("/api/v1/overview")
        assert glance["total"] == 1 and glance["notes"][0] == found["notes"][0]
        assert [one["name"] for one in glance["waiting"]] == [name]
    closed = Rest(port, ours.user.token).ask(
        "GET", f"/api/v1/overview?namespace={theirs.admin.namespace}"
    )
    assert closed.status == 403 and b"theirs" not in closed.body
    assert MOST >= 2


def ended(admin: Admin, name: str, state: str, gpus: int) -> None:
    """A job that ran for an hour, until an hour ago."""
    one = job(name=name)
    for container in one["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    admin.create(f"{JOBS}/mpijobs", one)
    found = [{"type": state, "status": "True"}]
    times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T01:00:00Z"}
    admin.patch(f"{JOBS}/mpijobs/{name}/status", {"status": {"conditions": found, **times}})


def test_jobs_at_a_glance_are_those_of_the_namespace(port: int, ours: Team) -> None:
    ended(ours.admin, "old", "Succeeded", 1)
    state = [{"type": "Running", "status": "True"}]
    ended(ours.admin, "runs", "Running", 2)
    ours.admin.patch(f"{JOBS}/mpijobs/runs/status", {"status": {"conditions": state}})
    user = Rest(port, ours.user.token)
    found = user.get(f"/api/v1/overview?namespace={ours.admin.namespace}&hours=24")
    workers = ours.admin.job("runs")["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    assert found["states"] == {"Created": 1, "Succeeded": 1, "Running": 1}
    assert found["gpusInUse"] == 2 * workers
    assert (found["succeeded"], found["failed"], found["successRate"]) == (0, 0, None)
    assert [one["name"] for one in found["running"]] == ["runs"]
    assert found["cpusInUse"] is None and "metrics API" in found["notes"][0]


def test_a_stored_job_is_told_to_whoever_may_read_it(port: int, ours: Team, theirs: Team) -> None:
    """The command is run: it makes the job that is stored."""
    made = NewJob("pi", ("python", "pi.py"), workers=3, image="image:1").mpijob()
    user = Rest(port, ours.user.token)
    assert (
        user.ask("POST", ours.jobs, to_wire(replace(made, metadata=ObjectMeta(name="pi")))).status
        == 201
    )
    found = user.get(f"{ours.jobs}/pi/equivalents")
    where = ours.admin.namespace
    assert found["cli"] == (
        f"odh mpijob create pi -n {where} --workers 3 --slots 1 --image image:1 -- python pi.py"
    )
    words = shlex.split(found["cli"])
    asked = ["--backend", "local", *words[1:3], "--dry-run", "-o", "json", *words[3:]]
    dry = json.loads(CliRunner().invoke(odh, asked, catch_exceptions=False).stdout)
    stored = decode(MPIJob, ours.admin.job("pi")).value
    assert comparable(as_new(stored)) == comparable(decode(MPIJob, dry).value)
    for who, path in ((theirs.user, f"{ours.jobs}/pi"), (ours.user, f"{theirs.jobs}/theirs")):
        refused = Rest(port, who.token).ask("GET", f"{path}/equivalents")
        assert refused.status == 403 and b"mpirun" not in refused.body
