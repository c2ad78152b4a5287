"""`odh explain`: why a job failed, from what it printed and what became of its ranks (SC-006)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local.cli import Cli, cli

READS = "from mpi4py import MPI; MPI.COMM_WORLD.rank and open('/data/part-1.csv')"


@pytest.fixture(scope="module")
def odh() -> Iterator[Cli]:
    with cli() as program:
        yield program


def test_a_rank_that_ends_all_is_named_with_its_host_and_a_remedy(odh: Cli) -> None:
    odh.create("failed", "2", "0", "1")
    odh("mpijob", "wait", "failed", "--for", "Finished", "--timeout", "60")
    first = odh.json("explain", "failed")["findings"][0]
    assert (first["cause"], first["ranks"]) == ("MpiAbort", [1])
    assert first["hosts"] == ["failed-worker-1"]
    page = odh("mpijob", "explain", "failed").stdout
    assert "rank 1 on failed-worker-1" in page
    assert "hint: " in page


def test_a_programs_own_words_are_the_cause(odh: Cli) -> None:
    (odh.folder / "train.py").write_text(READS)
    odh.create("reads")
    odh("mpijob", "wait", "reads", "--timeout", "60", code=1)
    first = odh.json("mpijob", "explain", "reads")["findings"][0]
    assert (first["cause"], first["ranks"]) == ("FileMissing", [1])
    assert first["line"].startswith("FileNotFoundError: [Errno 2]")
    assert "volumeMounts" in first["remedy"]
    kept = odh.json("mpijob", "describe", "reads")
    assert kept["findings"][0] == first and kept["attempts"][-1]["cause"] == "FileMissing"
    failed = next(c for c in kept["job"]["status"]["conditions"] if c["type"] == "Failed")
    assert "FileMissing: " in failed["message"] and "volumeMounts" in failed["message"]
    assert any(e["message"] == failed["message"] for e in kept["events"])
    logs = list((odh.folder / "state").glob("**/default/reads/log.*.jsonl"))
    for part in logs:
        part.unlink()
    assert logs
    assert odh.json("mpijob", "explain", "reads")["findings"][0] == first
    assert odh("mpijob", "describe", "reads").stdout.startswith("FileMissing: ")


def test_nothing_is_found_in_a_job_that_went_well(odh: Cli) -> None:
    (odh.folder / "train.py").write_text("print('Error: 3 records failed, and were left out')")
    odh.create("done")
    odh("mpijob", "wait", "done", "--timeout", "60")
    assert odh.json("mpijob", "explain", "done")["findings"] == []
    assert "shows a failure" in odh("explain", "done").stderr
