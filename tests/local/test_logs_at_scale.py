"""A rank that prints and prints: every line comes through, once and in order.

The log begins new files on the way; `make soak` takes a million lines.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.local.jobs import logfile, store
from mpi_trainer.sdk.backends.backend import Key, LogQuery
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.job.new import NewJob

LINES = int(os.environ.get("LINES", "200000"))
KEY = Key("default", "chatty")
PRINT = f"seq -f 'line %.0f of many, and loss 0.25' 0 {LINES - 1}"


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield
    for folder in store.folders():
        store.remove(folder)


async def count(backend: LocalBackend, query: LogQuery, step: int) -> int:
    """How many lines come, each one checked to be the next one that is due, and none lost."""
    found = 0
    async for line in backend.logs(KEY, query):
        assert line.text.split(maxsplit=2)[1] == str(found * step), f"after {found} lines"
        assert line.lost == 0
        found += 1
    return found


@pytest.mark.timeout(60 + LINES // 5000)
def test_every_line_is_followed_and_filtered_without_loss_or_duplicate() -> None:
    """Issue: log lines followed and filtered without loss, one million of them in `make soak`."""
    command = ("mpirun", "-n", "1", "sh", "-c", PRINT)
    new = NewJob("chatty", command, workers=1, implementation="MPICH", backoff_limit=0, as_is=True)
    backend = LocalBackend()

    async def both() -> tuple[int, int]:
        backend.create_now(new.mpijob())
        all_lines = count(backend, LogQuery(follow=True), 1)
        thousands = count(backend, LogQuery(follow=True, grep=r"^line \d*000 |^line 0 "), 1000)
        first, second = await asyncio.gather(all_lines, thousands)
        return first, second

    began = time.monotonic()
    assert asyncio.run(both()) == (LINES, LINES // 1000)
    seconds = time.monotonic() - began
    files = logfile.segments(store.find(KEY.namespace, KEY.name).path)
    size = sum(path.stat().st_size for path in files)
    print(f"{LINES} lines, {size >> 20} MiB of log, {seconds:.1f} s, {LINES / seconds:.0f} lines/s")
    assert size < logfile.SEGMENT_BYTES * logfile.SEGMENTS
    assert len(files) > 1
