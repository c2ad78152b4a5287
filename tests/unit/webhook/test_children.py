"""Pods with a job's labels where the API server has no policies: owners prove them (S-10, C-15)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.webhook import review
from mpi_trainer.webhook.endpoints import Endpoints, Settings
from mpi_trainer.webhook.server_checks import MOST_PAGES, ServerChecks

JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
MPI = {"training.kubeflow.org/operator-name": "mpi-operator"}
TRAIN = {"mpi-trainer.opendatahub.io/trainjob": "victim"}
Object = dict[str, Any]


class Server:
    """An API server with these objects, by their names, and a namespace full of pods."""

    def __init__(self, **found: Object) -> None:
        self.found = found
        self.pages = 0

    async def call(self, request: Any, kind: Any) -> Any:
        if request.path.endswith("/pods"):
            self.pages += 1
            pods = [{"metadata": {"labels": {"l": f"{self.pages}-{n % 3}"}}} for n in range(500)]
            return typed.convert({"items": pods, "metadata": {"continue": "more"}}, kind)
        name = request.path.rpartition("/")[2]
        if name not in self.found:
            raise KubeError("not found")
        return typed.convert({"metadata": self.found[name]}, kind)


def owner(kind: str, name: str, uid: str) -> list[Object]:
    groups = {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
    group = groups.get(kind) or f"{'trainer.' * (kind == 'TrainJob')}kubeflow.org/v1"
    one = {"apiVersion": group, "kind": kind, "name": name, "uid": uid, "controller": True}
    return [one]


def taken(server: Server, labels: Object, owners: list[Object], user: str = JOB_CONTROLLER) -> bool:
    checks = ServerChecks(server)  # type: ignore[arg-type]
    endpoints = Endpoints(checks, "", lambda: False, Settings("controller"))
    pod = {"metadata": {"name": "p", "labels": labels, "ownerReferences": owners}}
    asked = {"operation": "CREATE", "namespace": "ns", "userInfo": {"username": user}}
    request = review.parse(msgspec.json.encode({"request": {**asked, "object": pod}}))
    answer: bool = asyncio.run(endpoints.validate_child(request))["response"]["allowed"]
    return answer


def job(uid: str, owners: list[Object], **labels: str) -> Object:
    return {"name": "j", "uid": uid, "ownerReferences": owners, "labels": labels}


@pytest.mark.parametrize(
    "found",
    [
        {"j": job("1", [], **{"training.kubeflow.org/operator-name": "anything"})},
        {"j": job("1", [], **MPI)},
        {"j": job("2", owner("MPIJob", "m", "m"))},
        {"j": job("1", owner("Other", "m", "m"))},
        {"j": job("1", owner("JobSet", "s", "s")), "s": {"uid": "s"}},
        {"j": job("1", owner("JobSet", "s", "s")), "s": {"uid": "t"}},
        {},
    ],
    ids=["label", "our label", "another uid", "another kind", "JobSet alone", "another JobSet", ""],
)
def test_a_pod_whose_owners_lead_to_no_job_is_refused(found: Object) -> None:
    """S-10: by the presence of a label on its Job such a pod went through."""
    assert not taken(Server(**found), MPI, owner("Job", "j", "1"))
    assert not taken(Server(**found), TRAIN, owner("Job", "j", "1"))


def test_a_pod_whose_owners_lead_to_a_job_is_taken() -> None:
    mpi = Server(j=job("1", owner("MPIJob", "m", "m")))
    of_set = job("1", owner("JobSet", "s", "s"))
    train = Server(j=of_set, s={"uid": "s", "ownerReferences": owner("TrainJob", "t", "t")})
    assert taken(mpi, MPI, owner("Job", "j", "1"))
    assert taken(train, TRAIN, owner("Job", "j", "1"))
    assert not taken(mpi, MPI, owner("Job", "j", "1"), user="pat")
    assert taken(Server(), {"app": "x", "training.kubeflow.org/operator-name": "else"}, [], "pat")


def test_jobs_are_counted_in_all_pages_or_said_to_be_more() -> None:
    """C-15: of a thousand pods only the first five hundred were looked at."""
    server = Server()
    counted = asyncio.run(ServerChecks(server).jobs_with_pods("ns", "l"))  # type: ignore[arg-type]
    assert counted == (3 * MOST_PAGES, True)
    assert server.pages == MOST_PAGES
