"""The example notebook, run headless in a real kernel, whose cells run inside an event loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from openshift_ai_sdk.training import TrainingClient

formats: Any = nbformat  # it has no types
NOTEBOOK = Path(__file__).parents[2] / "examples/notebook/mpi-training.ipynb"

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("default"),  # the notebook's machinery is not ours
]


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The outputs of every cell, by the cell's id."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = formats.read(NOTEBOOK, as_version=4)
    loop = formats.v4.new_code_cell("import asyncio\nasyncio.get_running_loop()", id="loop")
    notebook.cells.insert(0, loop)
    nbclient.NotebookClient(
        notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    yield {cell.id: cell.get("outputs", []) for cell in notebook.cells}
    for job in TrainingClient().list_jobs(all_namespaces=True):
        TrainingClient().delete_job(job.key.name, job.key.namespace)


def text(outputs: list[Any]) -> str:
    return "".join(output.get("text", "") for output in outputs)


def html(outputs: list[Any]) -> list[str]:
    shown = (output.get("data", {}) for output in outputs)
    return [data["text/html"] for data in shown if "text/html" in data]


def test_notebook_trains_shows_and_explains(executed: dict[str, Any]) -> None:
    assert "EventLoop" in executed["loop"][0]["data"]["text/plain"]

    assert "Created" in html(executed["create"])[0]
    shown = html(executed["wait"])
    assert len(shown) == 2, "one card that was replaced in place, and the value of the cell"
    assert all("Succeeded" in card and "epoch 30/30" in card for card in shown)

    ranks = text(executed["logs"]).splitlines()
    assert sorted(line[0] for line in ranks) == ["0", "1", "2", "3"]
    assert all("[ 2.  -1.   0.5]" in line for line in ranks)
    assert "loss" in html(executed["metrics"])[0]

    failure = text(executed["failure"])
    assert "rank 3 on stumble-" in failure and "row 7 has no label" in failure
    assert "`forgetful` uses `rate` in line 2" in text(executed["refused"])
    assert html(executed["list"])[0].count("<tr>") == 3


def test_notebook_is_kept_without_outputs() -> None:
    for cell in formats.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
