"""Who may do what through the SDK: every verb by every role, with real tokens (CTL-7, SC-009).

What is refused is refused by the API server, and the message says which right is missing, where,
and which role has it. There is no kubelet here: an answer that only a node could give counts as
allowed, since the API server asks for rights first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml.load import job as loaded
from mpi_trainer.kube.config import load
from mpi_trainer.sdk.backends.backend import Key, LogQuery
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.errors import JobError, K8sApiException
from openshift_ai_sdk.training import connect
from tests.api.accounts import account
from tests.api.admin import JOBS, Admin
from tests.api.lab import admin, served
from tests.api.running import job
from tests.cluster import Kubectl
from tools.cluster.spec import Spec

__all__ = ["admin", "served"]

ROLES = Path(__file__).parents[3] / "manifests/roles"
MPIJOBS = "mpijobs.kubeflow.org"
Act = Callable[[ClusterBackend, Key], Awaitable[object]]


async def follow(backend: ClusterBackend, key: Key) -> None:
    async for _ in backend.watch(key):
        return


async def read(backend: ClusterBackend, key: Key) -> None:
    async for _ in backend.logs(key, LogQuery()):
        return


def new(key: Key, name: str) -> MPIJob:
    found = loaded(job(name=name) | {"metadata": {"name": name, "namespace": key.namespace}})
    assert isinstance(found.value, MPIJob)
    return found.value


VERBS: dict[str, Act] = {
    "create": lambda b, k: b.create(new(k, "made")),
    "get": lambda b, k: b.get(k),
    "describe": lambda b, k: b.details(k),
    "list": lambda b, k: b.list(k.namespace),
    "list all": lambda b, k: b.list(None),
    "wait": follow,
    "logs": read,
    "top": lambda b, k: b.usage([k]),
    "suspend": lambda b, k: b.suspend(k),
    "resume": lambda b, k: b.resume(k),
    "restart": lambda b, k: b.restart(Key(k.namespace, "ended")),
    "exec": lambda b, k: b.run_in(k, "pi-launcher", ["true"]),
    "copy": lambda b, k: b.fetch(k, "/model", "/nowhere"),
    "rank_pods": lambda b, k: b.rank_pods(k),
    "stack": lambda b, k: b.stacks(k),
    "delete": lambda b, k: b.delete(k),  # last: nothing can be asked of a job that is gone
}
WRITES = {
    "create": "create",
    "suspend": "patch",
    "resume": "patch",
    "restart": "create",
    "delete": "delete",
}
ENTERS = ("exec", "copy", "rank_pods", "stack")
EVERYWHERE = {"list all": f"list {MPIJOBS} of all namespaces"}
NOT_ENTERED = dict.fromkeys(ENTERS, "pods/exec")
REFUSED: dict[str, dict[str, str]] = {
    "mpijob-viewer": EVERYWHERE | NOT_ENTERED | {v: f"{w} {MPIJOBS}" for v, w in WRITES.items()},
    "mpijob-user": EVERYWHERE | NOT_ENTERED,
    "mpijob-admin": EVERYWHERE,
    "": EVERYWHERE
    | dict.fromkeys(VERBS, f"get {MPIJOBS}")
    | {"create": f"create {MPIJOBS}", "list": f"list {MPIJOBS}"}
    | EVERYWHERE,
}
"""what each role is refused, by verb; a role without a name is somebody else's"""


@pytest.fixture
def jobs(admin: Admin, served: Spec) -> Iterator[Kubectl]:
    """A namespace with a job that runs, one that has ended, and the shipped roles."""
    kubectl = Kubectl(served, admin.namespace)
    kubectl("apply", "-k", str(ROLES))
    admin.create(f"{JOBS}/mpijobs", job())
    admin.create(f"{JOBS}/mpijobs", job(name="ended"))
    ended = [{"type": "Succeeded", "status": "True"}]
    admin.patch(f"{JOBS}/mpijobs/ended/status", {"status": {"conditions": ended}})
    labels = {
        "training.kubeflow.org/job-name": "pi",
        "training.kubeflow.org/job-role": "launcher",
    }
    pod = {"containers": [{"name": "mpi", "image": "x"}], "nodeName": "nowhere"}
    admin.create(
        "api/v1/pods", {"metadata": {"name": "pi-launcher-x", "labels": labels}, "spec": pod}
    )
    admin.patch("api/v1/pods/pi-launcher-x/status", {"status": {"phase": "Running"}})
    yield kubectl


def acting(kubectl: Kubectl, name: str, role: str, folder: Path) -> ClusterBackend:
    """The SDK with the login of an account that has this role."""
    place = folder / name
    place.mkdir()
    return ClusterBackend(load(account(kubectl, name, role).kubeconfig(place)))


def attempt(backend: ClusterBackend, verb: str, key: Key) -> str:
    """Empty where it was allowed; else what the user is told, hint and all."""

    async def act() -> None:
        async with asyncio.timeout(30):
            await VERBS[verb](backend, key)

    try:
        asyncio.run(act())
    except K8sApiException as error:
        return f"{error}. {error.hint}" if error.status == 403 else ""
    except JobError:
        return ""
    return ""


@pytest.mark.parametrize("role", [*REFUSED])
def test_every_verb_by_every_role(role: str, jobs: Kubectl, tmp_path: Path) -> None:
    home = jobs if role else Kubectl(jobs.spec, "default")
    name = f"somebody-{jobs.namespace}"
    # Somebody else's is an account with all rights, in another namespace.
    backend = acting(home, name, role or "mpijob-admin", tmp_path)
    told = {verb: attempt(backend, verb, Key(jobs.namespace, "pi")) for verb in VERBS}
    assert {verb for verb, text in told.items() if text} == {*REFUSED[role]}
    for verb, right in REFUSED[role].items():
        assert right in told[verb], told[verb]
        assert f"system:serviceaccount:{home.namespace}:{name}" in told[verb]
        if verb != "list all":
            assert f"in namespace {jobs.namespace}" in told[verb]
        if role and verb in ENTERS:
            assert "the role mpijob-admin has it" in told[verb]
        elif role and verb in WRITES:
            assert "the role mpijob-user has it" in told[verb]


def test_login_that_is_no_login_says_so(jobs: Kubectl, tmp_path: Path) -> None:
    login = account(jobs, "late").kubeconfig(tmp_path)
    login.write_text(login.read_text().replace('"token": "', '"token": "x'))
    backend = ClusterBackend(load(login))
    with pytest.raises(K8sApiException, match="does not accept your login") as caught:
        asyncio.run(backend.list("default"))
    assert caught.value.status == 401 and "Log in again" in caught.value.hint


def test_context_that_is_not_there_is_answered_with_those_that_are(
    served: Spec, tmp_path: Path
) -> None:
    with pytest.raises(JobError, match=r"there is no context 'prod'.*there are: ") as caught:
        connect(kubeconfig=served.kubeconfig, context="prod")
    assert "get-contexts" in caught.value.hint


def test_namespace_that_is_not_there_is_named(served: Spec) -> None:
    backend = connect(kubeconfig=served.kubeconfig)
    with pytest.raises(K8sApiException, match="namespace nowhere not found"):
        asyncio.run(backend.create(new(Key("nowhere", "x"), "x")))


def test_acting_as_somebody_else_has_their_rights_only(served: Spec) -> None:
    backend = connect(kubeconfig=served.kubeconfig, as_user="jane")
    with pytest.raises(K8sApiException, match=r"you \(jane\) may not list mpijobs") as caught:
        asyncio.run(backend.list("default"))
    assert "mpijob-viewer" in caught.value.hint
