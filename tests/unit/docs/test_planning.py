"""The figures of docs/planning.md are those that were measured."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/planning.md").read_text()


def test_the_sizing_table_has_the_measured_figures() -> None:
    samples = json.loads((ROOT / "bench/results/scale.json").read_text())["samples"]
    (ours,) = [one for one in samples if one["contestant"] == "ours"]
    assert ours["scene"].replace("20000 finished", "20,000 finished MPIJobs").replace(
        "5000", "5,000"
    ) in PAGE.replace("| beside | ", "")
    assert f"| {ours['peak_mib']:.0f} MiB |" in PAGE
    assert f"| {ours['times']['first pods']:.0f} s |" in PAGE
    assert f"| {ours['cpu']['self']:.0f} s of one core |" in PAGE
