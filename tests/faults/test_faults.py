"""Every fault on every MPI, live: the job ends in time and says what was wrong, and where.

`make faults` runs all; `pytest tests/faults -k "segfault and mpich"` one.
"""

from __future__ import annotations

import pytest

from tests.faults.injected import injected
from tests.faults.judgement import assert_told
from tests.faults.results import keep
from tests.faults.table import FAULTS, Fault
from tests.local.scenario import needs_root

CASES = [
    pytest.param(fault, mpi, id=f"{fault.name}-{mpi}") for fault in FAULTS for mpi in fault.mpis
]


@needs_root
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("fault", "mpi"), CASES)
def test_a_fault_ends_the_job_in_time_and_is_told(fault: Fault, mpi: str) -> None:
    """AC-15, OBS-2: within its bound, with the right rank, host and reason."""
    outcome = injected(fault, mpi)
    keep("faults", fault, mpi, outcome)
    assert_told(fault, mpi, outcome, fault.seconds)
