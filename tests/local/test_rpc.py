"""gRPC over jobs of this machine: the same answers as REST, whole lives, streams, and limits."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.kinds.mpijob import to_wire
from mpi_trainer.local.jobs import store
from mpi_trainer.runtime.logs import JsonFormatter
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.client import clients
from mpi_trainer.sdk.job import handle, mpijob
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import Loopback
from mpi_trainer.server.live.hub import LiveSettings
from mpi_trainer.server.rates import Rate
from mpi_trainer.server.rpc.service import Service
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1
from tests import rpc
from tests.both_ways import CASES, ByRest, ByRpc, Way, check, manifest
from tests.lifecycle import (
    test_attempts_are_as_the_policy_says,
    test_failure_is_told_at_once_with_rank_and_reason,
    test_job_deleted_while_somebody_follows_ends_the_following,
    test_life_of_a_job,
)
from tests.local.odh import MARK as RUN_MARK
from tests.local.odh import ODH, until
from tests.rest import Rest
from tests.rpc import Ports, Refusal, Rpc, served

# isort: split
import grpc

__all__ = [
    "test_attempts_are_as_the_policy_says",
    "test_failure_is_told_at_once_with_rank_and_reason",
    "test_job_deleted_while_somebody_follows_ends_the_following",
    "test_life_of_a_job",
]

pytestmark = pytest.mark.timeout(240)
Object = dict[str, Any]
ONE: Any = {"namespace": "default", "name": "one"}
WRITE_SECONDS = 2.0


@pytest.fixture(scope="module")
def loopback() -> Loopback:
    return Loopback(LocalBackend(), "odh-session")


@pytest.fixture(scope="module")
def ports(loopback: Loopback) -> Iterator[Ports]:
    settings = Settings(rate=Rate(10_000, 10_000))
    with served(loopback, settings, lambda calls: Service(calls, WRITE_SECONDS)) as found:
        yield found


@pytest.fixture(autouse=True)
def server(
    ports: Ports, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rpc]:
    """The server, and a place for jobs that nobody else uses. SDK programs of this test go by
    gRPC."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(RUN_MARK, tmp_path.name)
    asked = Rpc(ports.rpc, loopback.token)
    rest = Rest(ports.rest, loopback.token)
    for module in (handle, mpijob, clients):
        monkeypatch.setattr(module, "connect", lambda: rpc.backend(rest, asked))
    yield asked
    for folder in store.folders():
        store.remove(folder)


@pytest.fixture(params=["REST", "gRPC"])
def way(request: pytest.FixtureRequest, server: Rpc, ports: Ports) -> Way:
    rest = Rest(ports.rest, server.token)
    return ByRest(rest, "default") if request.param == "REST" else ByRpc(server, "default")


def test_both_ways_answer_alike(way: Way) -> None:
    """SC-004. All cases in one test: each job that is made and removed takes a second."""
    for case in CASES:
        there(way)
        check(case, way)


def there(way: Way) -> None:
    """As it was at first, whatever a case did."""
    names = {folder.path.name: folder for folder in store.folders()}
    for name in names.keys() - {"there"}:
        store.remove(names[name])
    if "there" not in names:
        made = way.create(manifest("there"))
        assert made.problem == "", made


def test_values_are_the_same_field_by_field(server: Rpc, ports: Ports) -> None:
    by_rest, by_rpc = ByRest(Rest(ports.rest, server.token), "default"), ByRpc(server, "default")
    create(server, "one", "echo epoch 1/2 loss 0.5; echo epoch 2/2 loss 0.25")
    ended(server, "one")
    pairs: list[tuple[str, Callable[[Way], Any]]] = [
        ("get", lambda way: way.get("one").data),
        ("status", lambda way: way.status("one").data),
        ("list", lambda way: way.list().data),
        ("logs", lambda way: way.logs("one", rank=0).data),
    ]
    for what, ask in pairs:
        same(ask(by_rest), ask(by_rpc), what)


def same(rest: Any, rpc: Any, place: str) -> None:
    """What both have; null of one may be missing in the other."""
    if isinstance(rest, list):
        assert len(rest) == len(rpc) > 0 or rest == rpc, place
        for number, (one, other) in enumerate(zip(rest, rpc, strict=True)):
            same(one, other, f"{place}[{number}]")
    elif isinstance(rest, dict) and not place.endswith(".manifest"):
        left_out = {"kind", "runtime", "readOnly"}
        for name in rest.keys() - left_out:
            same(rest[name], rpc.get(name), f"{place}.{name}")
    elif isinstance(rest, str) and isinstance(rpc, str) and rest != rpc:
        assert datetime.fromisoformat(rest) == datetime.fromisoformat(rpc), place
    else:
        assert rest == rpc, place


def create(server: Rpc, name: str, script: str) -> None:
    made = NewJob(name, ("sh", "-c", script), workers=1, slots=1).mpijob()
    request = v1.CreateMPIJobRequest(manifest_json=json.dumps(to_wire(made)))
    assert isinstance(server.ask("CreateMPIJob", request), v1.MPIJob)


def ended(server: Rpc, name: str) -> list[Any]:
    found = server.ask("WatchMPIJobStatus", v1.WatchMPIJobStatusRequest(name=name), timeout=120)
    assert not isinstance(found, Refusal), found
    return [*found]


def test_a_watch_tells_every_state_and_ends_with_the_job(server: Rpc) -> None:
    create(server, "one", "sleep 1")
    states = [one.status.state for one in ended(server, "one")]
    assert states[-1] == v1.JOB_STATE_SUCCEEDED and v1.JOB_STATE_RUNNING in states
    assert server.ask("WatchMPIJobStatus", v1.WatchMPIJobStatusRequest(name="x")).code is (
        grpc.StatusCode.NOT_FOUND
    )


def test_a_watch_tells_that_the_job_is_gone(server: Rpc) -> None:
    server.ask("CreateMPIJob", v1.CreateMPIJobRequest(manifest_json=json.dumps(manifest("one"))))
    with opened(server, "WatchMPIJobStatus", v1.WatchMPIJobStatusRequest(**ONE)) as stream:
        assert next(stream).status.state in (v1.JOB_STATE_CREATED, v1.JOB_STATE_SUSPENDED)
        server.ask("DeleteMPIJob", v1.DeleteMPIJobRequest(**ONE))
        *_, last = stream
        assert (last.deleted.namespace, last.deleted.name) == ("default", "one")


class opened:  # noqa: N801 - as a function
    """A stream that is read by the test, at its own pace."""

    def __init__(self, server: Rpc, method: str, request: Any) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
        call = getattr(server.stub(self._channel), method)
        self.call: Any = call(request, metadata=server.metadata)

    def __enter__(self) -> Any:
        return self.call

    def __exit__(self, *error: object) -> None:
        self.call.cancel()
        self._channel.close()


def test_lines_come_as_they_are_written_and_all_of_them(server: Rpc) -> None:
    create(server, "one", "echo begun; sleep 2; seq 20000")
    request = v1.GetMPIJobLogsRequest(**ONE, follow=True, rank=0)
    with opened(server, "GetMPIJobLogs", request) as stream:
        first = next(stream)
        assert [line.text for line in first.lines] == ["begun"]
        running = server.ask("GetMPIJobStatus", v1.GetMPIJobStatusRequest(**ONE))
        assert running.state == v1.JOB_STATE_RUNNING
        texts = [line.text for answer in stream for line in answer.lines]
    assert texts == [str(number) for number in range(1, 20001)]
    some = server.ask("GetMPIJobLogs", v1.GetMPIJobLogsRequest(**ONE, rank=0, tail=2))
    assert [line.text for answer in some for line in answer.lines] == ["19999", "20000"]
    worker = server.ask("GetMPIJobLogs", v1.GetMPIJobLogsRequest(**ONE, worker=0))
    assert {line.pod for answer in worker for line in answer.lines} <= {"one-worker-0"}
    both = server.ask("GetMPIJobLogs", v1.GetMPIJobLogsRequest(**ONE, rank=0, worker=0))
    assert [error.field for error in both.problem.errors] == ["worker"]


def test_a_line_without_end_is_cut(server: Rpc) -> None:
    create(server, "one", "yes | head -c 100000 | tr -d '\\n'; echo")
    ended(server, "one")
    found = server.ask("GetMPIJobLogs", v1.GetMPIJobLogsRequest(**ONE, rank=0))
    lines = [line for answer in found for line in answer.lines]
    assert lines[0].cut and max(len(line.text) for line in lines) <= 16 * 1024 + 1


def test_a_reader_who_takes_nothing_is_cut_off_and_costs_no_memory(
    server: Rpc, loopback: Loopback
) -> None:
    """By flow control nothing is read ahead: what nobody takes stays where it is."""
    create(server, "one", f"yes {'x' * 999} | head -c 30000000")
    ended(server, "one")
    before = memory()
    with opened(server, "GetMPIJobLogs", v1.GetMPIJobLogsRequest(**ONE, rank=0)) as stream:
        next(stream)
        time.sleep(WRITE_SECONDS + 3)  # the reader does nothing
        assert memory() - before < 20_000_000
        with pytest.raises(grpc.RpcError) as caught:
            for _ in stream:
                pass
    found = rpc.refusal(caught.value)
    assert found.code is grpc.StatusCode.ABORTED
    assert found.problem.type.endswith(":slow-reader")


def memory() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def test_who_leaves_ends_the_work(server: Rpc, loopback: Loopback) -> None:
    """A stream that nobody reads any more holds no file of the job open."""
    create(server, "one", "echo begun; sleep 600")

    def followed() -> bool:
        places = (path.resolve() for path in Path("/proc/self/fd").iterdir())
        return any("/one/" in str(place) and "log" in str(place) for place in places)

    request = v1.GetMPIJobLogsRequest(**ONE, follow=True)
    with opened(server, "GetMPIJobLogs", request) as stream:
        next(stream)
        until("the log is open", followed)
    until("the log is closed", lambda: not followed())


def test_a_deadline_is_kept(server: Rpc) -> None:
    server.ask("CreateMPIJob", v1.CreateMPIJobRequest(manifest_json=json.dumps(manifest("one"))))
    began = time.monotonic()
    request = v1.WatchMPIJobStatusRequest(**ONE)
    late = server.ask("WatchMPIJobStatus", request, timeout=1.0)
    assert late.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - began < 3


def test_nobody_unknown_is_served(server: Rpc) -> None:
    for token in ("", "wrong", "a b", "%"):
        refused = Rpc(server.port, token).ask("ListMPIJobs", v1.ListMPIJobsRequest())
        assert refused.code is grpc.StatusCode.UNAUTHENTICATED, refused
        assert "odh dashboard" in refused.message
    twice = server.metadata * 2
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = server.stub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.ListMPIJobs(v1.ListMPIJobsRequest(), metadata=twice)
    assert rpc.refusal(caught.value).code is grpc.StatusCode.UNAUTHENTICATED
    stream = Rpc(server.port).ask("GetMPIJobLogs", v1.GetMPIJobLogsRequest(name="one"))
    assert stream.code is grpc.StatusCode.UNAUTHENTICATED


def test_limits_are_those_of_rest_and_count_together(loopback: Loopback) -> None:
    with served(loopback, Settings(rate=Rate(2, 0.01))) as ports:
        rest, asked = Rest(ports.rest, loopback.token), Rpc(ports.rpc, loopback.token)
        assert rest.ask("GET", "/api/v1").status == 200
        assert not isinstance(asked.ask("ListMPIJobs", v1.ListMPIJobsRequest()), Refusal)
        for method, request in (
            ("ListMPIJobs", v1.ListMPIJobsRequest()),
            ("WatchMPIJobStatus", v1.WatchMPIJobStatusRequest(name="x")),
        ):
            refused = asked.ask(method, request)
            assert refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert int(refused.metadata["retry-after"]) > 1
        assert rest.ask("GET", "/api/v1").status == 429
    with served(loopback, Settings(at_once=0)) as ports:
        asked = Rpc(ports.rpc, loopback.token)
        busy = asked.ask("ListMPIJobs", v1.ListMPIJobsRequest())
        assert busy.code is grpc.StatusCode.UNAVAILABLE


def test_a_message_beyond_all_limits_is_not_read(server: Rpc) -> None:
    request = v1.CreateMPIJobRequest(manifest_json="x" * (3 * 2**20))
    assert server.ask("CreateMPIJob", request).code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_one_caller_has_so_many_streams_and_no_more(loopback: Loopback, server: Rpc) -> None:
    """Those over HTTP count as well."""
    server.ask("CreateMPIJob", v1.CreateMPIJobRequest(manifest_json=json.dumps(manifest("one"))))
    request = v1.WatchMPIJobStatusRequest(**ONE)
    with served(loopback, Settings(live=LiveSettings(each=1))) as ports:
        asked = Rpc(ports.rpc, loopback.token)
        with opened(asked, "WatchMPIJobStatus", request) as stream:
            next(stream)
            assert asked.ask("WatchMPIJobStatus", request).problem.type.endswith(":rate")
            live = Rest(ports.rest, loopback.token).ask("GET", "/api/v1/live/jobs")
            assert live.status == 429

        def again() -> bool:
            found = asked.ask("WatchMPIJobStatus", request, timeout=1.0)
            return found.code is grpc.StatusCode.DEADLINE_EXCEEDED

        until("there is room again", again)


def test_a_server_that_stops_ends_its_streams_at_once(loopback: Loopback, server: Rpc) -> None:
    server.ask("CreateMPIJob", v1.CreateMPIJobRequest(manifest_json=json.dumps(manifest("one"))))
    with served(loopback) as ports:
        asked = Rpc(ports.rpc, loopback.token)
        request = v1.WatchMPIJobStatusRequest(**ONE)
        following = opened(asked, "WatchMPIJobStatus", request)
        next(following.call)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    with following, pytest.raises(grpc.RpcError) as caught:
        next(following.call)
    assert rpc.refusal(caught.value).code is grpc.StatusCode.UNAVAILABLE


def test_every_change_leaves_a_line_and_no_token_gets_into_a_log(
    server: Rpc, loopback: Loopback
) -> None:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger()
    logger.addHandler(handler)
    logging.getLogger("mpi_trainer").setLevel("INFO")
    try:
        wire = json.dumps(manifest("one"))
        server.ask("CreateMPIJob", v1.CreateMPIJobRequest(namespace="team", manifest_json=wire))
        server.ask("DeleteMPIJob", v1.DeleteMPIJobRequest(namespace="team", name="none"))
        server.ask("GetMPIJob", v1.GetMPIJobRequest(namespace="team", name="one"))
        Rpc(server.port, "other-secret").ask("DeleteMPIJob", v1.DeleteMPIJobRequest(**ONE))
    finally:
        logger.removeHandler(handler)
    lines = [json.loads(line) for line in text.getvalue().splitlines()]
    noted = [line for line in lines if line["logger"] == "mpi_trainer.server.audit"]
    assert [(n["action"], n["namespace"], n["job"], n["status"]) for n in noted] == [
        ("createMPIJob", "team", "", 201),
        ("deleteMPIJob", "team", "none", 404),
    ]
    assert noted[0]["user"]
    assert loopback.token not in text.getvalue() and "other-secret" not in text.getvalue()


def test_what_does_not_serve_grpc_does_not_load_it() -> None:
    """AC-1: `odh` starts as fast without gRPC as before."""
    program = (
        "import sys\n"
        "import mpi_trainer.cli.main, mpi_trainer.cli.verbs.dashboard\n"
        "import mpi_trainer.server.serve, mpi_trainer.server.__main__\n"
        "import openshift_ai_sdk.training\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('grpc', 'google')])\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"


def test_without_the_packages_the_reason_is_told(tmp_path: Path) -> None:
    """An installation of the SDK alone."""
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text("import sys\nsys.modules['grpc'] = None\n")
    found = subprocess.run(
        [str(ODH), "--backend", "local", "dashboard", "--no-browser", "--grpc-port", "1"],
        env={"PATH": "/usr/bin", "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 2, found
    assert "error: gRPC needs packages that are not installed here" in found.stderr
    assert "pip install 'openshift-ai-sdk[grpc]'" in found.stderr
