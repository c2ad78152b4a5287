"""Jobs that look odd and are well: none may be ended, blamed, suspected or explained as a failure.

Each is of a kind that a careless watchdog or reader of logs would stumble over, on all MPIs in
turn; `HEALTHY_RUNS=200` makes it two hundred, as `make faults` does. Others work without a word,
`SILENT_RUNS` of them, longer than the agent waits before it looks where they are. And one
computation says nothing for a long time: `QUIET_SECONDS=600` makes it ten minutes, as a person
would; by default it is just longer than every bound that could end it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence

import pytest
from _pytest.mark import ParameterSet

from mpi_trainer.diagnose.cause import concluded
from mpi_trainer.diagnose.finding import Facts
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.diagnose.suspicion import WORDS as MARK
from tests.faults.injected import COMPILERS, PROGRAMS, compiled
from tests.faults.scene import Outcome, scene, state_folder
from tests.faults.table import MPIS
from tests.faults.verdict import verdict
from tests.local.scenario import needs_root

RUNS = int(os.environ.get("HEALTHY_RUNS", "28"))
SUSPECT = 2
"""seconds without output, after which the agent looks where the ranks are"""
SILENT_SECONDS = 10.0
SILENT = ("computes", "one-call", "collectives", "ring", "children", "writes", "prints-seldom")
SILENT_RUNS = int(os.environ.get("SILENT_RUNS", str(len(SILENT))))
QUIET_SECONDS = float(os.environ.get("QUIET_SECONDS", "45"))
SCRIPT = "set -e; "
# What MPI itself says much with; each knows its own.
LOUD = (
    "OMPI_MCA_btl_base_verbose=30 OMPI_MCA_plm_base_verbose=5 PRTE_MCA_plm_base_verbose=5 "
    "I_MPI_DEBUG=5 HYDRA_DEBUG=1"
)
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
    "stderr-only": "mpirun -n 3 python /state/healthy.py stderr-only",
    "log-levels": "mpirun -n 3 python /state/healthy.py log-levels",
    "retries": "mpirun -n 3 python /state/healthy.py retries",
    "progress-bar": "mpirun -n 3 python /state/healthy.py progress-bar",
    "long-lines": "mpirun -n 3 python /state/healthy.py long-lines",
    "warnings": "mpirun -n 3 python /state/healthy.py warnings",
    "thread-fails": "mpirun -n 3 python /state/healthy.py thread-fails",
    "ignored-exception": "mpirun -n 3 python /state/healthy.py ignored-exception",
    "own-signals": "mpirun -n 3 python /state/healthy.py own-signals",
    "zombies": "mpirun -n 3 python /state/healthy.py zombies",
    "mpi-speaks": f"{LOUD} mpirun -n 3 python /state/healthy.py quiet",
    "fails-before": "ls /none || cat /none || true; mpirun -n 3 python /state/healthy.py quiet",
    "stdin": "echo 41 | mpirun -n 3 python /state/healthy.py stdin",
    "two-worlds": "mpirun -n 3 python /state/healthy.py quiet; mpirun -n 2 true; mpirun -n 3 true",
    "second-try": "mpirun -n 3 false || mpirun -n 3 python /state/healthy.py quiet",
    "fewer-ranks": "mpirun -n 2 python /state/healthy.py quiet",
    "no-mpi": "echo nothing to do; sleep 1",
    "captured": 'test "$(mpirun -n 1 echo 7)" = 7',
}


def cases(names: Sequence[str], runs: int) -> Iterator[ParameterSet]:
    """Every kind in turn, each time with the next MPI."""
    for number in range(runs):
        name, turn = names[number % len(names)], number // len(names)
        mpi = MPIS[(number + turn) % len(MPIS)]
        yield pytest.param(name, mpi, id=f"{name}-{mpi}-{turn}")


def healthy(mpi: str, line: str, seconds: float, suspect: int = 300) -> Outcome:
    with state_folder() as state:
        for program in ("healthy.py", "silent.py"):
            shutil.copy(PROGRAMS / program, state)
        shutil.copy(compiled(COMPILERS.get(mpi, COMPILERS[""])), state / "rank-hello")
        command = ["sh", "-c", SCRIPT + line.replace("$", "$$")]
        with scene(mpi, command, state, bounds={"suspect": suspect}) as running:
            return running.end(seconds)


@needs_root
@pytest.mark.parametrize(("name", "mpi"), list(cases([*HEALTHY], RUNS)))
def test_a_healthy_job_is_left_alone(name: str, mpi: str) -> None:
    """SC-006: and nothing is found in what it has printed."""
    # One that sleeps for long is what a bound of two seconds is not for.
    outcome = healthy(mpi, HEALTHY[name], 60.0, 300 if name == "slow-start" else SUSPECT)
    assert not outcome.hung, outcome.text
    assert verdict(outcome.ended).state == "Succeeded", (outcome.ended, outcome.text)
    assert not outcome.ended["findings"]
    assert MARK not in outcome.text
    if name == "second-try":
        return  # there mpirun has failed, and said so
    reader = LogReader()
    reader.feed(outcome.text)
    found = concluded(reader, Facts(exit_code=0))
    assert not found, (found, outcome.text)


@needs_root
@pytest.mark.parametrize(("kind", "mpi"), list(cases(SILENT, SILENT_RUNS)))
def test_work_without_a_word_is_not_suspected(kind: str, mpi: str) -> None:
    line = f"mpirun -n 3 python /state/silent.py {kind} {SILENT_SECONDS}"
    outcome = healthy(mpi, line, 120.0, SUSPECT)
    assert verdict(outcome.ended).state == "Succeeded", (outcome.ended, outcome.text)
    assert MARK not in outcome.text


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
