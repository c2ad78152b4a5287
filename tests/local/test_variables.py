"""A job's variables are its own, also where the agent's scripts use the same names."""

from __future__ import annotations

import json

import pytest

from tests.local.agentnames import assigned
from tests.local.odh import run

SCRIPTS = ("launch", "channels", "processes", "verdict", "summary", "worker", "session")
OURS = "mt_"
PROGRAM = """
import json, os, sys
changed = {n: os.environ.get(n) for n in sys.argv[1:] if os.environ.get(n) != "the job's own"}
print("changed", json.dumps(changed))
"""


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_no_variable_of_a_job_reaches_a_rank_changed(mpi: str) -> None:
    """CTL-14."""
    names = sorted(assigned(*SCRIPTS, "rank", "mpiexec") | {"name", "size", "host", "rank"})
    own = [n for n in names if not n.startswith(OURS)]
    given = [word for name in own for word in ("--env", f"{name}=the job's own")]
    ended = run("run", "--mpi", mpi, "-w", "2", *given, "--", "python3", "-c", PROGRAM, *own)
    assert ended.returncode == 0, ended.stderr
    said = [line.partition("changed ")[2] for line in ended.stdout.splitlines()]
    assert [json.loads(line) for line in said if line] == [{}, {}]
