"""API-4 on a real API server: MPIJobs stored as v1, read and written as v2beta1, and back."""

from __future__ import annotations

import copy
import json
import secrets
import time
from collections.abc import Iterator

import pytest

from mpi_trainer.api.kinds.annotations import CONVERSION
from mpi_trainer.cli.main import USAGE
from tests.api.admin import Admin, Object, Refusal
from tests.api.admission.serving import (
    CONVERSION_RIGHTS,
    DEFINITION,
    Server,
    convert,
    install,
    remove,
    serving,
)
from tests.api.odh import Odh
from tests.api.running import free_port
from tests.cluster import Kubectl, api_spec, eventually, shared_cluster
from tests.unit.migrate.cases import base
from tests.unit.migrate.test_legacy import V1
from tools.cluster.spec import Spec

OLD, NEW = "apis/kubeflow.org/v1/mpijobs", "apis/kubeflow.org/v2beta1/mpijobs"
CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{DEFINITION}"
JSON = "application/merge-patch+json"


pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spec]:
    """A server of its own: where v1 is served, kubectl prefers it to v2beta1, and remembers that
    for hours, also for the next server at the same port."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECACHEDIR", str(tmp_path_factory.mktemp("kubectl")))
        yield from shared_cluster(api_spec("test-conversion"))


@pytest.fixture(scope="module")
def webhook(api_server: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Admission and conversion, with the rights of the overlay."""
    kubectl, port = Kubectl(api_server), free_port()
    install(kubectl)
    kubectl("apply", "-f", str(CONVERSION_RIGHTS))
    convert(kubectl, port)
    try:
        with serving(api_server, tmp_path_factory.mktemp("hook"), port, "--conversion") as server:
            yield server
    finally:
        remove(kubectl)


@pytest.fixture(scope="module")
def older(api_server: Spec, webhook: Server) -> Iterator[Kubectl]:
    """A cluster whose MPIJobs are stored as v1; afterwards as v2beta1 again."""
    kubectl, one = Kubectl(api_server), Admin(api_server, "default")
    try:
        eventually("its authority is in the definition", lambda: bool(bundle(one)), 60)
        store_as(kubectl, webhook, one, "v1")
        yield kubectl
    finally:
        for job in one.call("GET", f"/{NEW}")["items"]:
            space, name = job["metadata"]["namespace"], job["metadata"]["name"]
            Kubectl(api_server, space)("delete", "mpijob", name)
        convert(kubectl, webhook.port)
        settled(one)
        one.close()


@pytest.fixture
def admin(older: Kubectl) -> Iterator[Admin]:
    one = Admin(older.spec, f"older-{secrets.token_hex(4)}")
    one.call("POST", "/api/v1/namespaces", {"metadata": {"name": one.namespace}})
    yield one
    one.call("DELETE", f"/api/v1/namespaces/{one.namespace}")
    one.close()


def bundle(admin: Admin) -> str:
    client = admin.call("GET", CRD)["spec"]["conversion"]["webhook"]["clientConfig"]
    return str(client.get("caBundle", ""))


def store_as(kubectl: Kubectl, webhook: Server, admin: Admin, version: str) -> None:
    """The API server takes a definition up some time after it has it."""
    convert(kubectl, webhook.port, version)
    eventually("it is stored", lambda: version in stored_versions(admin))
    time.sleep(1)  # the server says nothing of when it begins to put the new storage in use
    for path in (OLD, NEW):
        # 429 while it does.
        eventually(path, lambda path=path: admin.attempt("GET", path)[0] == 200)  # type: ignore[misc]


def stored_versions(admin: Admin) -> list[str]:
    found: list[str] = admin.call("GET", CRD)["status"]["storedVersions"]
    return found


def settled(admin: Admin) -> None:
    """Says that nothing is stored as an older version any more."""
    change = {"status": {"storedVersions": ["v2beta1"]}}
    admin.call("PATCH", f"{CRD}/status", change, JSON)


def job(name: str = "mnist") -> Object:
    made: Object = copy.deepcopy(V1)
    made["metadata"] = {"name": name, "annotations": {"team": "a"}}
    return made


def test_v1_is_judged_as_v2beta1_and_an_annotation_hides_nothing(admin: Admin) -> None:
    bad = job("bad")
    bad["spec"]["slotsPerWorker"] = 0
    with pytest.raises(Refusal, match=r"spec\.slotsPerWorker"):
        admin.create(OLD, bad)
    pod = ["mpiReplicaSpecs", "Launcher", "template", "spec", "hostNetwork"]
    lie = {"from": "kubeflow.org/v1", "undo": [[{"op": "set", "path": pod, "value": True}]]}
    admin.create(NEW, {**converted_job("liar"), "metadata": {
        "name": "liar", "annotations": {CONVERSION: json.dumps(lie)}}})  # fmt: skip
    for path in (OLD, NEW):
        seen = admin.get(f"{path}/liar")
        assert seen is not None
        assert "hostNetwork" not in json.dumps(seen["spec"])


def converted_job(name: str) -> Object:
    return base() | {"metadata": {"name": name}}


def test_without_the_webhook_it_is_told_what_is_missing(
    api_server: Spec, webhook: Server, admin: Admin
) -> None:
    """Jobs that are stored as v1 cannot be read meanwhile, and nothing of them is lost."""
    before = admin.create(OLD, job())
    kubectl = Kubectl(api_server)
    convert(kubectl, free_port(), "v1")
    odh = Odh(api_server.kubeconfig, admin.namespace)

    def unreadable() -> bool:
        code, text = admin.attempt("GET", f"{NEW}/mnist")
        return code == 500 and b"conversion webhook" in text

    try:
        eventually("it cannot be read", unreadable)
        said = odh("mpijob", "list", code=USAGE).stderr
    finally:
        convert(kubectl, webhook.port, "v1")
    assert "conversion webhook for kubeflow.org/v1, Kind=MPIJob failed" in said
    eventually("it can", lambda: admin.attempt("GET", f"{NEW}/mnist")[0] == 200)
    again = admin.get(f"{OLD}/mnist")
    assert again is not None and again["spec"] == before["spec"]


def test_what_is_stored_as_v1_is_read_written_and_stored_as_v2beta1_without_loss(
    api_server: Spec, webhook: Server, admin: Admin
) -> None:
    """Issue 31, Shows 2: storage migration too, after which no webhook is needed."""
    first = admin.create(OLD, job())
    ended = {"status": {"conditions": [{"type": "Created", "status": "True"}]}}
    admin.patch(f"{OLD}/mnist/status", ended)
    seen = admin.job("mnist")
    spec = seen["spec"]
    # Defaults of the other version are not filled in by a read.
    assert spec["runPolicy"] == {"backoffLimit": 2, "cleanPodPolicy": "Running"}
    launcher = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert [one["name"] for one in launcher] == ["mpi", "sidecar"]
    assert "mainContainer" not in spec and spec["mpiImplementation"] == "Intel"
    assert seen["status"]["conditions"][0]["type"] == "Created"
    assert seen["metadata"]["uid"] == first["metadata"]["uid"]
    admin.patch(f"{NEW}/mnist", {"spec": {"runPolicy": {"suspend": True}}})
    store_as(Kubectl(api_server), webhook, admin, "v2beta1")
    for one in admin.every(NEW):
        admin.call("PUT", f"/{NEW.replace('/mpijobs', '')}/namespaces/{admin.namespace}/mpijobs/"
                   f"{one['metadata']['name']}", {**one, "apiVersion": "kubeflow.org/v2beta1",
                                                  "kind": "MPIJob"})  # fmt: skip
    settled(admin)
    back = admin.get(f"{OLD}/mnist")
    assert back is not None
    # What was changed since stands where the change is; v1 has the policy in both places.
    expected = first["spec"] | {"runPolicy": {"cleanPodPolicy": "Running", "suspend": True}}
    del expected["cleanPodPolicy"]
    assert back["spec"] == expected
    assert CONVERSION not in back["metadata"]["annotations"]
    assert back["status"]["conditions"][0]["type"] == "Created"
