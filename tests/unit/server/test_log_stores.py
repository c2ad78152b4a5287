"""What is taken of a log store's answers, whatever it answers; the stores here are played."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.sdk.backends.backend import (
    JobCounts,
    JobTimes,
    JobView,
    Key,
    LogLine,
    LogQuery,
    ReplicaCount,
)
from mpi_trainer.sdk.backends.log_store import stored_lines
from mpi_trainer.sdk.errors import JobError
from mpi_trainer.server.log_stores import pages
from mpi_trainer.server.log_stores.asking import TooLarge
from mpi_trainer.server.log_stores.elasticsearch import Elasticsearch
from mpi_trainer.server.log_stores.loki import Loki
from mpi_trainer.server.log_stores.pages import Asked, Entry
from mpi_trainer.server.log_stores.reading import MORE, Stored
from mpi_trainer.server.log_stores.settings import LogStoreSettings

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
START = int(BEGAN.timestamp()) * 10**9
POD = "job-launcher-abcde"


def job(name: str = "job", namespace: str = "a", kind: str = "MPIJob") -> JobView:
    counts = JobCounts(ReplicaCount(1), ReplicaCount(2), 1)
    times = JobTimes(created=BEGAN, completed=BEGAN + timedelta(hours=1))
    return JobView(kind, Key(namespace, name), "Succeeded", counts, times, {})


class Played:
    """A store of entries, oldest first; `largest` bytes of them fit into an answer."""

    def __init__(self, entries: Sequence[Entry], largest: int = 1 << 30) -> None:
        self.entries = list(entries)
        self.largest = largest
        self.asked: list[Asked] = []

    async def page(self, asked: Asked) -> Sequence[Entry]:
        self.asked.append(asked)
        found = [one for one in self.entries if asked.start <= one.at < asked.end]
        # As Elasticsearch does it: the newest time first, and what is of one time as it was stored.
        newest = sorted(found, key=lambda one: -one.at)[: asked.limit]
        found = sorted(newest, key=lambda one: one.at)
        if sum(len(one.text) for one in found) > self.largest:
            raise TooLarge
        return found


def entries(number: int, same: int = 1, text: str = "") -> list[Entry]:
    """So many of each time have the same one."""
    return [
        Entry(START + n // same * 1000, "a", POD, f"line {n}{text}") for n in range(number)
    ]  # fmt: skip


def lines(store: Played, query: LogQuery = LogQuery(), of: JobView | None = None) -> list[LogLine]:  # noqa: B008
    async def read() -> list[LogLine]:
        return [one async for one in stored_lines(Stored(store), of or job(), query)]

    return asyncio.run(read())


@pytest.mark.parametrize("same", [1, 7, 400, 1700])
def test_pages_hold_every_line_once_in_its_order(same: int) -> None:
    store = Played(entries(3500, same))
    found = lines(store)
    assert [one.text for one in found] == [f"line {n}" for n in range(3500)]
    assert len(store.asked) > 2 and found[0].notes == ()


def test_lines_that_are_the_same_at_the_same_time_are_all_there() -> None:
    one = Entry(START, "a", POD, "again")
    later = [msgspec.structs.replace(one, at=START + 1 + n // 3) for n in range(1500)]
    assert len(lines(Played([one, one, *later]))) == 1502


def test_more_than_a_call_reads_are_left_out_and_that_is_said() -> None:
    found = lines(Played(entries(12_000)))
    assert len(found) == pages.MOST_LINES and found[-1].text == "line 11999"
    assert found[0].notes == (MORE,) and found[1].notes == ()
    stuck = lines(Played(entries(6000, same=6000)))
    assert stuck[0].notes == (MORE,), "a page of one time cannot be gone behind"


def test_a_short_tail_reads_one_page_and_a_text_all_of_them() -> None:
    store = Played(entries(5000))
    assert [one.text for one in lines(store, LogQuery(tail=2))] == ["line 4998", "line 4999"]
    assert len(store.asked) == 1
    assert [one.text for one in lines(store, LogQuery(tail=2, grep="line 7$"))] == ["line 7"]
    assert len(store.asked) == 7


def test_long_lines_come_in_smaller_pages_and_memory_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Played(entries(2000, text="x" * 10_000), largest=1 << 20)
    assert len(lines(store)) > 1500
    assert min(one.limit for one in store.asked) < pages.PAGE
    monkeypatch.setattr(pages, "MOST_BYTES", 1 << 20)
    found = lines(store)
    assert sum(len(one.text) for one in found) < 2 << 20 and found[0].notes == (MORE,)
    with pytest.raises(JobError, match="too long"):
        lines(Played(entries(2000, text="x" * 10_000), largest=1000))


def test_a_store_that_answers_what_was_not_asked_is_not_believed() -> None:
    strange = [
        Entry(START - 1, "a", POD, "before the job"),
        Entry(10**40, "a", POD, "at no time"),
        Entry(START + 2 * 3600 * 10**9, "a", POD, "after it"),
        Entry(START, "a", "job-launcher-abcde-x-y", "of another job"),
        Entry(START, "a", "other-launcher-abcde", "of another job"),
        Entry(START, "a", "job-worker-0", "not asked for"),
    ]

    class Lying(Played):
        async def page(self, asked: Asked) -> Sequence[Entry]:
            return self.entries

    sound = entries(3)
    assert [one.text for one in lines(Lying([*strange, *sound]))] == [one.text for one in sound]
    # A field of analysed text takes `a-private` for `a`.
    with pytest.raises(JobError, match="other namespaces"):
        lines(Lying([*sound, Entry(START, "a-private", POD, "secret")]))
    endless = Lying([Entry(START + n, "a", POD, "x") for n in range(pages.PAGE)])
    assert len(lines(endless)) == pages.PAGE, "the same page again and again"


def test_a_line_of_the_very_time_that_was_asked_for_is_there() -> None:
    for micro in range(0, 1_000_000, 997):
        since = BEGAN + timedelta(microseconds=micro)
        query = LogQuery(since=since, until=since)
        store = Played([Entry(START + micro * 1000, "a", POD, "now")])
        assert pages.asked(job(), query).start == START + micro * 1000
        if not micro % 9970:
            assert len(lines(store, query)) == 1


def test_a_slow_store_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Played):
        async def page(self, asked: Asked) -> Sequence[Entry]:
            await asyncio.sleep(60)
            return ()

    monkeypatch.setattr(pages, "SECONDS", 0.05)
    with pytest.raises(JobError, match="took longer"):
        lines(Slow([]))


def test_only_pods_of_the_job_are_asked_for() -> None:
    cases = {
        LogQuery(): r"job\-1\.x-launcher(-[a-z0-9]+)?",
        LogQuery(worker=3): r"job\-1\.x-worker-3",
        LogQuery(pod="job-1.x-worker-12"): r"job\-1\.x\-worker\-12",
        LogQuery(pod="other-launcher"): "-",
        LogQuery(pod='x"} or {a=~".*'): "-",
    }
    for query, pattern in cases.items():
        assert pages.pods(job("job-1.x"), query) == pattern
    train = pages.pods(job("t", kind="TrainJob"), LogQuery(worker=0))
    assert train == "t-node-0-0-[a-z0-9]+"


def test_names_are_values_of_a_query_and_never_a_part_of_it() -> None:
    settings = LogStoreSettings("http://127.0.0.1:1", kind="elasticsearch")
    hostile = Asked('a"}},{"match_all":{}}', 'x"} | json', START, START + 1)
    search = Elasticsearch(settings, "t")._search(hostile)
    assert search["query"]["bool"]["filter"][0] == {
        "term": {"kubernetes.namespace_name": hostile.namespace}
    }
    assert list(search["query"]["bool"]) == ["filter"] and len(search["query"]["bool"]) == 1


@pytest.mark.parametrize("kind", ["loki", "elasticsearch"])
def test_broken_answers_are_refused_in_words(kind: str) -> None:
    rng = random.Random(7)
    store = (Loki if kind == "loki" else Elasticsearch)(
        LogStoreSettings("http://127.0.0.1:1", kind=kind), "t"  # type: ignore[arg-type]
    )  # fmt: skip
    deep = b'{"data":' + b"[" * 5000 + b"]" * 5000 + b"}"
    source = b'{"hits":{"hits":[{"_source":%s}]}}'
    hostile = [
        b"",
        b"\xff",
        b"[]",
        deep,
        b'{"hits":' + deep + b"}",
        b'{"data":{"result":[{"values":[["1e9","x"]]}]}}',
        b'{"data":{"result":[{"values":[["%s","x"]]}]}}' % (b"9" * 10_000),
        source % b'{"@timestamp":"yesterday"}',
        source % b'{"@timestamp":{}}',
        source % b"{}",
        source % (b'{"@timestamp":"2026-01-01T00:00:00Z","a":' + b"[" * 3000 + b"]" * 3000 + b"}"),
        *(rng.randbytes(50) for _ in range(200)),
    ]
    for body in hostile:
        try:
            found = store._read(body)
        except JobError as error:
            assert "cannot be read" in str(error)
        else:
            assert found == [], body[:80]


def test_records_of_elasticsearch_are_read_however_they_are_nested() -> None:
    store = Elasticsearch(LogStoreSettings("http://127.0.0.1:1", kind="elasticsearch"), "t")
    at = '"@timestamp":"2026-01-01T00:00:00.123456789Z"'
    nested = f'{{{at},"kubernetes":{{"namespace_name":"a","pod_name":"p"}},"message":"m"}}'
    dotted = f'{{{at},"kubernetes.namespace_name":"a","kubernetes.pod_name":"p","log":"m"}}'
    hits = ",".join(f'{{"_source":{one}}}' for one in (nested, dotted))
    body = f'{{"hits":{{"hits":[{hits}]}}}}'
    assert store._read(body.encode()) == [Entry(START + 123_000_000, "a", "p", "m")] * 2


def test_settings_that_make_no_sense_are_refused() -> None:
    LogStoreSettings("https://logs", kind="elasticsearch", tenancy=True).checked()
    for wrong in (
        {"labels": ("a", "b}")},
        {"labels": ("a.b", "c")},
        {"kind": "elasticsearch", "index": "../_security"},
        {"kind": "elasticsearch", "index": "a/b"},
        {"kind": "splunk"},
        {"tenancy": True, "url": "http://logs"},
        {"url": "ftp://logs"},
    ):
        with pytest.raises(ConfigError, match="--log-store"):
            LogStoreSettings(**{"url": "https://logs"} | wrong).checked()
