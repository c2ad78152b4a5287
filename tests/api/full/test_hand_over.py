"""The lease changes hands while many jobs are being made (CTL-3).

Each controller reaches the API server through a proxy of its own, which notes every write and
when it was passed on. The new leader's first write to the Lease is the hand-over.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.api.admin import Admin
from tests.api.crashing import CrashingProxy
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "kubelet", "served"]

JOBS: Final = 8
WORKERS: Final = 4
LEASE_SECONDS: Final = 24
ROUNDS: Final = int(os.environ.get("MPI_TRAINER_ROUNDS", "1"))
LEADS: Final = 'leader_election_master_status{name="mpi-operator"}'


def flags(place: str) -> tuple[str, ...]:
    return (
        *(f"--namespaces={place}", f"--lock-namespace={place}"),
        *(f"--lease-duration={LEASE_SECONDS}s", "--renew-deadline=16s", "--retry-period=2s"),
    )


def depose(leader: Controller, how: str) -> None:
    """Takes the lead away: by its own will, by death, or by a sleep that it does not notice."""
    process = leader.process
    assert process is not None
    if how == "killed":
        process.kill()
    elif how == "told to stop":
        process.send_signal(signal.SIGTERM)
    else:
        process.send_signal(signal.SIGSTOP)


def wake(leader: Controller) -> None:
    assert leader.process is not None
    leader.process.send_signal(signal.SIGCONT)


@pytest.mark.timeout(240, func_only=True)
@pytest.mark.parametrize("how", ["told to stop", "killed", "asleep"])
@pytest.mark.parametrize("_", range(ROUNDS))
def test_the_old_leader_writes_nothing_once_another_leads(
    admin: Admin, kubelet: Kubelet, tmp_path: Path, how: str, _: int
) -> None:
    names = [f"job-{n}" for n in range(JOBS)]
    with (
        CrashingProxy(admin.spec, lambda: None) as old,
        CrashingProxy(admin.spec, lambda: None) as new,
        Controller(old.kubeconfig(tmp_path), *flags(admin.namespace)) as first,
    ):
        eventually("first leads", lambda: first.metric(LEADS) == 1.0)
        with Controller(new.kubeconfig(tmp_path), *flags(admin.namespace)) as second:
            for name in names:
                submit(admin, job(WORKERS, name))
            eventually("it is at work", lambda: len(old.made("pods")) > WORKERS, 90)
            depose(first, how)
            eventually("second leads", lambda: second.metric(LEADS) == 1.0, 90)
            if how == "asleep":
                wake(first)
            for name in names:
                until(admin, "Running", name, 120)
            assert first.process is not None
            first.process.wait(30)
            _check(old, new, names)


def _check(old: CrashingProxy, new: CrashingProxy, names: list[str]) -> None:
    taken = next(w.sent for w in new.writes if w.kind == "leases" and w.code < 300)
    late = [w for w in old.writes if w.sent >= taken]
    assert late == []
    early = [w for w in new.writes if w.sent < taken]
    assert [w for w in early if w.kind != "leases"] == []
    assert time.monotonic() > taken
    made = Counter(w.name for proxy in (old, new) for w in proxy.made("pods"))
    assert made == {f"{name}-worker-{n}": 1 for name in names for n in range(WORKERS)}
