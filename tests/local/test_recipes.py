"""The programs of docs/recipes.md, as they are, on the local backend (DOC-1, L-7)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT

TEXT = (ROOT / "docs/recipes.md").read_text()
RECIPES = dict(re.findall(r"^## (.*?)\n.*?```python\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE))
PRINTED = {
    "Train a function and get its result": "the sum is 10",
    "Find out why a job failed": "no_such_module",
    "Follow the log of one rank": " 1 step 3",
    "Try several values, two at a time": "best rate 0.1",
    "Try again, and give up in time": "Failed\n3 attempts",
    "Pause a job and go on": "Suspended\nSucceeded",
    "Clean up what has ended": "deleted short",
}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("title", [*RECIPES])
def test_a_recipe_works_as_it_is_and_leaves_no_job(title: str, tmp_path: Path) -> None:
    (tmp_path / "recipe.py").write_text(RECIPES[title])
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    env |= {"MPI_TRAINER_BACKEND": "local", "XDG_STATE_HOME": str(tmp_path / "state")}
    ended = subprocess.run(
        [sys.executable, "recipe.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert PRINTED[title] in ended.stdout, ended.stdout
    assert not [*tmp_path.glob("state/**/job.json")]


def test_every_recipe_is_known() -> None:
    assert RECIPES.keys() == PRINTED.keys()
