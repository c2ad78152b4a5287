"""What of a finding is kept in a job, where there is little room."""

from __future__ import annotations

import msgspec
import pytest

from mpi_trainer.api import bounds
from mpi_trainer.diagnose.finding import Finding, bounded

FOUND = Finding("OutOfMemory", "certain", "Memory", "More memory.", (1,), ("w-1",), "Killed")


@pytest.mark.parametrize("letter", ["a", "é", '"', "\x01", "💥"])
def test_findings_take_no_more_room_than_they_have(letter: str) -> None:
    long = letter * 300
    many = msgspec.structs.replace(
        FOUND, ranks=tuple(range(9999)), hosts=(letter * 9999,) * 99, followed=(long,) * 5
    )
    for count in (1, 3, 5):
        kept = bounded((many,) * count)
        assert len(msgspec.json.encode(kept)) <= bounds.FINDINGS
        assert kept and kept[0].cause == "OutOfMemory"


def test_a_usual_finding_is_kept_as_it_is() -> None:
    assert bounded((FOUND, FOUND)) == (FOUND, FOUND)
    assert bounded(()) == ()


@pytest.mark.parametrize("host", ["\x1b[31mw-1", "pass word", "a/b", "é", "", "x" * 254, "-"])
def test_what_cannot_be_a_host_is_not_kept_as_one(host: str) -> None:
    written = msgspec.structs.replace(FOUND, hosts=(host, "w-1", "node_2.example"))
    assert bounded((written,))[0].hosts == ("w-1", "node_2.example")
