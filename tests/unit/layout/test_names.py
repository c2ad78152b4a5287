"""A launcher that the agent does not run waits for its hosts' names (U-1, U-6): the real script,
the machine's own resolver."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.layout.agent import scripts
from mpi_trainer.layout.agent.choice import choice

NOBODY = "nobody-has-this-name.invalid"


def script(folder: Path, *hosts: str) -> Path:
    (folder / "hostfile").write_text("".join(f"{host}\n" for host in hosts))
    path = folder / "names"
    path.write_text(scripts.text("names"))
    path.chmod(0o755)
    return path


def started(folder: Path, *command: str, **more: str) -> subprocess.Popen[str]:
    env = {**os.environ, "MPI_TRAINER_HOSTFILE": str(folder / "hostfile"), **more}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [str(folder / "names"), *command], env=env, stdout=pipe, stderr=pipe, text=True
    )


@pytest.mark.parametrize("line", ["localhost slots=2", "localhost:2", "127.0.0.1", "# none", ""])
def test_the_command_runs_at_once_where_all_names_are_known(tmp_path: Path, line: str) -> None:
    script(tmp_path, line)
    run = started(tmp_path, "printf", "%s|", "a b", "$HOME", "")
    assert run.communicate(timeout=60) == ("a b|$HOME||", "")
    assert run.returncode == 0


def test_the_command_waits_until_the_last_name_is_known(tmp_path: Path) -> None:
    script(tmp_path, "localhost", NOBODY)
    run = started(tmp_path, "echo", "ran")
    time.sleep(2)
    assert run.poll() is None
    script(tmp_path, "localhost")
    assert run.communicate(timeout=60)[0] == "ran\n"


def test_a_stopped_wait_ends_at_once(tmp_path: Path) -> None:
    script(tmp_path, NOBODY)
    run = started(tmp_path, "echo", "ran")
    time.sleep(1)
    run.send_signal(signal.SIGTERM)
    assert run.communicate(timeout=60)[0] == ""
    assert run.returncode == 143


def test_where_dns_knows_nothing_of_the_cluster_the_command_tells_what_is_wrong(
    tmp_path: Path,
) -> None:
    """A clock that runs a minute a look stands for the 110 s."""
    script(tmp_path, f"{NOBODY}.job.lab.svc")
    clock = tmp_path / "date"
    clock.write_text('#!/bin/sh\nn=$(cat "$0.now" || echo 0)\necho $((n + 60)) | tee "$0.now"\n')
    clock.chmod(0o755)
    run = started(tmp_path, "echo", "ran", PATH=f"{tmp_path}:{os.environ['PATH']}")
    out, said = run.communicate(timeout=120)
    assert out == "ran\n"
    assert "check the pod's dnsPolicy" in said


@pytest.mark.parametrize(
    ("annotations", "command", "waits"),
    [
        ({"agent": "off"}, ("mpirun",), True),
        ({"agent": "off", "wait-seconds": "0"}, ("mpirun",), False),
        ({"agent": "off"}, (), False),
        ({"agent": "environment"}, ("mpirun",), True),
        ({"ssh": "compatible"}, ("mpirun",), True),
        ({}, ("mpirun",), False),
        ({}, (), False),
    ],
)
def test_every_level_waits_where_the_command_is_known(
    annotations: dict[str, str], command: tuple[str, ...], waits: bool
) -> None:
    """At full level by the agent itself; an image's own command cannot be stood before."""
    given = {f"mpi-trainer.opendatahub.io/{name}": value for name, value in annotations.items()}
    content = {"spec": {"containers": [{"name": "mpi", "command": list(command)}]}}
    launcher = PodTemplate.of(content) if command else PodTemplate()
    assert choice(given, launcher, PodTemplate()).names is waits
