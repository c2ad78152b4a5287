"""SC-006. Outputs written after what MPIs, NCCL and frameworks print, with the harmless lines that
real ones have before the failure. Unlike in `bench.diagnose`, no narrower cause will do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import diagnose

WRITTEN = Path(__file__).parent / "written"
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
