"""Live streams over jobs of this machine: real jobs, real sockets."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.kinds.mpijob import RunPolicy, to_wire
from mpi_trainer.local.jobs import store
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import Loopback
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.live.hub import Hub, LiveSettings
from mpi_trainer.server.rates import Rate
from tests.live_reader import Ended, LiveReader
from tests.local.odh import until
from tests.rest import Rest, served

pytestmark = pytest.mark.timeout(240)
JOBS = "/api/v1/namespaces/default/mpijobs"
LIVE = "/api/v1/live/jobs"
STALLED = 2.0
Object = dict[str, Any]


@pytest.fixture(scope="module")
def loopback() -> Loopback:
    return Loopback(LocalBackend(), "odh-session")


@pytest.fixture(scope="module")
def calls(loopback: Loopback) -> Calls:
    settings = LiveSettings(heartbeat=0.5, stalled=STALLED)
    return Calls(loopback, Rate(10_000, 10_000), live=settings)


@pytest.fixture(scope="module")
def hub(calls: Calls) -> Hub:
    return calls.hub


@pytest.fixture(scope="module")
def port(loopback: Loopback, calls: Calls) -> Iterator[int]:
    with served(loopback, calls=calls) as number:
        yield number


@pytest.fixture(autouse=True)
def server(
    port: int, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rest]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield Rest(port, loopback.token)
    for folder in store.folders():
        store.remove(folder)


def created(server: Rest, name: str, *command: str, suspend: bool = False) -> Object:
    policy = RunPolicy(suspend=suspend)
    made = NewJob(name, command or ("echo", name), workers=1, slots=1, image="x", run_policy=policy)
    wire = to_wire(made.mpijob())
    wire["metadata"] = {"name": name}
    reply = server.ask("POST", JOBS, wire)
    assert reply.status == 201, reply
    found: Object = reply.data
    return found


def listed(server: Rest, name: str) -> Any:
    return next(one for one in server.get(JOBS)["items"] if one["name"] == name)


def test_a_list_tells_what_is_there_and_then_every_change(server: Rest) -> None:
    created(server, "one", suspend=True)
    with LiveReader(server, f"{LIVE}?namespace=default") as reader:
        assert reader.headers["Content-Type"] == "text/event-stream"
        assert reader.headers["Cache-Control"] == "no-store"
        assert reader.headers["Content-Security-Policy"]
        first = reader.next()
        assert first.event == "snapshot" and [j["name"] for j in first.data["items"]] == ["one"]
        two = created(server, "two", "sh", "-c", "sleep 1; echo two")
        states = [reader.next("job").data]
        while states[-1]["state"] != "Succeeded":
            states.append(reader.next("job").data)
        assert {one["name"] for one in states} <= {"one", "two"}
        while states[-1] != listed(server, "two"):  # its end is written in more than one step
            states.append(reader.next("job").data)
        assert server.ask("DELETE", f"{JOBS}/two").status == 204
        gone = reader.next("deleted")
        assert gone.data == {
            "kind": "MPIJob", "namespace": "default", "name": "two", "uid": two["uid"],
        }  # fmt: skip
        again = created(server, "two", suspend=True)
        assert again["uid"] != two["uid"] and reader.next("job").data["name"] == "two"
        with LiveReader(server, f"{LIVE}?kind=TrainJob") as other:
            assert other.next().data == {"items": []}
    assert reader.comments >= 1, "signs of life"


def test_a_job_is_told_from_its_beginning_to_its_deletion(server: Rest) -> None:
    made = created(server, "one", "sh", "-c", "sleep 1; exit 3")
    with LiveReader(server, f"{JOBS}/one/live") as reader:
        first = [reader.next() for _ in range(2)]
        assert [one.event for one in first] == ["job", "status"]
        assert first[0].data["uid"] == made["uid"]
        while (stands := reader.next("status").data)["state"] != "Failed":
            pass
        assert stands["ranks"][0]["exitCode"] == 3
        assert server.get(f"{JOBS}/one/status")["state"] == "Failed"
        server.ask("DELETE", f"{JOBS}/one")
        assert reader.next("deleted").data["uid"] == made["uid"]
        with pytest.raises(Ended):
            reader.next()
    events = [one.data for one in reader.heard if one.event == "event"]
    assert len({str(one) for one in events}) == len(events) and events
    with LiveReader(server, f"{JOBS}/one/live") as late:
        assert late.status == 404 and "not found" in late.problem["detail"]


def test_what_is_asked_wrongly_is_refused_before_the_stream_begins(server: Rest) -> None:
    for path, status in (
        (f"{LIVE}?kind=Pod", 400),
        (f"{LIVE}?names=x", 400),
        (f"{LIVE}?namespace=..", 400),
        (f"{JOBS}/none/live", 404),
    ):
        with LiveReader(server, path) as reader:
            assert reader.status == status and reader.problem["detail"], path
    assert LiveReader(Rest(server.port, "wrong"), LIVE).status == 401
    foreign = {"Origin": "http://elsewhere.example"}
    assert LiveReader(server, LIVE, headers=foreign).status == 403


def lines_of(reader: LiveReader) -> list[str]:
    """All that it has had so far, of ranks and launcher."""
    return [
        line["text"]
        for one in reader.heard
        if one.event == "lines"
        for line in one.data["items"]
        if line["rank"] is not None
    ]


COUNT = "i=0; while [ $i -lt {} ]; do echo line $i; i=$((i+1)); {} done"


def counted(number: int) -> list[str]:
    return [f"line {n}" for n in range(number)]


def test_a_log_begins_with_its_last_lines_and_goes_on_to_the_end(server: Rest) -> None:
    created(server, "one", "sh", "-c", COUNT.format(60, "sleep 0.1;"))
    until_lines(server, "one", 10)
    with LiveReader(server, f"{JOBS}/one/logs/live?tail=5&rank=0") as reader:
        first = reader.next()
        assert first.event == "lines" and len(first.data["items"]) == 5
        assert first.data["skipped"] >= 5
        assert reader.next("end", seconds=60).data == {"state": "Succeeded"}
        with pytest.raises(Ended):
            reader.next()
    found = lines_of(reader)
    assert found == counted(60)[-len(found) :] and len(found) >= 40


def until_lines(server: Rest, name: str, number: int) -> None:
    path = f"{JOBS}/{name}/logs?rank=0"

    def enough() -> bool:
        return len(server.get(path, Accept="application/json")["items"]) >= number

    until(f"{number} lines", enough)


def test_who_comes_back_gets_every_line_once(server: Rest) -> None:
    created(server, "one", "sh", "-c", COUNT.format(3000, "[ $((i%50)) = 0 ] && sleep 0.05;"))
    until_lines(server, "one", 5)
    position, found, visits = "", [], 0
    path = f"{JOBS}/one/logs/live?tail=10000&rank=0"
    while True:
        visits += 1
        with LiveReader(server, path, position) as reader:
            try:
                for _ in range(3):
                    if reader.next(seconds=60).event == "end":
                        break
            except Ended:
                pass
        position = reader.position
        found += lines_of(reader)
        if any(one.event == "end" for one in reader.heard):
            break
    assert found == counted(3000)
    assert visits > 3
    by_address = f"{path}&lastEventId={position}"
    with LiveReader(server, by_address) as reader:
        assert reader.next("end").data["state"] == "Succeeded" and lines_of(reader) == []


def test_lines_are_chosen_and_a_long_one_is_cut(server: Rest) -> None:
    script = (
        "echo INFO a; echo ERROR b; echo '  of b'; echo c.*d; "
        "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last"
    )
    created(server, "one", "sh", "-c", script)
    path = f"{JOBS}/one/logs/live?rank=0"

    def chosen(query: str) -> list[str]:
        with LiveReader(server, path + query) as reader:
            reader.next("end", seconds=60)
        return lines_of(reader)

    everything = chosen("")
    assert [one[:5] for one in everything] == ["INFO ", "ERROR", "  of ", "c.*d", "xxxxx", "last"]
    assert len(everything[4]) < 20_000 and everything[4].endswith("characters are left out)")
    assert chosen("&level=error") == ["ERROR b", "  of b"]
    assert chosen("&contains=c.*d") == ["c.*d"]
    assert chosen("&tail=1") == ["last"]
    with LiveReader(server, f"{path}&lastEventId=nonsense") as wrong:
        assert wrong.status == 400 and "go on from" in wrong.problem["detail"]
    with LiveReader(server, f"{JOBS}/one/logs/live?pod=none") as wrong:
        assert wrong.status == 409 and "no pod none" in wrong.problem["detail"]


def silent(server: Rest, path: str) -> socket.socket:
    """Asks for a stream and takes nothing of it."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", server.port))
    lines = (f"GET {path} HTTP/1.1", "Host: x", "Connection: close")
    login = f"Authorization: Bearer {server.token}"
    made.sendall("\r\n".join((*lines, login, "", "")).encode())
    return made


def taken(made: socket.socket) -> bytes:
    """What is there until the server ends it."""
    found = bytearray()
    made.settimeout(30)
    with suppress(ConnectionError):
        while data := made.recv(65536):
            found += data
    made.close()
    return bytes(found)


def test_who_takes_nothing_is_cut_off_and_goes_on_from_there(server: Rest, hub: Hub) -> None:
    created(server, "one", "sh", "-c", COUNT.format(20_000, "[ $((i%100)) = 0 ] && sleep 0.02;"))
    until_lines(server, "one", 1)
    path = f"{JOBS}/one/logs/live?tail=10000&rank=0"
    held = [silent(server, path) for _ in range(6)]
    until("the streams are open", lambda: hub.streams == 6)
    with LiveReader(server, path) as other:
        assert other.next("end", seconds=60), "others are served meanwhile"
    until("those who take nothing are cut off", lambda: hub.streams == 0)
    positions = []
    for one in held:
        found = taken(one)
        assert len(found) < 1 << 20, "what the system held for it"
        positions += re.findall(rb'event: cut\ndata: {"position":"([^"]+)"}', found)
    whole = counted(20_000)
    assert lines_of(other) == whole[-len(lines_of(other)) :]
    for position in positions:
        with LiveReader(server, path, position.decode()) as again:
            again.next("end", seconds=60)
        rest = lines_of(again)
        assert rest == whole[-len(rest) :], "from there on, and every line once"


class Noted(logging.Handler):
    """Whether somebody was too slow."""

    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "too slow" in record.getMessage():
            self.told.set()


def test_a_slow_reader_who_still_reads_is_told_where_to_go_on(server: Rest, hub: Hub) -> None:
    created(server, "one", "sh", "-c", COUNT.format(20_000, "[ $((i%100)) = 0 ] && sleep 0.02;"))
    until_lines(server, "one", 1)
    path = f"{JOBS}/one/logs/live?tail=0&rank=0"
    noted = Noted()
    logger = logging.getLogger("mpi_trainer.server")
    logger.addHandler(noted)
    logger.setLevel("INFO")
    try:
        slow = silent(server, path)
        assert noted.told.wait(60)
    finally:
        logger.removeHandler(noted)
    found = taken(slow)
    given = re.findall(rb'"text":"(line \d+)"', found)
    (position,) = re.findall(rb'event: cut\ndata: {"position":"([^"]+)"}', found)
    with LiveReader(server, path, position.decode()) as again:
        again.next("end", seconds=60)
    everything = [*map(bytes.decode, given), *lines_of(again)]
    assert everything == counted(20_000)[-len(everything) :] and len(given) > 100


def opens(port: int, loopback: Loopback) -> bool:
    with LiveReader(Rest(port, loopback.token), LIVE) as reader:
        return reader.status == 200


def test_streams_are_counted_for_each_caller_and_in_all(loopback: Loopback) -> None:
    for settings, status in ((LiveSettings(each=2), 429), (LiveSettings(streams=2), 503)):
        with served(loopback, Settings(live=settings)) as port:
            server = Rest(port, loopback.token)
            one, two = LiveReader(server, LIVE), LiveReader(server, LIVE)
            with LiveReader(server, LIVE) as more:
                assert more.status == status and more.headers["Retry-After"]
            assert server.ask("GET", JOBS).status == 200, "calls are not streams"
            one.close()

            until("there is room again", lambda: opens(port, loopback))
            two.close()


def test_the_end_of_the_server_ends_streams_at_once(loopback: Loopback) -> None:
    with served(loopback) as port:
        readers = [LiveReader(Rest(port, loopback.token), LIVE) for _ in range(5)]
        for reader in readers:
            reader.next("snapshot")
        began = time.monotonic()
    assert time.monotonic() - began < 5
    for reader in readers:
        with pytest.raises(Ended):
            reader.next()
        reader.close()
        assert [one.event for one in reader.heard] == ["snapshot"]
