"""The status endpoint on a real API server: real tokens of real pods, real owner references.

The test plays JobSet: it makes the Job, whose pod the Job controller makes.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mpi_trainer.controller.statusserver.writes import EVERY
from tests.api.admin import Admin, Object
from tests.api.running import Controller, free_port
from tests.api.trainjob_lab import (
    SETS,
    TRAIN,
    admin,
    api_server,
    job_of,
    job_set,
    submit,
    train_job,
)
from tests.cluster import eventually

__all__ = ["admin", "api_server"]

TRACKING = "trainer.opendatahub.io/progression-tracking"
TOLD = "trainer.opendatahub.io/trainerStatus"
NOW = "2026-11-17T12:00:00.5+00:00"


class Place(msgspec.Struct, frozen=True):
    """The endpoint, and how to speak to it."""

    admin: Admin
    port: int

    @property
    def host(self) -> str:
        return f"mpi-trainer-status.{self.admin.namespace}.svc"

    def post(self, token: str, body: Any, path: str = "", by: str = "pi") -> tuple[int, Object]:
        """As a program in a pod of the job `by` does it, which trusts its job's authority only."""
        trusted = self.admin.get(f"api/v1/configmaps/{by}-tls-config")
        assert trusted is not None
        trust = ssl.create_default_context(cadata=trusted["data"]["ca.crt"])
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30)
        raw = socket.create_connection(("127.0.0.1", self.port), 30)
        connection.sock = trust.wrap_socket(raw, server_hostname=self.host)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request("POST", path or self.path(), data, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def path(self, job: str = "pi") -> str:
        return f"/apis/{self.audience(job)}"

    def audience(self, job: str = "pi") -> str:
        place = self.admin.namespace
        return f"trainer.kubeflow.org/v1alpha1/namespaces/{place}/trainjobs/{job}/status"

    def token(self, pod: Object | None, audience: str) -> str:
        """Of the default account, bound to the pod, as the kubelet asks for it."""
        bound = {}
        if pod is not None:
            meta = pod["metadata"]
            ref = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
            bound = {"boundObjectRef": ref}
        spec = {"audiences": [audience], "expirationSeconds": 3600, **bound}
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        made = self.admin.create("api/v1/serviceaccounts/default/token", asked)
        return str(made["status"]["token"])


@pytest.fixture
def place(admin: Admin) -> Iterator[Place]:
    port = free_port()
    flags = (f"--status-port={port}", f"--lock-namespace={admin.namespace}")
    with Controller.alone(admin.spec.kubeconfig, admin.namespace, *flags) as one:
        account = "api/v1/serviceaccounts/default"
        eventually("the account", lambda: admin.get(account) is not None)
        yield Place(admin, port)
        assert '"logger":"mpi_trainer.runtime.workers","msg":"failed' not in one.log(), one.log()


def pod_of(admin: Admin, job: str = "pi", controlled: bool = True) -> Object:
    """A pod of a Job of the job's JobSet; `controlled`: the JobSet is the Job's controller."""
    made = job_set(admin, job)
    template = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    name = f"{job}-node-0"
    owner = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": job,
        "uid": made["metadata"]["uid"],
        "controller": controlled,
    }
    pod = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    spec = {"template": pod, "completionMode": "Indexed", "completions": 1, "parallelism": 1}
    admin.create(
        "apis/batch/v1/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": spec,
        },
    )

    def found() -> list[Object]:
        pods = admin.every("api/v1/pods")
        return [p for p in pods if p["metadata"]["labels"].get("job-name") == name]

    eventually("its pod", lambda: bool(found()))
    return found()[0]


def report(percent: int = 42, **more: Any) -> Object:
    metrics = [{"name": "loss", "value": "0.25"}, {"name": "eval_loss", "value": "nan"}]
    said = {"progressPercentage": percent, "estimatedRemainingSeconds": 4200, "metrics": metrics}
    return {"trainerStatus": {**said, "lastUpdatedTime": NOW, **more}}


def test_a_program_tells_its_progress_and_everybody_reads_it(place: Place) -> None:
    """U-7: by upstream's variables, path and body, into trainerStatus; for OpenShift AI too."""
    admin = place.admin
    submit(admin, train_job(runtime="plain", metadata={"annotations": {TRACKING: "true"}}))
    pod = pod_of(admin)
    (main,) = pod["spec"]["containers"]
    given = {one["name"]: one.get("value") for one in main["env"]}
    folder = "/var/run/secrets/kubeflow/trainer"
    url = f"https://{place.host}:{place.port}{place.path()}"
    assert given["KUBEFLOW_TRAINER_SERVER_URL"] == url
    assert given["KUBEFLOW_TRAINER_SERVER_CA_CERT"] == f"{folder}/ca.crt"
    assert given["KUBEFLOW_TRAINER_SERVER_TOKEN"] == f"{folder}/token"
    volume = next(v for v in pod["spec"]["volumes"] if v["name"] == "kubeflow-trainer-token")
    projected = volume["projected"]["sources"][0]["serviceAccountToken"]
    assert (projected["audience"], projected["expirationSeconds"]) == (place.audience(), 3600)
    token = place.token(pod, projected["audience"])
    code, said = place.post(token, report())
    assert code == 200, said
    assert said["trainerStatus"]["progressPercentage"] == 42
    stored = job_of(admin)
    assert stored["status"]["trainerStatus"] == {
        "progressPercentage": 42,
        "estimatedRemainingSeconds": 4200,
        "metrics": [{"name": "loss", "value": "0.25"}, {"name": "eval_loss", "value": "nan"}],
        "lastUpdatedTime": "2026-11-17T12:00:00Z",
    }
    assert json.loads(stored["metadata"]["annotations"][TOLD]) == {
        "progressPercentage": 42,
        "estimatedRemainingSeconds": 4200,
        "estimatedRemainingTimeSummary": "1 hour 10 minutes",
        "trainMetrics": {"loss": 0.25},
        "evalMetrics": {"eval_loss": "nan"},
        "lastUpdatedTime": "2026-11-17T12:00:00Z",
    }
    # A later one replaces all of it, and a flood is few writes, of which the last is the last.
    versions = set()
    for percent in range(43, 93):
        code, said = place.post(token, report(percent, metrics=[]))
        assert code == 200, said
        versions.add(job_of(admin)["metadata"]["resourceVersion"])
    eventually(
        "the last", lambda: job_of(admin)["status"]["trainerStatus"].get("progressPercentage") == 92
    )
    assert "metrics" not in job_of(admin)["status"]["trainerStatus"]
    assert len(versions) < 20
    # What we write of the job ourselves leaves it alone.
    done = {"succeeded": 0, "ready": 0, "failed": 0, "active": 1, "suspended": 0}
    status = {"replicatedJobsStatus": [{"name": "node", **done}]}
    admin.patch(f"{SETS}/jobsets/pi/status", {"status": status})
    eventually("counts", lambda: bool(job_of(admin)["status"].get("jobsStatus")))
    assert job_of(admin)["status"]["trainerStatus"]["progressPercentage"] == 92


def test_the_documented_program_tells_its_progress(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DOC-1: docs/trainjob.md, word for word; only the Service's name is found here."""
    admin = place.admin
    submit(admin, train_job(runtime="plain"))
    token = place.token(pod_of(admin), place.audience())
    trusted = admin.get("api/v1/configmaps/pi-tls-config")
    assert trusted is not None
    files = {"TOKEN": token, "CA_CERT": trusted["data"]["ca.crt"]}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setenv(f"KUBEFLOW_TRAINER_SERVER_{name}", str(tmp_path / name))
    url = f"https://{place.host}:{place.port}{place.path()}"
    monkeypatch.setenv("KUBEFLOW_TRAINER_SERVER_URL", url)
    found = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **k: found("127.0.0.1", *more, **k))
    page = (Path(__file__).parents[2] / "docs/trainjob.md").read_text()
    (program,) = (p for p in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def tell" in p)
    defined: dict[str, Any] = {}
    exec(program, defined)
    defined["tell"](42, 60, loss=0.25)
    stored = job_of(admin)["status"]["trainerStatus"]
    assert (stored["progressPercentage"], stored["estimatedRemainingSeconds"]) == (42, 60)
    assert stored["metrics"] == [{"name": "loss", "value": "0.25"}]


def test_nobody_but_a_pod_of_the_job_tells_of_it(place: Place) -> None:
    """S: a token of the namespace is not enough, nor are labels or another job's pod."""
    admin = place.admin
    for name in ("pi", "other"):
        submit(admin, train_job(name, runtime="plain"))
    pod, others = pod_of(admin), pod_of(admin, "other")
    labels = pod["metadata"]["labels"]
    copied = {k: v for k, v in labels.items() if "jobset" in k or "trainjob" in k}
    container = {"name": "node", "image": "x"}
    alien = admin.create(
        "api/v1/pods",
        {"metadata": {"name": "alien", "labels": copied}, "spec": {"containers": [container]}},
    )
    right = place.audience()
    refused = {
        "no token": "",
        "no token at all": "not.a.token",
        "for the API server": place.token(pod, "https://kubernetes.default.svc.cluster.local"),
        "for another job": place.token(pod, place.audience("other")),
        "of no pod": place.token(None, right),
        "of a pod with its labels": place.token(alien, right),
        "of another job's pod": place.token(others, right),
    }
    for what, token in refused.items():
        code, said = place.post(token, report())
        assert (code, said["kind"], said["reason"]) == (403, "Status", "Forbidden"), what
    assert "trainerStatus" not in job_of(admin).get("status", {})
    code, _ = place.post(place.token(pod, right), report())
    assert code == 200
    # A job that is gone is told of by nobody, and another of its name neither.
    token = place.token(pod, right)
    admin.delete(f"{TRAIN}/trainjobs/pi")
    eventually("it is gone", lambda: admin.get(f"{TRAIN}/trainjobs/pi") is None)
    submit(admin, train_job(runtime="plain", suspend=True))
    time.sleep(0.1)  # the endpoint must not wait for a cache
    code, _ = place.post(token, report(99), by="other")
    assert code in (200, 403, 404)
    if code == 200:  # so soon after the one before it is taken, and written later: to no job
        time.sleep(EVERY + 1)  # by then it would have been written
    assert "trainerStatus" not in job_of(admin).get("status", {})


def test_what_is_no_report_is_refused_and_the_endpoint_lives_on(place: Place) -> None:
    admin = place.admin
    submit(admin, train_job(runtime="plain"))
    token = place.token(pod_of(admin), place.audience())
    bad: list[tuple[Any, int]] = [
        (b"", 422),
        (b"[" * 30000, 422),
        (b'{"trainerStatus": 3}', 422),
        (report(101), 422),
        (report(-1), 422),
        ({"trainerStatus": {"progressPercentage": 1}}, 422),
        (report(lastUpdatedTime="yesterday"), 422),
        (report(metrics=[{"name": "x" * 65, "value": "1"}]), 422),
        (report(metrics=[{"name": "x", "value": "1"}] * 257), 422),
        (b" " * 70000, 413),
    ]
    for body, wanted in bad:
        code, said = place.post(token, body)
        assert code == wanted, (body[:80] if isinstance(body, bytes) else body, said)
        assert said["kind"] == "Status"
    assert place.post(token, {}) == (200, {})
    assert place.post(token, report(), path="/apis")[0] == 404
    assert "trainerStatus" not in job_of(admin).get("status", {})
    assert place.post(token, report())[0] == 200
