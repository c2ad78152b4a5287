"""What a new job can choose from on this machine, over the REST API."""

from __future__ import annotations

import pytest

from tests.local.test_server import loopback, port, problem, server
from tests.local.test_server_lists import trainjob
from tests.rest import Rest

__all__ = ["loopback", "port", "server"]

pytestmark = pytest.mark.timeout(240)
SPACE = "/api/v1/namespaces/team"
RUNTIME = f"{SPACE}/runtimes/mpi-openmpi-cpu"


def test_a_runtime_is_told_with_who_uses_it_here_and_what_is_wrong_with_it(server: Rest) -> None:
    for name in ("first", "second"):
        assert server.ask("POST", f"{SPACE}/trainjobs", trainjob(name)).status == 201
    found = server.get(RUNTIME)
    assert (found["name"], found["framework"], found["notes"]) == ("mpi-openmpi-cpu", "mpi", [])
    assert sorted(found["usedBy"]) == ["first", "second"]
    for one in found["lint"]:
        assert one["severity"] in ("error", "warning") and one["message"]
    assert [one for one in found["lint"] if one["severity"] == "error"] == [], "we ship it"
    assert server.get(RUNTIME.replace("team", "other"))["usedBy"] == []
    problem(server, 404, "GET", f"{SPACE}/runtimes/none")


def test_this_machine_has_neither_quotas_nor_queues(server: Rest) -> None:
    assert server.get(f"{SPACE}/quota") == {"items": []}
    assert server.get(f"{SPACE}/queues") == {"items": []}
