"""OBS-1: dashboards and alerts in a real Prometheus, which reads the real controller, webhook and
server of a real API server, each with its own token, while jobs run, succeed and fail.

What kubelets, kube-state-metrics and GPUs tell is not here: `tests/unit/monitoring` has it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.api.accounts import account, with_token
from tests.api.admin import JOBS, Admin
from tests.api.admission.serving import NAMESPACE, install, remove, serving
from tests.api.kubelet import NODE, Kubelet
from tests.api.running import Controller, ask_metrics, free_port, job
from tests.api.trainjob_lab import SETS, TRAIN, admin, api_server, train_job
from tests.cluster import Kubectl, eventually
from tests.prometheus_package import program
from tests.rest import Rest
from tests.unit.monitoring.promql import selectors
from tools.cluster.spec import Spec
from tools.monitoring.__main__ import DASHBOARDS, FOLDER
from tools.monitoring.alerts import ALERTS
from tools.monitoring.sources import OTHERS

__all__ = ["admin", "api_server"]

READER: Final = "mpi-trainer-metrics-reader"
FAULTS: Final = frozenset({"mpi_trainer_server_requests_total"})
"""metrics of alerts that have no series until something of that kind has happened"""
SERVICES: Final = ("mpi-trainer-metrics", "mpi-trainer-webhook", "mpi-trainer-server-metrics")


def ours(query: str) -> bool:
    return not {name for name, _ in selectors(query)} & {*OTHERS}


def asked(query: str) -> str:
    return query.replace("$__rate_interval", "30s")


class Prometheus:
    def __init__(self, address: str) -> None:
        self._address = address

    def read(self, path: str, **parameters: str) -> Any:
        words = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._address}/api/v1/{path}?{words}", timeout=60) as answer:
            return json.load(answer)["data"]

    def values(self, query: str) -> list[Any]:
        found: list[Any] = self.read("query", query=query)["result"]
        return found

    def up(self) -> bool:
        """Whether every target was read, twice at least."""
        try:
            found = self.values("sum_over_time(up[5m]) >= 2")
        except OSError:
            return False
        return {one["metric"]["job"] for one in found} == {*SERVICES}


@contextmanager
def prometheus(targets: dict[str, int], token: str, folder: Path) -> Iterator[Prometheus]:
    """As the ServiceMonitors of `manifests/monitoring` have it read."""
    (folder / "token").write_text(token)
    scrapes = [
        {
            "job_name": service,
            "scheme": "https",
            "honor_labels": True,
            "authorization": {"credentials_file": str(folder / "token")},
            "tls_config": {"insecure_skip_verify": True},
            "static_configs": [
                {
                    "targets": [f"127.0.0.1:{port}"],
                    "labels": {"namespace": NAMESPACE, "pod": f"{service}-0"},
                }
            ],
        }
        for service, port in targets.items()
    ]
    config = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": [str(FOLDER / "prometheus/rules.yml")],
        "scrape_configs": scrapes,
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    words = [
        str(program("prometheus")),
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def server(spec: Spec, folder: Path) -> Iterator[tuple[Rest, int]]:
    """Without a login of its own, as in a cluster."""
    port, metrics = free_port(), free_port()
    command = [
        *(sys.executable, "-m", "mpi_trainer.server", f"--port={port}"),
        *(f"--cluster={spec.api_url}", f"--cluster-ca={spec.state}/pki/ca.crt"),
        f"--metrics-port={metrics}",
    ]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually("the server answers", lambda: _answers(Rest(port)))
        yield Rest(port), metrics
    finally:
        process.terminate()
        process.wait(40)


def _answers(rest: Rest) -> bool:
    try:
        return rest.ask("GET", "/healthz").status == 200
    except OSError:
        return False


def make_jobs(admin: Admin) -> None:
    """One of each state that a job can be in, by the kubelet's and JobSet's doing."""
    for name in ("runs", "succeeds", "fails", "waits"):
        admin.create(f"{JOBS}/mpijobs", job(name=name, workers=1, backoffLimit=0))
    admin.create(f"{TRAIN}/trainjobs", train_job())


def finish(pod: dict[str, Any]) -> int | None:
    name = pod["metadata"]["name"]
    if "-launcher" not in name:
        return None
    return {"succeeds": 0, "fails": 1}.get(name.partition("-")[0])


@pytest.mark.full
@pytest.mark.timeout(900)
def test_every_query_and_every_alert_in_a_real_prometheus(
    api_server: Spec, admin: Admin, tmp_path: Path
) -> None:
    """No panel is empty that our processes fill, no rule fails, none fires while all is well; an
    alert is on its way as soon as the controller is gone. Tenants read nothing of it."""
    kubectl = Kubectl(api_server)
    install(kubectl)
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    home = Kubectl(api_server, admin.namespace)
    reader, tenant = account(home, "prometheus"), account(home, "tenant", "mpijob-user")
    whom = f"--serviceaccount={admin.namespace}:prometheus"
    kubectl("create", "clusterrolebinding", admin.namespace, f"--clusterrole={READER}", whom)
    config = with_token(Kubectl(api_server, NAMESPACE), "mpi-trainer").kubeconfig(tmp_path)
    ports = {"mpi-trainer-metrics": free_port(), "mpi-trainer-webhook": free_port()}
    with ExitStack() as stack:
        stack.callback(remove, kubectl)
        (tmp_path / "webhook").mkdir()
        flags = [f"--secure-metrics --metrics-port={port}".split() for port in ports.values()]
        stack.enter_context(serving(api_server, tmp_path / "webhook", free_port(), *flags[1]))
        kubelet = stack.enter_context(Kubelet(admin))
        kubelet.finish = finish
        lease = (f"--lock-namespace={NAMESPACE}",)
        kubelet.hold = lambda pod: pod["metadata"]["name"].startswith("waits")
        own = (f"--namespaces={admin.namespace}", "--beside-upstream", *lease, *flags[0])
        controller = stack.enter_context(Controller(config, *own))
        rest, ports["mpi-trainer-server-metrics"] = stack.enter_context(
            server(api_server, tmp_path)
        )
        live = stack.enter_context(prometheus(ports, reader.token, tmp_path))
        eventually("Prometheus reads all of them", live.up, 120)
        make_jobs(admin)
        eventually("one job runs", lambda: admin.holds("Running", "runs"))
        eventually("one job succeeded", lambda: admin.holds("Succeeded", "succeeds"))
        eventually("one job failed", lambda: admin.holds("Failed", "fails"))
        running(admin)
        asking = Rest(rest.port, tenant.token)
        for _ in range(3):
            assert len(asking.get(f"/api/v1/namespaces/{admin.namespace}/mpijobs")["items"]) == 4
        for port in ports.values():
            assert ask_metrics(port)[0] == 401
            assert ask_metrics(port, f"Bearer {tenant.token}")[0] == 403
        every_panel(live)
        every_rule(live)
        controller.kill()
        eventually("it is missed", lambda: states(live)["MPITrainerDown"] == "pending", 400)


def running(admin: Admin) -> None:
    """JobSet says so of the TrainJob; how long it took is a metric."""
    eventually("its JobSet", lambda: admin.get(f"{SETS}/jobsets/pi") is not None)
    counts = {"ready": 1, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}
    found = admin.get(f"{SETS}/jobsets/pi")
    assert found is not None
    status = [{"name": one["name"], **counts} for one in found["spec"]["replicatedJobs"]]
    path = f"/{SETS}/namespaces/{admin.namespace}/jobsets/pi/status"
    merge = "application/merge-patch+json"
    admin.call("PATCH", path, {"status": {"replicatedJobsStatus": status}}, merge)


def every_panel(live: Prometheus) -> None:
    queries = {asked(query) for one in DASHBOARDS for query in one.queries() if ours(query)}
    assert len(queries) > 30

    def empty() -> list[str]:
        return sorted(query for query in queries if not live.values(query))

    try:
        eventually("every panel shows something", lambda: not empty(), 120)
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *empty()])) from None


def every_rule(live: Prometheus) -> None:
    """Each is read and evaluated, over series that are there, and none is on its way."""
    (group,) = live.read("rules")["groups"]
    assert [one["name"] for one in group["rules"]] == [alert.name for alert in ALERTS]
    assert {one["health"] for one in group["rules"]} == {"ok"}, group
    for alert in ALERTS:
        for name, _ in selectors(alert.expr):
            assert name in FAULTS or live.values(name), f"{alert.name}: nobody has {name}"
    begun = {name for name, state in states(live).items() if state != "inactive"}
    # A job waits on purpose, and has done so for less than the hour that it takes.
    assert begun <= {"MPITrainerMPIJobsStuck", "MPITrainerTrainJobsStuck"}
    assert "firing" not in states(live).values()


def states(live: Prometheus) -> dict[str, str]:
    (group,) = live.read("rules")["groups"]
    return {one["name"]: one["state"] for one in group["rules"]}
