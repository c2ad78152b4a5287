"""AC-9: lines of pods that are gone, out of a real Loki, page by page (issue 27).

What its gateway would do, to let each caller see their namespaces only, is shown with a scripted
store (`tests/api/clients/test_server_log_store.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from mpi_trainer.kube.config import load
from mpi_trainer.server.callers import PassedOn
from mpi_trainer.server.log_stores.settings import LogStoreSettings
from tests.api.clients.test_server import Team, other, ours, theirs
from tests.api.clients.test_server_log_store import POD, texts
from tests.api.lab import admin, served
from tests.cluster import eventually
from tests.loki import Loki, serving
from tests.rest import Rest
from tests.rest import served as server_of
from tools.cluster.spec import Spec

__all__ = ["admin", "other", "ours", "served", "theirs"]

pytestmark = [pytest.mark.full, pytest.mark.timeout(300, func_only=True)]

LINES = 12_000
SAME = 400
"""lines that have one and the same time"""


@pytest.fixture(scope="module")
def loki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loki]:
    with serving(tmp_path_factory.mktemp("loki")) as one:
        yield one


def labels(namespace: str, pod: str) -> dict[str, str]:
    return {"kubernetes_namespace_name": namespace, "kubernetes_pod_name": pod, "log_type": "app"}


def collected(text: str) -> str:
    """As OpenShift's collector stores it."""
    return json.dumps({"message": text, "level": "info", "kubernetes": {"host": "n1"}})


def test_a_job_whose_pods_are_gone_is_read_out_of_a_real_loki(
    served: Spec, ours: Team, theirs: Team, loki: Loki
) -> None:
    space, foreign = ours.admin.namespace, theirs.admin.namespace
    now = time.time_ns() // 1_000_000 * 1_000_000
    whole = [f"[1,{n % 4}]<stdout>:line {n}" for n in range(LINES)]
    for first in range(0, LINES, 3000):
        part = range(first, first + 3000)
        stored = [(now + n // SAME * 1_000_000, collected(whole[n])) for n in part]
        loki.push(labels(space, POD), stored)
    loki.push(labels(space, "ours-worker-1"), [(now, "plain line of a worker")])
    loki.push(labels(space, "other-launcher-abcde"), [(now, "of another job")])
    loki.push(labels(foreign, POD), [(now, "secret")])
    settings = LogStoreSettings(loki.address)
    with server_of(PassedOn(load(served.kubeconfig), log_store=settings)) as port:
        user, logs = Rest(port, ours.user.token), f"{ours.jobs}/ours/logs"
        told = [(n % 4, f"line {n}") for n in range(LINES)]
        eventually("all is stored", lambda: texts(user, f"{logs}?tail=1") == told[-1:], 60)
        assert texts(user, f"{logs}?tail=10000") == told[-10_000:]
        assert texts(user, f"{logs}?rank=1&tail=2") == [t for t in told if t[0] == 1][-2:]
        assert texts(user, f"{logs}?contains=line+77") == [
            one for one in told[-10_000:] if one[1].startswith("line 77")
        ]
        assert texts(user, f"{logs}/worker/1") == [(None, "plain line of a worker")]
        late = now + (LINES // SAME - 2) * 1_000_000
        since = datetime.fromtimestamp(late / 10**9, UTC).strftime("%FT%T.%fZ")
        assert texts(user, f"{logs}?tail=10000&since={since}") == told[-2 * SAME :]
        refused = user.ask("GET", f"{theirs.jobs}/theirs/logs")
        assert refused.status == 403
