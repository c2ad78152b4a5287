"""Usage over time by the REST API, out of a real Prometheus, for each caller alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.kube.config import load
from mpi_trainer.server.callers import PassedOn
from mpi_trainer.server.prometheus import PrometheusSettings
from tests.api.accounts import account
from tests.api.clients.test_server import Team, other, ours, theirs
from tests.api.lab import admin, served
from tests.cluster import Kubectl
from tests.prometheus import Pod, Seen, prometheus, tenants_port
from tests.rest import Rest
from tests.rest import served as serving
from tools.cluster.spec import Spec

__all__ = ["admin", "other", "ours", "served", "theirs"]

Object = dict[str, Any]


@pytest.fixture
def address(ours: Team, theirs: Team, tmp_path: Path) -> Iterator[str]:
    """A Prometheus that knows pods of both namespaces, by the names that a controller gives."""
    ns, foreign = ours.admin.namespace, theirs.admin.namespace
    pods = (
        Pod(ns, "ours-worker-0", 1.5, 100 << 20, gpu=80.0),
        Pod(ns, "ours-worker-1", 0.5, 200 << 20, gpu=60.0, exported=True),
        Pod(ns, "ours-worker-10", 9.0, 900 << 20),
        Pod(foreign, "theirs-worker-0", 7.0, 700 << 20, gpu=70.0),
        Pod(foreign, "ours-worker-0", 8.0, 800 << 20, gpu=75.0, exported=True),
    )
    with prometheus(pods, tmp_path) as found:
        yield found


def history(port: int, team: Team, name: str, token: str) -> Object:
    found: Object = Rest(port, token).get(f"{team.jobs}/{name}/metrics/history?minutes=5")
    return found


def last(found: Object) -> dict[tuple[str, str], float]:
    return {(one["name"], one["pod"]): one["points"][-1][1] for one in found["series"]}


def test_usage_comes_from_prometheus_for_whoever_may_see_the_pods(
    served: Spec, ours: Team, theirs: Team, address: str
) -> None:
    callers = PassedOn(load(served.kubeconfig), prometheus=PrometheusSettings(address))
    with serving(callers) as port:
        found = history(port, ours, "ours", ours.user.token)
        values = last(found)
        assert found["source"] == "Prometheus", found
        assert {pod for _, pod in values} == {"ours-worker-0", "ours-worker-1"}
        # A rate over two minutes of what has been there for seconds is less than the real one.
        first, second = (values["cpus", f"ours-worker-{index}"] for index in (0, 1))
        assert 0 < first < 1.6 and first / second == pytest.approx(3, rel=0.2)
        assert values["memoryBytes", "ours-worker-1"] == 200 << 20
        assert values["gpuPercent", "ours-worker-0"] == 80
        assert values["gpuPercent", "ours-worker-1"] == 60
        assert values["gpuMemoryBytes", "ours-worker-1"] == 1 << 30
        assert 0 < values["receivedBytes", "ours-worker-0"] < 1100
        units = {one["name"]: one["unit"] for one in found["series"]}
        assert units["cpus"] == "cores" and units["receivedBytes"] == "bytes/s"

        path = f"{theirs.jobs}/theirs/metrics/history"
        refused = Rest(port, ours.user.token).ask("GET", path)
        assert refused.status == 403 and b"points" not in refused.body
        assert {pod for _, pod in last(history(port, theirs, "theirs", theirs.user.token))} == {
            "theirs-worker-0"
        }
        for query in ('minutes=5&namespace=x"}', "minutes=0", "minutes=99999", 'query=up{a="b"}'):
            refused = Rest(port, ours.user.token).ask(
                "GET", f"{ours.jobs}/ours/metrics/history?{query}"
            )
            assert refused.status == 400, query


def test_who_may_read_jobs_but_not_pods_gets_no_usage(
    served: Spec, ours: Team, address: str
) -> None:
    """Prometheus itself would tell; the job's pods are listed first, with the caller's token."""
    kubectl = Kubectl(served, ours.admin.namespace)
    half = account(kubectl, "half")
    kubectl("create", "role", "half", "--verb=get,list", "--resource=mpijobs.kubeflow.org")
    where = f"--serviceaccount={ours.admin.namespace}:half"
    kubectl("create", "rolebinding", "half", "--role=half", where)
    callers = PassedOn(load(served.kubeconfig), prometheus=PrometheusSettings(address))
    with serving(callers) as port:
        path = f"{ours.jobs}/ours/metrics/history"
        reply = Rest(port, half.token).ask("GET", path)
        assert reply.status == 403 and b"points" not in reply.body, reply
        assert Rest(port, half.token).ask("GET", f"{ours.jobs}/ours").status == 200


def test_a_port_for_tenants_gets_the_callers_token_and_namespace(
    served: Spec, ours: Team, address: str
) -> None:
    seen = Seen()
    config = load(served.kubeconfig)
    with tenants_port(address, seen) as proxy:
        with serving(PassedOn(config, prometheus=PrometheusSettings(proxy, tenancy=True))) as port:
            assert last(history(port, ours, "ours", ours.user.token))
            assert set(seen.logins) == {f"Bearer {ours.user.token}"}
            assert set(seen.namespaces) == {ours.admin.namespace}
            seen.refuse = True
            refused = history(port, ours, "ours", ours.user.token)
            assert refused["series"] == []
            assert refused["notes"] == [
                "Prometheus does not let you read metrics of this namespace"
            ]
        seen.logins.clear()
        with serving(PassedOn(config, prometheus=PrometheusSettings(proxy))) as port:
            history(port, ours, "ours", ours.user.token)
            assert set(seen.logins) == {""}, "without tenancy no token leaves the server"
    with serving(PassedOn(config, prometheus=PrometheusSettings(proxy))) as port:
        gone = history(port, ours, "ours", ours.user.token)
        assert any("cannot be asked" in note for note in gone["notes"])
    with serving(PassedOn(config)) as port:
        none = history(port, ours, "ours", ours.user.token)
        assert any("--prometheus" in note for note in none["notes"])
