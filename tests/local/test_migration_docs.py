"""docs/migration.md: its files, and the commands on them, from the first to the last."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.local.odh import run

PAGE = Path(__file__).parents[2] / "docs/migration.md"
FILE = re.compile(
    r"file `([\w.]+)`:\n\n```\w+\n(.*?)```|into `([\w.]+)`:\n\n```\w+\n(.*?)```", re.S
)
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.timeout(110)


def files() -> dict[str, str]:
    found = FILE.findall(PAGE.read_text())
    return {one or other: text or more for one, text, other, more in found}


def commands() -> list[str]:
    return [line for block in BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]


def test_the_page_has_a_worked_example_of_each_source() -> None:
    """DOC-1, MIG-1, MIG-2."""
    named = ["mpijob.yaml", "v1.yaml", "sagemaker.json", "machines.yaml", "azureml.yaml"]
    assert list(files()) == named
    assert len(commands()) > 10


def test_every_command_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DOC-1: in the order of the page."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    for line in commands():
        ended = run(*shlex.split(line)[1:], cwd=tmp_path)
        assert ended.returncode == 0, line + ended.stdout + ended.stderr
    made = {path.name: list(yaml.safe_load_all(path.read_text())) for path in
            (tmp_path / "migrated").iterdir()}  # fmt: skip
    kinds = {name: [one["kind"] for one in objects] for name, objects in made.items()}
    assert kinds == {
        "hello.yaml": ["TrainingRuntime", "TrainJob"],
        "mnist.yaml": ["MPIJob"],
        "bert.yaml": ["MPIJob"],
        "mnist-horovod.yaml": ["MPIJob"],
    }
