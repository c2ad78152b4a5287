"""A job's log on disk: nothing lost, nothing doubled, and what is dropped is counted."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.local.jobs import logfile
from mpi_trainer.local.jobs.logfile import LogEntry, LogReader, LogWriter

SMALL = 4096


def entries(first: int, texts: list[str]) -> list[LogEntry]:
    return [LogEntry(first + i, 1.0, 1, "pod", "stdout", 0, text) for i, text in enumerate(texts)]


def add(writer: LogWriter, *texts: str) -> None:
    writer.add(entries(writer.number, list(texts)))


def read(reader: LogReader) -> list[str]:
    return [entry.text for _, entry in reader.read()]


@given(chunks=st.lists(st.lists(st.text(max_size=300), max_size=20), max_size=20))
def test_what_is_written_is_read_in_order_for_any_chunking(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    writer, live = LogWriter(folder, SMALL), LogReader(folder)
    followed = []
    for chunk in chunks:
        add(writer, *chunk)
        followed += [(gone, entry.text) for gone, entry in live.read()]
    wanted = [text for chunk in chunks for text in chunk]
    assert followed == [(0, text) for text in wanted]
    if len(logfile.segments(folder)) < logfile.SEGMENTS:
        assert read(LogReader(folder)) == wanted
    writer.close()
    live.close()


@given(
    chunks=st.lists(st.lists(st.text(max_size=300), max_size=20), max_size=20),
    count=st.integers(0, 50),
    modulus=st.integers(1, 5),
    block=st.sampled_from([1, 7, 64, 4096]),
    torn=st.booleans(),
)
def test_a_tail_is_what_reading_everything_ends_with(
    tmp_path_factory: pytest.TempPathFactory,
    chunks: list[list[str]],
    count: int,
    modulus: int,
    block: int,
    torn: bool,
) -> None:
    folder = tmp_path_factory.mktemp("log")
    writer = LogWriter(folder, SMALL)
    for chunk in chunks:
        add(writer, *chunk)
    writer.close()
    for gap in logfile.segments(folder)[1:2]:
        gap.unlink()
    if torn:
        for last in logfile.segments(folder)[-1:]:
            last.write_bytes(last.read_bytes() + b'[9999,1.0,1,"po')

    def takes(entry: LogEntry) -> bool:
        return entry.number % modulus == 0

    wanted, lost = [], 0
    for gone, entry in LogReader(folder).read():
        lost += gone
        if takes(entry):
            wanted.append((lost, entry))
            lost = 0
    reader = LogReader(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logfile, "BLOCK_BYTES", block)
        assert reader.tail(count, takes) == (wanted[-count:] if count else [])
    if not torn:
        again = LogWriter(folder, SMALL)
        add(again, "more")
        again.close()
        assert [(gone, entry.text) for gone, entry in reader.read()][-1] == (0, "more")
    reader.close()


def test_a_tail_counts_what_is_gone_just_before_it(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, SMALL)
    for i in range(300):
        add(writer, f"line {i}")
    writer.close()
    first, second, third, *_ = logfile.segments(tmp_path)
    begins = [int(each.name.split(".")[1]) for each in (first, second, third)]
    second.unlink()
    after = 300 - begins[2]
    (lost, entry), *others = LogReader(tmp_path).tail(after, lambda _: True)
    assert (lost, entry.number) == (begins[2] - begins[1], begins[2])
    assert all(gone == 0 for gone, _ in others)


def test_a_tail_reads_a_block_of_a_long_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LogWriter(tmp_path)
    for i in range(200):
        add(writer, *[f"line {i} {n}" for n in range(500)])
    writer.close()
    read = 0
    pread = os.pread

    def counted(file: int, size: int, place: int) -> bytes:
        nonlocal read
        read += size
        return pread(file, size, place)

    monkeypatch.setattr(os, "pread", counted)
    (_, entry), *_ = LogReader(tmp_path).tail(2, lambda _: True)
    assert entry.text == "line 199 498"
    assert read <= 2 * logfile.BLOCK_BYTES


def test_dropped_lines_are_counted_exactly(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, SMALL)
    for i in range(5000):
        add(writer, f"line {i}")
    writer.close()
    found = [(gone, entry) for gone, entry in LogReader(tmp_path).read()]
    gone, first = found[0]
    assert gone == first.number > 0
    assert first.text == f"line {first.number}"
    assert [g for g, _ in found[1:]] == [0] * (len(found) - 1)
    assert gone + len(found) == 5000
    assert len(logfile.segments(tmp_path)) == logfile.SEGMENTS


def test_a_reader_that_falls_behind_is_told_how_much_it_missed(tmp_path: Path) -> None:
    writer, reader = LogWriter(tmp_path, SMALL), LogReader(tmp_path)
    add(writer, "line 0")
    assert read(reader) == ["line 0"]
    for i in range(1, 5000):
        add(writer, f"line {i}")
    found = list(reader.read())
    assert sum(gone for gone, _ in found) + len(found) == 4999
    assert [entry.number for _, entry in found] == sorted({e.number for _, e in found})
    assert found[-1][1].text == "line 4999"
    writer.close()
    reader.close()


def test_a_torn_last_line_is_left_out_and_spoils_nothing_after_it(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    add(writer, "first", "second")
    writer.close()
    (segment,) = logfile.segments(tmp_path)
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-5])
    assert read(LogReader(tmp_path)) == ["first"]
    after = LogWriter(tmp_path)
    assert after.number == 1
    add(after, "third")
    after.close()
    assert read(LogReader(tmp_path)) == ["first", "third"]


def test_a_first_line_that_was_torn_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "log.000000000000.jsonl").write_bytes(b'[0,1.0,1,"po')
    writer = LogWriter(tmp_path)
    add(writer, "new")
    writer.close()
    assert read(LogReader(tmp_path)) == ["new"]


def test_half_a_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    writer, reader = LogWriter(tmp_path), LogReader(tmp_path)
    add(writer, "whole")
    (segment,) = logfile.segments(tmp_path)
    line = segment.read_bytes()
    half = line.replace(b"[0,", b"[1,")
    with segment.open("ab", buffering=0) as file:
        file.write(half[:9])
        assert read(reader) == ["whole"]
        file.write(half[9:])
    assert [(gone, entry.number) for gone, entry in reader.read()] == [(0, 1)]
    writer.close()
    reader.close()


def test_a_writer_goes_on_after_another_without_a_gap(tmp_path: Path) -> None:
    for word in ("one", "two", "three"):
        writer = LogWriter(tmp_path, SMALL)
        add(writer, word, word * 500)
        writer.close()
    assert [(gone, e.number) for gone, e in LogReader(tmp_path).read()] == [
        (0, i) for i in range(6)
    ]


def test_a_writer_never_begins_before_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "log.000000000500.jsonl").touch()  # the disk was full when it was begun
    writer = LogWriter(tmp_path)
    add(writer, "after")
    writer.close()
    assert [(gone, entry.text) for gone, entry in LogReader(tmp_path).read()] == [(500, "after")]


@pytest.fixture
def unlimited() -> Iterator[tuple[int, int]]:
    """The kernel cuts a write at the file size limit as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield before
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_write_cut_short_loses_what_was_cut_and_nothing_else(
    tmp_path: Path, unlimited: tuple[int, int]
) -> None:
    writer = LogWriter(tmp_path)
    add(writer, "before")
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        add(writer, "kept", "x" * 500, "y" * 500)
    with pytest.raises(OSError, match=r"too large|No space"):
        add(writer, "z" * 500)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    add(writer, "after")
    writer.close()
    found = [(gone, entry.text) for gone, entry in LogReader(tmp_path).read()]
    assert found == [(0, "before"), (0, "kept"), (0, "x" * 500), (2, "after")]
