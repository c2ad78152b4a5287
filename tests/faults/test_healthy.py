"""Jobs that look odd and are well: none may be ended, blamed or warned about as a failure.

Two hundred runs over all MPIs, each of a kind that a careless watchdog would stumble over; and
one computation that says nothing for a long time. `QUIET_SECONDS=600` makes it ten minutes, as a
person would; by default it is just longer than every bound that could end it.
"""

from __future__ import annotations

import os
import shutil

import pytest

from tests.faults.injected import COMPILERS, PROGRAMS, compiled
from tests.faults.scene import Outcome, scene, state_folder
from tests.faults.table import MPIS
from tests.faults.verdict import verdict
from tests.local.scenario import needs_root

ROUNDS = int(os.environ.get("HEALTHY_ROUNDS", "3"))
QUIET_SECONDS = float(os.environ.get("QUIET_SECONDS", "45"))
SCRIPT = "set -e; "
# Each is a launcher's whole command; `healthy.py` is in /state.
HEALTHY = {
    "instant": "mpirun -n 3 true",
    "instant-mpi": "mpirun -n 3 /state/rank-hello",
    "quiet": "mpirun -n 3 python /state/healthy.py quiet",
    "slow-start": "mpirun -n 3 python /state/healthy.py slow-start 6",
    "slow-finish": "mpirun -n 3 python /state/healthy.py slow-finish",
    "chatty": "mpirun -n 3 python /state/healthy.py chatty",
    "forking": "mpirun -n 3 python /state/healthy.py forking",
    "failing-children": "mpirun -n 3 python /state/healthy.py failing-children",
    "caught-exceptions": "mpirun -n 3 python /state/healthy.py caught-exceptions",
    "words-of-failure": "mpirun -n 3 python /state/healthy.py words-of-failure",
    "stdin": "echo 41 | mpirun -n 3 python /state/healthy.py stdin",
    "two-worlds": "mpirun -n 3 python /state/healthy.py quiet; mpirun -n 2 true; mpirun -n 3 true",
    "second-try": "mpirun -n 3 false || mpirun -n 3 python /state/healthy.py quiet",
    "fewer-ranks": "mpirun -n 2 python /state/healthy.py quiet",
    "no-mpi": "echo nothing to do; sleep 1",
    "captured": 'test "$(mpirun -n 1 echo 7)" = 7',
}
CASES = [
    pytest.param(name, mpi, id=f"{name}-{mpi}-{round_}")
    for round_ in range(ROUNDS)
    for name in HEALTHY
    for mpi in MPIS
]


def healthy(mpi: str, line: str, seconds: float) -> Outcome:
    with state_folder() as state:
        shutil.copy(PROGRAMS / "healthy.py", state)
        shutil.copy(compiled(COMPILERS.get(mpi, COMPILERS[""])), state / "rank-hello")
        command = ["sh", "-c", SCRIPT + line.replace("$", "$$")]
        with scene(mpi, command, state) as running:
            return running.end(seconds)


@needs_root
@pytest.mark.parametrize(("name", "mpi"), CASES)
def test_a_healthy_job_is_left_alone(name: str, mpi: str) -> None:
    outcome = healthy(mpi, HEALTHY[name], 60.0)
    assert not outcome.hung, outcome.text
    assert verdict(outcome.ended).state == "Succeeded", (outcome.ended, outcome.text)


@needs_root
@pytest.mark.timeout(QUIET_SECONDS + 90)
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("where", ["long", "slow-start"])
def test_a_computation_that_says_nothing_is_not_a_hang(mpi: str, where: str) -> None:
    """One rank computes while the others wait for it, within MPI or in the start of MPI itself:
    no output, no step, for a long time."""
    line = f"mpirun -n 3 python /state/healthy.py {where} {QUIET_SECONDS}"
    outcome = healthy(mpi, line, QUIET_SECONDS + 60)
    assert outcome.seconds >= QUIET_SECONDS
    assert verdict(outcome.ended).state == "Succeeded", (outcome.ended, outcome.text)
