"""A job that seems stuck is marked and never ended; one that computes in silence is not (OBS-2).

The bound is two seconds here; the agent then looks twice, two seconds apart.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.annotations import bound
from tests.faults.scene import Scene, scene, state_folder
from tests.faults.verdict import verdict
from tests.local.cli import Cli, cli
from tests.local.matrix import any_mpi
from tests.local.scenario import needs_root

SUSPECT = 2
MARK_SECONDS = 60.0
HEALTHY_SECONDS = 12.0
# Of each worker: ranks that wait for the others, or compute, take all that they get.
LIMITS = {"cpu": "250m"}
PROGRAM = """
import os, sys, time
from mpi4py import MPI
comm, kind, seconds = MPI.COMM_WORLD, sys.argv[1], float(sys.argv[2])
comm.Barrier()
until = time.monotonic() + seconds
if kind == "receives" and comm.rank == 2:
    comm.recv(source=0)
elif kind == "sleeps" and comm.rank == 2:
    while not os.path.exists("/state/go"):
        time.sleep(0.2)
elif kind == "leaves" and comm.rank == 2:
    sys.exit(0)
elif kind == "computes" and comm.rank == 2:
    while time.monotonic() < until:
        sum(range(10000))
elif kind == "one-call":
    sum(range(int(seconds * 5e6)))
elif kind == "collectives":
    while comm.bcast(time.monotonic() < until):
        pass
comm.allreduce(comm.rank)
print("rank", comm.rank, "is done", flush=True)
"""
WAITS = """import os, time
from mpi4py import MPI
while MPI.COMM_WORLD.rank == 1 and not os.path.exists("go"):
    time.sleep(0.2)
MPI.COMM_WORLD.Barrier()
"""
LINES = {text.strip(): n for n, text in enumerate(PROGRAM.splitlines(), 1)}
COLLECTIVE = f"ranks 0-1 wait in MPI_Allreduce (train.py:{LINES['comm.allreduce(comm.rank)']})"
RECEIVE = f"waits in MPI_Recv (train.py:{LINES['comm.recv(source=0)']})"
SLEEP = f"uses no CPU at train.py:{LINES['time.sleep(0.2)']}"


def said(running: Scene, words: str) -> str:
    """What `odh run` has said, once the words are among it."""
    file, limit = running.state / "odh.err", time.monotonic() + MARK_SECONDS
    while words not in (text := file.read_text(errors="replace")):
        assert time.monotonic() < limit, text[-3000:]
        time.sleep(0.2)
    return text


def command(state: Path, kind: str) -> list[str]:
    (state / "train.py").write_text(PROGRAM)
    return ["mpirun", "-n", "3", "python", "/state/train.py", kind, str(HEALTHY_SECONDS)]


@needs_root
@any_mpi
def test_a_collective_that_one_rank_does_not_call_is_told_with_that_rank(mpi: str) -> None:
    with state_folder() as state:
        bounds = {"suspect": SUSPECT}
        with scene(mpi, command(state, "receives"), state, limits=LIMITS, bounds=bounds) as running:
            text = said(running, "seems to be stuck")
            assert f"{COLLECTIVE}; rank 2 on train-worker-2 has not come there: {RECEIVE}" in text
            assert "no output and no progress for " in text
            time.sleep(3 * SUSPECT + 4)
            outcome = running.end(0)
    assert outcome.hung  # until the test killed it
    assert outcome.text.count("seems to be stuck") == 1


@needs_root
@any_mpi
def test_a_job_that_goes_on_loses_the_mark_and_ends_well(mpi: str) -> None:
    with state_folder() as state:
        bounds = {"suspect": SUSPECT}
        with scene(mpi, command(state, "sleeps"), state, limits=LIMITS, bounds=bounds) as running:
            text = said(running, "seems to be stuck")
            assert f"{COLLECTIVE}; rank 2 on train-worker-2 has not come there: {SLEEP}" in text
            (state / "go").touch()
            outcome = running.end(60)
    assert verdict(outcome.ended).state == "Succeeded", outcome


@needs_root
@any_mpi
@pytest.mark.parametrize("kind", ["computes", "one-call", "collectives"])
def test_ranks_that_compute_without_a_word_are_not_suspected(mpi: str, kind: str) -> None:
    with state_folder() as state:
        bounds = {"suspect": SUSPECT}
        with scene(mpi, command(state, kind), state, limits=LIMITS, bounds=bounds) as running:
            outcome = running.end(120)
    assert "seems to be stuck" not in outcome.text
    assert verdict(outcome.ended).state == "Succeeded", outcome


def suspected(odh: Cli, name: str) -> str:
    """What is explained of the job, once that is something."""
    limit = time.monotonic() + MARK_SECONDS
    while not (found := odh.json("explain", name)["findings"]):
        assert time.monotonic() < limit, odh("describe", name).stdout
        time.sleep(0.5)
    assert (found[0]["cause"], found[0]["confidence"]) == ("NoProgress", "suspicion")
    return str(found[0]["title"])


def test_a_trainjob_on_this_machine_is_marked_too() -> None:
    command = ["mpirun", "-n", "2", "python", "train.py"]
    node = {"numNodes": 2, "numProcPerNode": 1, "resourcesPerNode": {"limits": LIMITS}}
    made = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "stuck", "annotations": {bound("suspect"): str(SUSPECT)}},
        "spec": {
            "runtimeRef": {"name": "mpi-mpich-cpu"},
            "trainer": {**node, "command": command},
        },
    }
    with cli() as odh:
        (odh.folder / "train.py").write_text(WAITS)
        (odh.folder / "job.json").write_text(json.dumps(made))
        odh("trainjob", "create", "-f", "job.json")
        said = suspected(odh, "stuck")
        assert "rank 0 on stuck-launcher-0-0 waits in MPI_Barrier (train.py:5)" in said
        assert "rank 1 on stuck-node-0-0 has not come there: uses no CPU at train.py:4" in said
        (odh.folder / "go").touch()
        odh("trainjob", "wait", "stuck", "--timeout", "60")


def test_a_background_job_is_marked_in_its_condition_and_explained() -> None:
    with cli() as odh:
        (odh.folder / "train.py").write_text(WAITS)
        odh.create("stuck", annotations={bound("suspect"): str(SUSPECT)}, limits=LIMITS)
        suspected(odh, "stuck")
        page = odh("mpijob", "describe", "stuck").stdout
        assert page.startswith("NoProgress: the job seems to be stuck: no output and no progress")
        assert "rank 0 on stuck-worker-0 waits in MPI_Barrier (train.py:5)" in page
        assert "rank 1 on stuck-worker-1 has not come there: uses no CPU at train.py:4" in page
        assert "seems to be stuck" in odh("mpijob", "list", "-o", "wide").stdout
        (odh.folder / "go").touch()
        odh("mpijob", "wait", "stuck", "--timeout", "60")
        assert odh.json("explain", "stuck")["findings"] == []
        reasons = [event["reason"] for event in odh.json("mpijob", "describe", "stuck")["events"]]
        assert reasons.count("NoProgress") == 1
