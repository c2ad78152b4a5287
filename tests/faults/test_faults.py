"""Every fault on every MPI, live: the job ends in time and says what was wrong, and where.

`make faults` runs all; `pytest tests/faults -k "segfault and mpich"` one.
"""

from __future__ import annotations

import pytest

from tests.faults.injected import injected
from tests.faults.results import keep
from tests.faults.scene import LAUNCHER
from tests.faults.table import ANY, FAULTS, Fault, Label
from tests.faults.verdict import Verdict, verdict
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
    found = verdict(outcome.ended)
    keep(fault, mpi, outcome, found)
    label = fault.label_for(mpi)
    assert not outcome.hung, f"still running after {outcome.seconds:.0f} s: {outcome.text}"
    assert outcome.seconds <= fault.seconds, outcome.text
    assert found.state == label.state, (outcome.ended, outcome.text)
    if label.state == "Failed":
        assert found.reason in label.reasons, (outcome.ended, outcome.text)
        assert blames(found, label), (found, label)


def blames(found: Verdict, label: Label) -> bool:
    """Whether the right rank and host were named, and nobody where nobody is to blame."""
    if label.names_host:
        return label.host in found.message
    if label.rank == ANY:
        return True
    if label.rank is None and label.host:
        return found.host == label.host and found.rank in (None, 1)
    if label.rank is None:
        return found.rank is None and found.host in ("", LAUNCHER)
    return (found.rank, found.host) == (label.rank, label.host)
