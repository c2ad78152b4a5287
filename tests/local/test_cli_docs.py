"""Every example in docs/cli.md works."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.local.cli import ODH, Cli, cli
from tests.local.odh import until
from tools.clidocs import PAGE, examples

# What `train` must be for an example of the verb: absent, running, suspended or done.
NEEDS = {
    "create": "absent",
    "watch": "done",
    "wait": "done",
    "logs": "done",
    "exec": "running",
    "stack": "running",
    "top": "running",
    "suspend": "running",
    "resume": "suspended",
}
EXAMPLES = PAGE.parents[1] / "examples"
RUNTIMES = PAGE.parents[1] / "src" / "mpi_trainer" / "local" / "runtimes"
ON_JOBS = [line for line in examples() if line.startswith("odh mpijob ")]
OTHERS = [line for line in examples() if line not in ON_JOBS]


@pytest.fixture(scope="module")
def odh() -> Iterator[Cli]:
    with cli() as program:
        folder = program.folder
        (folder / "solver").write_text("#!/bin/sh\ncat $1\n")
        (folder / "solver").chmod(0o755)
        (folder / "input").write_text("42\n")
        (folder / "model.pt").write_text("weights\n")
        (folder / "checkpoints").mkdir()
        manifest = program("mpijob", "create", "filed", "--dry-run", "-w", "1", "--", "true").stdout
        (folder / "mpijob.yaml").write_text(manifest)
        shutil.copy(EXAMPLES / "manifests" / "simple-trainjob.yaml", folder / "trainjob.yaml")
        shutil.copy(RUNTIMES / "mpi-openmpi-cpu.yaml", folder / "runtime.yaml")
        yield program


def prepared(odh: Cli, needed: str) -> None:
    state = odh.state("train")
    running = state in ("Created", "Running")
    if needed == "absent" or (needed == "done" and state not in ("gone", "Succeeded")):
        odh("mpijob", "delete", "--all", "--yes")
        state, running = "gone", False
    if needed in ("running", "suspended") and not running and state != needed.title():
        odh("mpijob", "delete", "--all", "--yes")
        odh.create("train", "6000", "0.1")
        odh("mpijob", "wait", "train", "--for", "Running", "--timeout", "60")
        until("both ranks train", lambda: "rank 1 epoch" in odh("mpijob", "logs", "train").stdout)
        state = "Running"
    if needed == "suspended" and state != "Suspended":
        odh("mpijob", "suspend", "train", "--wait", "--timeout", "60")
    if needed == "done" and state == "gone":
        odh.create("train")
        odh("mpijob", "wait", "train", "--timeout", "60")


def test_every_example_of_the_page_is_known_here() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = [line.partition("  # ")[0].strip() for block in blocks for line in block.splitlines()]
    assert lines == [*dict.fromkeys(lines)]
    assert set(lines) == {*ON_JOBS, *OTHERS}
    assert len(lines) > 40


@pytest.mark.parametrize("line", ON_JOBS)
def test_examples_with_jobs_work(odh: Cli, line: str) -> None:
    words = shlex.split(line)[1:]
    prepared(odh, NEEDS.get(words[1], "done"))
    assert "Traceback" not in odh(*words).stderr


@pytest.mark.parametrize("line", OTHERS)
def test_other_examples_work(odh: Cli, line: str) -> None:
    """As they stand; where a shell is not installed, its completion is printed at least."""
    if line.startswith("odh trainjob create"):
        prepared(odh, "absent")
    if line.startswith("odh top"):
        prepared(odh, "running")
    shell = next((s for s in ("zsh", "fish") if f"completion {s}" in line), "bash")
    if shutil.which(shell) is None:
        shell, line = "bash", f"odh completion {shell}"
    ended = subprocess.run(
        [shell, "-c", line],
        cwd=odh.folder,
        env={**odh.env, "PATH": f"{ODH.parent}:{odh.env['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    assert ended.stderr.count("Traceback") == 0
