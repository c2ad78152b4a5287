"""SC-006. Outputs written after what MPIs, NCCL and frameworks print, with the harmless lines that
real ones have before the failure. Unlike in `bench.diagnose`, no narrower cause will do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import diagnose
from mpi_trainer.diagnose.cause import findings
from mpi_trainer.diagnose.finding import Facts
from mpi_trainer.diagnose.log_reader import LogReader

WRITTEN = Path(__file__).parent / "written"
HARMLESS = (Path(__file__).parent / "harmless.txt").read_text().splitlines()
RAISED = (
    "[1,1]<stderr>:Traceback (most recent call last):",
    '[1,1]<stderr>:  File "/app/t.py", line 30, in <module>',
    "[1,1]<stderr>:ValueError: learning rate must be positive",
)
LABELS: dict[str, Any] = json.loads((WRITTEN / "labels.json").read_text())


@pytest.mark.parametrize("name", sorted(LABELS))
def test_a_written_output_is_explained(name: str) -> None:
    one = diagnose.sample(WRITTEN / name, LABELS[name])
    found = diagnose.found(one)
    if not one.causes:
        assert found == ()
        return
    assert {found[0].cause, found[0].instead} & set(one.causes), found[0]
    assert one.rank is None or found[0].ranks[0] == one.rank, found[0]
    assert one.host is None or one.host in found[0].hosts, found[0]
    assert found[0].line


def test_every_written_output_has_a_label() -> None:
    assert {path.name for path in WRITTEN.glob("*.txt")} == set(LABELS)


def test_what_open_mpi_says_of_every_host_is_not_shown_as_the_reason() -> None:
    name = "unexplained-after-openib.txt"
    one = diagnose.sample(WRITTEN / name, LABELS[name])
    assert diagnose.found(one)[0].line == "the mesh has no cells"


@pytest.mark.parametrize("mark", ["", "[1,0]<stderr>:"])
def test_no_harmless_line_hides_an_exception(mark: str) -> None:
    """What libraries and images print at a start, each line alone and all together."""
    for lines in ([*HARMLESS], *([line] for line in HARMLESS)):
        log = LogReader().read([*(mark + line for line in lines), *RAISED])
        found = findings(log, Facts(exit_code=1))[0]
        assert (found.cause, found.ranks) == ("ProgramException", (1,)), lines[0]


def test_no_harmless_line_is_a_cause_of_a_run_that_ended_well() -> None:
    for line in HARMLESS:
        assert findings(LogReader().read([line, "done"]), Facts(exit_code=0)) == (), line
