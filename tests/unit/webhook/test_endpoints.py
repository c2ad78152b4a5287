"""Whoever adds a claim needs its right, at every endpoint; no answer means no (S-4, S-7, C-3)."""

from __future__ import annotations

import asyncio
import copy
import threading
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.webhook import review
from mpi_trainer.webhook.endpoints import Endpoints, Settings
from mpi_trainer.webhook.mpijob import server_checks as mpijob_checks
from mpi_trainer.webhook.server_checks import MOST_RIGHTS, ServerChecks
from mpi_trainer.webhook.trainjob import server_checks as trainjob_checks
from tests.unit.api.building import LAUNCHER_POD, POD, POLICY, job
from tests.unit.api.traincases import KUEUE, PATCHES
from tests.unit.api.trainers import patch, runtime, train_job

ANN, EVE = "ann", "eve"
NEVER = 3600.0
SUSPEND = ((*POLICY, "suspend"), True)
HELD = (("spec", "suspend"), True)
NEAR = (("spec", "runtimeRef"), {"name": "mpi", "kind": "TrainingRuntime"})


class Server:
    """An API server that grants everything to `ann` and nothing else; parts of it may be slow."""

    def __init__(self, stored: dict[str, Any] | None = None, slow: str = "none") -> None:
        self.stored = stored or {}
        self.slow = slow
        self.asked: list[dict[str, Any]] = []

    async def call(self, request: Any, kind: Any) -> Any:
        if self.slow in request.path:
            await asyncio.sleep(NEVER)
        if "subjectaccessreviews" in request.path:
            spec = msgspec.json.decode(request.body)["spec"]
            self.asked.append(spec["resourceAttributes"])
            return typed.convert({"status": {"allowed": spec["user"] == ANN}}, kind)
        if "resourcequotas" in request.path:
            status = {"hard": {"pods": "4"}, "used": {"pods": "3"}}
            return typed.convert({"items": [{"metadata": {"name": "q"}, "status": status}]}, kind)
        if "runtimes" in request.path:
            return self.stored
        return None if kind is None else typed.convert({"items": []}, kind)


def answer(
    server: Server, kind: str, user: str, new: dict[str, Any], old: dict[str, Any] | None = None
) -> dict[str, Any]:
    checks = ServerChecks(server, seconds=0.05)  # type: ignore[arg-type]
    endpoints = Endpoints(checks, "", lambda: True, Settings("controller"))
    validate = {
        "MPIJob": endpoints.validate_mpijob,
        "TrainJob": endpoints.validate_trainjob,
        "TrainingRuntime": endpoints.validate_runtime,
    }[kind]
    request = {
        "kind": {"kind": kind},
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": "" if new.get("kind") == "ClusterTrainingRuntime" else "ns",
        "userInfo": {"username": user},
        "object": new,
        "oldObject": old,
    }
    parsed = review.parse(msgspec.json.encode({"request": request}))
    response: dict[str, Any] = asyncio.run(validate(parsed))["response"]
    return response


def said(response: dict[str, Any]) -> str:
    message: str = "" if response["allowed"] else response["status"]["message"]
    return message


BORROWED = [
    ((*LAUNCHER_POD, "serviceAccountName"), "admin-sa"),
    ((*POD, "volumes"), [{"name": "h", "hostPath": {"path": "/"}}]),
    ((*POD, "volumes"), [{"name": "k", "secret": {"secretName": "other-ssh"}}]),
    ((*POD, "serviceAccount"), "admin-sa"),
]


@pytest.mark.parametrize("change", BORROWED)
def test_claim_is_asked_of_who_patches_it_into_a_suspended_job(change: Any) -> None:
    """S-4, C-3, W-1, W-2: a harmless job first, the claim in the change that resumes it."""
    held, resumed = job(SUSPEND), job(change)
    assert answer(Server(), "MPIJob", EVE, held)["allowed"]
    assert "eve may not `create pods`" in said(answer(Server(), "MPIJob", EVE, job(change)))
    assert "eve may not `create pods`" in said(answer(Server(), "MPIJob", EVE, resumed, held))
    assert answer(Server(), "MPIJob", ANN, resumed, held)["allowed"]
    queue = "system:serviceaccount:kueue-system:kueue-controller-manager"
    placed = job(change, ((*POD, "nodeSelector"), {"a": "b"}))
    assert answer(Server(), "MPIJob", queue, placed, job(change, SUSPEND))["allowed"]


def test_claim_is_asked_even_of_a_job_with_errors_that_it_had_before() -> None:
    """An annotation of another version is borne; what comes in with it is not."""
    strange = (("metadata", "annotations"), {"mpi-trainer.opendatahub.io/someday": "x"})
    changes = (strange, BORROWED[0])
    response = answer(Server(), "MPIJob", EVE, job(*changes), job(strange, SUSPEND))
    assert "eve may not" in said(response)


def test_more_workers_than_the_quota_are_refused_at_a_change_too() -> None:
    """W-1: 8 replicas over quota by update; a running job's own pods are not counted twice."""
    grown = (("spec", "mpiReplicaSpecs", "Worker", "replicas"), 8)
    assert "quota `q` allows 4" in said(answer(Server(), "MPIJob", EVE, job(grown), job(SUSPEND)))
    assert "quota `q` allows 4" in said(answer(Server(), "MPIJob", EVE, job(grown), job()))
    assert "warnings" in answer(Server(), "MPIJob", EVE, job(), job(SUSPEND))
    fewer = (("spec", "mpiReplicaSpecs", "Worker", "replicas"), 1)
    assert "warnings" not in answer(Server(), "MPIJob", EVE, job(fewer), job())


def test_right_that_could_not_be_asked_is_not_held() -> None:
    for user in (ANN, EVE):
        server = Server(slow="subjectaccessreviews")
        text = said(answer(server, "MPIJob", user, job(BORROWED[0])))
        assert f"whether {user} may `create pods`" in text
        assert "could not be asked in time" in text
        assert "try again" in text


def test_runtime_that_could_not_be_read_refuses_the_job() -> None:
    """S-7: in 3 s nobody knew what it asks, and the job was taken."""
    for kind in ("TrainingRuntime", "ClusterTrainingRuntime"):
        new = train_job((("spec", "runtimeRef", "kind"), kind))
        text = said(answer(Server(runtime(), slow="runtimes"), "TrainJob", EVE, new))
        assert "spec.runtimeRef.name: Forbidden" in text
        assert "could not be read in 0.05 s" in text
        assert text.endswith("try again")
        held = train_job((("spec", "runtimeRef", "kind"), kind), HELD)
        assert answer(Server(slow="runtimes"), "TrainJob", EVE, new, held)["allowed"]


def test_unanswered_question_that_is_about_no_right_is_a_warning() -> None:
    """W-8: pods that could not be tried in time, with nothing else wrong."""
    response = answer(Server(slow="/pods"), "MPIJob", EVE, job())
    assert response["allowed"]
    warnings = " ".join(response["warnings"])
    assert "Not checked: whether the cluster would take the pods could not be asked" in warnings
    assert "the job is taken as it is" in warnings


def borrowing(**spec: Any) -> dict[str, Any]:
    template = runtime((("kind",), "TrainingRuntime"), (("metadata", "namespace"), "ns"))
    for one in template["spec"]["template"]["spec"]["replicatedJobs"]:
        one["template"]["spec"]["template"]["spec"].update(spec)
    return template


def test_queue_starts_a_trainjob_whose_runtime_names_an_account() -> None:
    """C-4."""
    server = Server(borrowing(serviceAccountName="trainer-sa"))
    held = train_job(NEAR, HELD, (PATCHES, [KUEUE]))
    bound = patch("node", "kueue.x-k8s.io/manager", nodeSelector={"flavor": "a100"})
    started = train_job(NEAR, (PATCHES, [bound]))
    assert answer(server, "TrainJob", ANN, held)["allowed"]
    assert "may not" in said(answer(server, "TrainJob", EVE, held))
    assert answer(server, "TrainJob", "kueue", started, held)["allowed"]


@pytest.mark.parametrize("labels", [{}, {"trainer.kubeflow.org/webhook-validation": "disabled"}])
def test_runtime_is_asked_about_like_a_job(labels: dict[str, str]) -> None:
    """The label spares a runtime the judgement of its form, not that of rights."""
    plain, bad = borrowing(), borrowing(hostNetwork=True)
    for one in (plain, bad):
        one["metadata"]["labels"] = labels
    assert answer(Server(), "TrainingRuntime", EVE, plain)["allowed"]
    assert "share this with their node" in said(answer(Server(), "TrainingRuntime", EVE, bad))
    assert "may not" in said(answer(Server(), "TrainingRuntime", EVE, bad, plain))
    assert answer(Server(), "TrainingRuntime", ANN, bad, plain)["allowed"]
    relabelled = copy.deepcopy(bad)
    relabelled["metadata"]["labels"] = {**labels, "team": "a"}
    assert answer(Server(), "TrainingRuntime", EVE, relabelled, bad)["allowed"]
    policies = [{"templates": [{"metadata": {"name": "data"}}]}]
    plain["spec"]["template"]["spec"]["volumeClaimPolicies"] = policies
    assert "PersistentVolumeClaims would be created" in said(
        answer(Server(), "TrainingRuntime", EVE, plain)
    )


def test_cluster_runtime_needs_the_right_in_all_namespaces() -> None:
    far = {**borrowing(hostPID=True), "kind": "ClusterTrainingRuntime"}
    server = Server()
    assert "in all namespaces" in said(answer(server, "TrainingRuntime", EVE, far))
    assert {asked["namespace"] for asked in server.asked} == {""}


def test_one_job_makes_us_ask_for_few_rights() -> None:
    many = [{"secretRef": {"name": f"job-{n}-ssh"}} for n in range(500)]
    server = Server()
    changed = job(((*POD, "containers", 0, "envFrom"), many))
    text = said(answer(server, "MPIJob", EVE, changed))
    assert text.endswith("* Forbidden: and 480 more that need a right")
    assert len(server.asked) == MOST_RIGHTS + 1


def test_an_error_of_the_server_is_no_answer() -> None:
    class Broken(Server):
        async def call(self, request: Any, kind: Any) -> Any:
            raise KubeError(request, "broken")

    assert "try again" in said(answer(Broken(), "MPIJob", ANN, job(BORROWED[0])))


MANY = 10_000


@pytest.mark.parametrize("kind", ["MPIJob", "TrainJob"])
def test_pods_of_a_large_job_are_rendered_beside_the_loop(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-1: 500 bytes with `replicas: 10000` held up every other review for seconds."""
    threads: list[int] = []
    module = {"MPIJob": mpijob_checks, "TrainJob": trainjob_checks}[kind]
    real = module.layout

    def noted(*given: Any) -> Any:
        threads.append(threading.get_ident())
        return real(*given)

    monkeypatch.setattr(module, "layout", noted)
    if kind == "MPIJob":
        new = job((("spec", "mpiReplicaSpecs", "Worker", "replicas"), MANY))
    else:
        new = train_job((("spec", "trainer", "numNodes"), MANY - 1))
    answer(Server(runtime()), kind, ANN, new)
    assert threads
    assert threading.get_ident() not in threads
