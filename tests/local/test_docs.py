"""What the documentation tells people to type works: every `odh` line is run for real."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from mpi_trainer.local.jobs import store
from tests import forkserver
from tests.local.odh import run

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/local.md", "docs/checkpoints.md", "examples/README.md")
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
IN_TABLE = re.compile(r"\[(?P<folder>\w+)\]\(\w+\).*")
LONGEST = 110
# test_examples.py runs these as they stand, and looks at what they print; by hand here too.
ELSEWHERE = {
    (".", "odh run -f examples/hello/mpijob.yaml"),
    (".", "odh run -f examples/mlp/mpijob.yaml"),
    ("examples/hello", "odh run -w 2 -s 2 -- python hello.py"),
    ("examples/hello", "odh run -f mpijob.yaml"),
    ("examples/mlp", "odh run -w 2 -s 2 -- python -m mpi4py train.py"),
    ("examples/mlp", "odh run -f mpijob.yaml"),
    ("examples/pi", "odh run -w 2 -s 2 -- sh -c 'mpicc -O2 -o pi pi.c && mpirun -n 4 ./pi'"),
    ("examples/pi", "odh run -f mpijob.yaml"),
    ("examples/allreduce", "odh run -f mpijob.yaml"),
}

pytestmark = pytest.mark.timeout(LONGEST)


def blocks(page: str) -> Iterator[str]:
    for block in BLOCK.findall((ROOT / page).read_text()):
        yield from (line for line in block.splitlines() if line.startswith("odh "))


def table() -> Iterator[tuple[str, str]]:
    """Folder and line of every command in the table of examples."""
    for row in (ROOT / "examples/README.md").read_text().splitlines():
        found = IN_TABLE.search(row)
        for line in re.findall(r"`(odh run [^`]+)`", row) if found else ():
            assert found is not None
            yield f"examples/{found['folder']}", line


LINES = [(".", line) for page in PAGES for line in blocks(page)] + list(table())
# A page tells a story: what it does with a job comes after it has made the job.
MADE = [line for page in PAGES for line in blocks(page) if line.startswith("odh mpijob create")]


def cases() -> Iterator[ParameterSet]:
    for folder, line in LINES:
        alone = shlex.join(shlex.split(line, comments=True))
        marks = [pytest.mark.full] if (folder, alone) in ELSEWHERE else []
        yield pytest.param(folder, line, id=f"{folder}: {line}", marks=marks)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The examples, the files that a reader would have, and no jobs but the reader's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "examples/hello/hello.py", tmp_path / "train.py")
    shutil.copy(ROOT / "examples/hello/mpijob.yaml", tmp_path / "mpijob.yaml")
    (tmp_path / "manifests").mkdir()
    runtime = ROOT / "src/mpi_trainer/local/runtimes/mpi-mpich-cpu.yaml"
    shutil.copy(runtime, tmp_path / "manifests/team-runtime.yaml")
    (tmp_path / "solver").write_text('#!/bin/sh\ntest "$1" = input.dat && cat "$1"\n')
    (tmp_path / "solver").chmod(0o755)
    (tmp_path / "input.dat").touch()
    yield tmp_path
    for folder in store.folders():
        store.remove(folder)


def test_the_pages_have_commands() -> None:
    assert len([line for page in PAGES for line in blocks(page)]) > 15
    assert len(list(table())) == 9


@pytest.mark.parametrize(("folder", "line"), [*cases()])
def test_a_documented_command_works(project: Path, folder: str, line: str) -> None:
    """DOC-1."""
    before = [made for made in MADE if made != line and made.split()[3] in line.split()]
    for each in (*before, line):
        words = shlex.split(each, comments=True)
        if "<" in words:
            in_shell = f"exec {shlex.quote(str(forkserver.odh()))} {each.removeprefix('odh ')}"
            ended = run("-c", in_shell, cwd=project / folder, program=("/bin/sh",))
        else:
            ended = run(*words[1:], cwd=project / folder)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_python_in_the_readme_works(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(program, "README.md", "exec"), {})
