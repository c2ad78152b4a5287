"""Live logs of a cluster, before a real API server that asks a kubelet, with a real token.

The kubelet is played; what the pods' program says is the test's choice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from mpi_trainer.kube.config import load
from mpi_trainer.server.callers import PassedOn
from tests.api.admin import Admin
from tests.api.clients.test_server import Team, ours
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.kubelet_logs import KubeletLogs
from tests.api.lab import admin, controller, served, until
from tests.api.running import Controller
from tests.live_reader import Ended, LiveReader
from tests.rest import Rest
from tests.rest import served as serving
from tools.cluster.spec import Spec

__all__ = ["admin", "controller", "ours", "served"]

LINES = 600


@pytest.fixture
def logs(admin: Admin) -> Iterator[KubeletLogs]:
    with KubeletLogs(admin) as one:
        yield one


@pytest.fixture
def kubelet(admin: Admin, logs: KubeletLogs) -> Iterator[Kubelet]:
    with Kubelet(admin, node=logs.node) as one:
        yield one
    assert one.faults == []


@pytest.fixture
def viewer(served: Spec, ours: Team) -> Iterator[Rest]:
    with serving(PassedOn(load(served.kubeconfig))) as port:
        yield Rest(port, ours.viewer.token)


def texts(reader: LiveReader) -> list[str]:
    batches = [one.data["items"] for one in reader.heard if one.event == "lines"]
    assert all(not line["notes"] for batch in batches for line in batch)
    return [line["text"] for batch in batches for line in batch]


def counted(begin: int, end: int) -> list[str]:
    return [f"line {n}" for n in range(begin, end)]


def test_who_comes_back_to_a_cluster_s_log_gets_every_line_once(
    ours: Team, controller: Controller, kubelet: Kubelet, logs: KubeletLogs, viewer: Rest
) -> None:
    """From the last ten on, over broken connections to the node as well."""
    until(ours.admin, "Running", "ours")
    logs.say(*counted(0, 30))
    path = f"{ours.jobs}/ours/logs/live?tail=10"
    with LiveReader(viewer, path) as reader:
        assert reader.next("lines").data["skipped"] == 20
        logs.say(*counted(30, 40))
        while "line 39" not in texts(reader):
            reader.next("lines")
    found, position, visits = texts(reader), reader.position, 1

    def speak() -> None:
        for n in range(40, LINES, 5):
            logs.say(*counted(n, n + 5))
            if n % 50 == 0:
                logs.break_off()
            time.sleep(0.05)  # the pace of a program, not a wait
        logs.end()
        kubelet.finish = lambda pod: 0 if is_launcher(pod) else None

    speaker = threading.Thread(target=speak)
    speaker.start()
    while True:
        visits += 1
        with LiveReader(viewer, path, position) as reader:
            try:
                while len(texts(reader)) < 50:
                    reader.next("lines")
            except Ended:
                pass
        found += texts(reader)
        position = reader.position
        if any(one.event == "end" for one in reader.heard):
            break
    speaker.join()
    assert found == counted(20, LINES)
    assert reader.heard[-1].data == {"state": "Succeeded"}
    assert visits > 3 and any("sinceTime" in query for query in logs.asked)
