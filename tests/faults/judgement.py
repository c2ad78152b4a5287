"""Whether what a job says about its end is the truth about the fault that it met."""

from __future__ import annotations

from typing import Any

from tests.faults.scene import LAUNCHER, Outcome
from tests.faults.table import ANY, Fault, Label
from tests.faults.verdict import Verdict, verdict


def assert_told(fault: Fault, mpi: str, outcome: Outcome, seconds: float) -> None:
    """It ended within `seconds`, as it must, with the right reason, rank and host, and is
    explained."""
    found, label = verdict(outcome.ended), fault.label_for(mpi)
    assert not outcome.hung, f"still running after {outcome.seconds:.0f} s: {outcome.text}"
    assert outcome.seconds <= seconds, outcome.text
    if found.state == "Succeeded" and label.may_succeed:
        return
    assert found.state == label.state, (outcome.ended, outcome.text)
    if label.state == "Succeeded":
        assert not outcome.ended["findings"], outcome.text
        return
    if label.reasons:
        assert found.reason in label.reasons, (outcome.ended, outcome.text)
        assert blames(found, label), (found, label)
    assert_explained(fault, label, outcome)


def assert_explained(fault: Fault, label: Label, outcome: Outcome) -> None:
    """SC-006: the first finding has the right cause, rank and host, and says what to do."""
    first = first_finding(outcome)
    told = {first["cause"], first.get("instead", "")}
    assert told & set(fault.causes), (first, outcome.text)
    assert first["remedy"] and first["title"], first
    assert points_at(first, label), (first, label, outcome.text)


def first_finding(outcome: Outcome) -> dict[str, Any]:
    """What `odh run` says first of why the job failed; empty of one that did not."""
    found: list[dict[str, Any]] = outcome.ended.get("findings", [])
    return found[0] if found else {"cause": "", "ranks": [], "hosts": [], "remedy": "", "title": ""}


def points_at(first: dict[str, Any], label: Label) -> bool:
    """Whether the rank and host that failed are named, before all others where others follow."""
    ranks, hosts = first["ranks"], first["hosts"]
    if label.names_host:
        return label.host in hosts
    if label.rank == ANY:
        return True
    if label.rank is None and label.host:
        return bool(hosts[:1] == [label.host] and ranks[:1] in ([], [1]))
    if label.rank is None:
        return not ranks and hosts in ([], [LAUNCHER])
    return bool(ranks[:1] == [label.rank] and hosts[:1] == [label.host])


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
