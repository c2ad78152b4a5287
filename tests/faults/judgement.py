"""Whether what a job says about its end is the truth about the fault that it met."""

from __future__ import annotations

from tests.faults.scene import LAUNCHER, Outcome
from tests.faults.table import ANY, Fault, Label
from tests.faults.verdict import Verdict, verdict


def assert_told(fault: Fault, mpi: str, outcome: Outcome, seconds: float) -> None:
    """It ended within `seconds`, as it must, with the right reason, rank and host."""
    found, label = verdict(outcome.ended), fault.label_for(mpi)
    assert not outcome.hung, f"still running after {outcome.seconds:.0f} s: {outcome.text}"
    assert outcome.seconds <= seconds, outcome.text
    if found.state == "Succeeded" and label.may_succeed:
        return
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
