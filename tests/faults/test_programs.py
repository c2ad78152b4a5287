"""Faults in the program itself, live: each is explained with its cause, rank, host and a remedy.

`make faults` runs all; `pytest tests/faults/test_programs.py -k disk-full` one.
"""

from __future__ import annotations

import pytest

from tests.faults.injected import injected
from tests.faults.judgement import assert_told
from tests.faults.program_table import PROGRAM_FAULTS
from tests.faults.results import keep
from tests.faults.table import Fault
from tests.local.scenario import needs_root

CASES = [
    pytest.param(fault, mpi, id=f"{fault.name}-{mpi}")
    for fault in PROGRAM_FAULTS
    for mpi in fault.mpis
]


@needs_root
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("fault", "mpi"), CASES)
def test_a_fault_of_the_program_is_explained(fault: Fault, mpi: str) -> None:
    """SC-006."""
    outcome = injected(fault, mpi)
    keep("programs", fault, mpi, outcome)
    assert_told(fault, mpi, outcome, fault.seconds)
