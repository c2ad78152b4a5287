"""One fault of every kind, each on another MPI, with bounds that the job itself makes short.

`tests/faults` has all of them, on all MPIs, with the bounds as they come.
"""

from __future__ import annotations

import shutil

import pytest

from tests.faults.injected import PROGRAMS, injected
from tests.faults.judgement import assert_told
from tests.faults.program_table import PROGRAM_FAULTS
from tests.faults.scene import scene, state_folder
from tests.faults.table import FAULTS
from tests.local.scenario import needs_root

BOUNDS = {"lost": 6, "dead": 3, "stuck": 3}
SECONDS = 90.0
CHOSEN = [
    ("segfault", "openmpi"),
    ("exit-nonzero", "mpich"),
    ("python-traceback", "openmpi4"),
    ("daemon-killed", "mpich4-debian"),
    ("worker-gone", "openmpi4-debian"),
    ("worker-unreachable-mid-run", "intel"),
    ("program-missing-on-one-worker", "mpich"),
    ("library-mismatch-singletons", "intel"),
]


@needs_root
@pytest.mark.parametrize(("name", "mpi"), CHOSEN)
def test_a_fault_ends_the_job_in_time_and_is_told(name: str, mpi: str) -> None:
    """AC-15, OBS-2"""
    found = next(f for f in FAULTS if f.name == name)
    fault = found.changed(seconds=SECONDS)
    assert_told(fault, mpi, injected(fault, mpi, BOUNDS), SECONDS)


@needs_root
@pytest.mark.parametrize("name", ["shapes", "disk-full", "double-free"])
def test_a_fault_of_the_program_is_explained(name: str) -> None:
    """SC-006"""
    found = next(f for f in PROGRAM_FAULTS if f.name == name)
    fault = found.changed(seconds=SECONDS)
    assert_told(fault, fault.mpis[0], injected(fault, fault.mpis[0], BOUNDS), SECONDS)


@needs_root
@pytest.mark.parametrize("mpi", ["openmpi", "mpich", "mpich4-debian", "intel"])
def test_a_rank_that_ends_all_is_named_where_mpirun_is_not_heard(mpi: str) -> None:
    """OBS-2: its words may go elsewhere, or be lost with an mpirun that is killed itself."""
    found = next(f for f in FAULTS if f.name == "mpi-abort")
    abort = found.changed(causes=("MpiAbort", "RankExitedNonZero"))
    line = "mpirun -n 3 python /state/rank.py mpi-abort >/dev/null 2>&1"
    with state_folder() as state:
        shutil.copy(PROGRAMS / "rank.py", state)
        with scene(mpi, ["sh", "-c", line], state) as running:
            assert_told(abort, mpi, running.end(SECONDS), SECONDS)
