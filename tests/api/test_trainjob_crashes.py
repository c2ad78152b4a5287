"""The controller dies at every write of a TrainJob's life, and the job does not notice (CTL-3).

As for MPIJobs: each case is one life with one death, by SIGKILL, around one write. Snapshot, key
and hostfile are written at once, so which of them is the n-th differs from life to life.
"""

from __future__ import annotations

import itertools
import os
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.api.admin import Admin
from tests.api.crashing import MOMENTS, CrashingProxy, Moment
from tests.api.running import Controller
from tests.api.test_crashes import AT_ONCE, PATIENCE, Runner
from tests.api.trainjob_lab import SETS, TRAIN, api_server, condition, end, mpi_runtime, train_job
from tools.cluster.spec import Spec

__all__ = ["api_server"]

EVERY = 1 if os.environ.get("CRASHES") == "all" else 5


def live(spec: Spec, folder: Path, death: tuple[int, Moment] | None) -> int:
    """One life with at most one death; how many writes it took."""
    admin = Admin(spec, f"train-crash-{secrets.token_hex(4)}")
    admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": admin.namespace}})
    admin.create(f"{TRAIN}/trainingruntimes", mpi_runtime())
    running = Runner()
    try:
        with CrashingProxy(spec, running.kill) as proxy:
            proxy.target = death
            config = proxy.kubeconfig(folder)
            with Controller.alone(config, admin.namespace, wait=False) as one:
                running.controller = one
                admin.create(f"{TRAIN}/trainjobs", train_job())
                _play(admin, running)
            shown = "\n".join(map(str, proxy.writes))
            made = (w.name for kind in _MADE for w in proxy.made(kind))
            # The agent's scripts are the namespace's, not the job's.
            names = sorted(name for name in made if name.startswith("pi"))
            assert names == ["pi", "pi-mpi-hostfile", "pi-mpi-ssh-auth", "pi-runtime-snapshot"], (
                shown
            )
            return len(proxy.writes)
    finally:
        admin.call("DELETE", f"/api/v1/namespaces/{admin.namespace}")
        admin.close()


_MADE = ("jobsets", "configmaps", "secrets")


def _play(admin: Admin, running: Runner) -> None:
    """Until the job is complete and its key is gone."""
    deadline, told = time.monotonic() + PATIENCE, False
    while True:
        running.revive()
        if not told and admin.get(f"{SETS}/jobsets/pi") is not None:
            end(admin, "Completed", "AllJobsCompleted")
            told = True
        over = condition(admin, "Complete") is not None
        if over and admin.get("api/v1/secrets/pi-mpi-ssh-auth") is None:
            break
        assert time.monotonic() < deadline, "stuck"
        time.sleep(0.05)  # within the half second that a first status is held back


@pytest.mark.timeout(900, func_only=True)
def test_no_death_at_any_write_costs_a_trainjob_anything(api_server: Spec, tmp_path: Path) -> None:
    """Before the write, after it was carried out, and after its answer.

    At all of them with `CRASHES=all`; else at every fifth.
    """
    writes = live(api_server, tmp_path, None)
    # One tells that no launcher was there to be asked, since there are no pods here; one makes the
    # scripts of the namespace, whose first job this is.
    assert writes == 9, "a life got dearer"
    deaths = list(itertools.product(range(writes), MOMENTS))[::EVERY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lives = {pool.submit(live, api_server, tmp_path, death): death for death in deaths}
        wrong = [f"death at {d}: {f.exception()}" for f, d in lives.items() if f.exception()]
    assert not wrong, f"{len(wrong)} of {len(deaths)}:\n" + "\n".join(wrong[:5])
