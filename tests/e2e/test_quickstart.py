"""What docs/cluster-quickstart.md and docs/trainjob.md tell users to type, literally.

SC-001, SC-004, DOC-1: nobody helps, and it takes no longer than the page says.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.api.running import Controller
from tests.cluster import Kubectl, restricted
from tests.pages import ROOT, shell_blocks
from tools.cluster.report import environment
from tools.cluster.spec import Spec

PAGE = "docs/cluster-quickstart.md"
PROMISED_SECONDS = 120

pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.fixture
def newcomer(
    cluster: Spec, operator: Controller, image: Callable[[str], str], tmp_path: Path
) -> Iterator[dict[str, str]]:
    """The environment of somebody whose kubeconfig leads to a namespace of their own."""
    image("mpi-openmpi")
    kubectl = Kubectl(cluster, f"newcomer-{secrets.token_hex(3)}")
    kubectl.apply(restricted(kubectl.namespace))
    config = json.loads(cluster.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = kubectl.namespace
    path = tmp_path / "config"
    path.touch(0o600)
    path.write_text(json.dumps(config))
    programs = str(Path(sys.executable).parent)
    env = environment(cluster)
    yield {**env, "KUBECONFIG": str(path), "PATH": f"{programs}:{env['PATH']}", "NO_COLOR": "1"}
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def run(words: list[str], env: dict[str, str]) -> str:
    ended = subprocess.run(
        words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == 0, f"{shlex.join(words)}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def test_a_newcomer_runs_the_first_job_by_the_command_line(newcomer: dict[str, str]) -> None:
    first, second = shell_blocks(PAGE, "By the command line")
    began = time.monotonic()
    said = {line: run(shlex.split(line), newcomer) for line in first.splitlines()}
    took = time.monotonic() - began
    hosts = next(text for line, text in said.items() if " create " in line).split()
    assert sorted(host for host in hosts if host.startswith("hello-worker-")) == [
        "hello-worker-0",
        "hello-worker-1",
    ]
    assert took < PROMISED_SECONDS, f"{took:.0f} s"
    said = {line: run(shlex.split(line), newcomer) for line in second.splitlines()}
    printed = next(text for line, text in said.items() if " logs " in line)
    assert "hello from rank 3 of 4" in printed


def test_a_newcomer_runs_the_first_job_from_python(
    newcomer: dict[str, str], tmp_path: Path
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)
    cell = tmp_path / "cell.py"  # a notebook's cell has a source, as a file has
    cell.write_text(program)
    began = time.monotonic()
    printed = run([sys.executable, str(cell)], newcomer)
    assert printed.splitlines() == [f"epoch {n}/3 loss {2 / n:.3f}" for n in (1, 2, 3)]
    assert time.monotonic() - began < PROMISED_SECONDS


def test_the_commands_of_the_page_about_trainjobs_work(
    newcomer: dict[str, str], shipped_runtimes: tuple[str, ...]
) -> None:
    """DOC-1: as they stand, with real MPI; every rank prints its number."""
    (block,) = shell_blocks("docs/trainjob.md")
    said = run(["sh", "-euc", block], newcomer).splitlines()
    assert sorted(line for line in said if line.isdigit()) == ["0", "1", "2", "3"]
