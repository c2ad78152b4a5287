"""Which commands start ranks by themselves (CTL-15)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.layout.launch import LAUNCHERS, SHELLS, mpi_command, starts_ranks

few = settings(max_examples=40)

STARTS = [
    ["mpirun", "-n", "4", "python", "train.py"],
    ["/opt/intel/bin/mpiexec.hydra", "./a"],
    ["horovodrun", "-np", "4", "python", "train.py"],
    ["deepspeed", "train.py"],
    ["env", "OMP_NUM_THREADS=1", "mpirun", "./a"],
    ["/usr/bin/env", "-i", "-u", "HOME", "A=b c", "mpirun", "./a"],
    ["timeout", "-s", "KILL", "10m", "mpirun", "./a"],
    ["nice", "-n", "5", "nohup", "mpirun", "./a"],
    ["stdbuf", "-oL", "mpirun", "./a"],
    ["bash", "-c", "mpirun ./a"],
    ["/bin/sh", "-lc", "cd /src && exec mpirun ./a"],
    ["sh", "-ec", "module load mpi\nmpirun ./a"],
    ["bash", "-ceu", "mpirun ./a"],
    ["bash", "--norc", "-c", "mpirun ./a"],
    ["bash", "-euo", "pipefail", "-c", "mpirun ./a | tee log"],
    ["bash", "--rcfile", "/etc/rc", "-c", "mpirun ./a"],
    ["env", "A=1", "sh", "-c", "mpirun ./a"],
    ["sh", "-c", 'OPTS="-x A" mpirun ./a'],
    ["sh", "-c", '"${MPI_HOME}/bin/mpirun" ./a'],
    ["sh", "-c", "$HOME/bin/mpiexec.openmpi ./a"],
    ["sh", "-c", "if mpirun ./a; then echo well; fi"],
    ["sh", "-c", "for i in 1 2; do mpirun ./a; done"],
    ["sh", "-c", "(time -p mpirun ./a)"],
    ["sh", "-c", "cd /src && \\\n  mpirun ./a"],
    ["sh", "-c", "prepare  # isn't needed twice\nmpirun ./a  # isn't it"],
]
DOES_NOT = [
    [],
    [""],
    ["env"],
    ["env", "A=1"],
    ["python", "train.py"],
    ["python", "mpirun_helper.py"],
    ["python", "mpirun"],
    ["python", "train.py", "--launcher", "mpirun"],
    ["timeout", "60", "python", "train.py", "--with", "deepspeed"],
    ["env", "LAUNCHER=mpirun", "python", "train.py"],
    ["./my-mpirun"],
    ["mpirun.py"],
    ["bash"],
    ["bash", "-c"],
    ["bash", "-o"],
    ["bash", "script.sh"],
    ["bash", "mpirun.sh"],
    ["bash", "script.sh", "-c", "mpirun"],
    ["bash", "-x", "script.sh", "mpirun"],
    ["bash", "-c", ""],
    ["bash", "-c", "python mpirun.py"],
    ["bash", "-c", "python mpirun_helper.py --launcher=mpirun"],
    ["bash", "-c", "python train.py --launcher mpirun"],
    ["bash", "-c", "pip install deepspeed && python train.py"],
    ["bash", "-c", "which mpirun; python train.py"],
    ["bash", "-c", 'echo "ready; mpirun follows"; python train.py'],
    ["bash", "-c", "python train.py  # once mpirun ./a"],
    ["bash", "-c", "# mpirun ./a\npython train.py"],
    ["python", "-c", "mpirun"],
]

words = st.lists(st.text(max_size=12), max_size=6).map(tuple)


def shown(command: list[str]) -> str:
    return " ".join(command).replace("\n", " / ") or "(empty)"


@pytest.mark.parametrize("command", STARTS, ids=shown)
def test_command_that_starts_ranks_is_left_alone(command: list[str]) -> None:
    assert starts_ranks(tuple(command))
    assert mpi_command(tuple(command), 8) == tuple(command)


@pytest.mark.parametrize("command", DOES_NOT, ids=shown)
def test_any_other_command_is_started_once_per_slot(command: list[str]) -> None:
    assert not starts_ranks(tuple(command))
    assert mpi_command(tuple(command), 8) == ("mpirun", "-n", "8", *command)


@pytest.mark.parametrize("launcher", sorted(LAUNCHERS))
def test_every_launcher_is_known_by_name_and_by_path(launcher: str) -> None:
    assert starts_ranks((launcher, "./a"))
    assert starts_ranks((f"/usr/lib64/mpi/bin/{launcher}", "./a"))
    assert not starts_ranks((f"{launcher}x", "./a"))


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_every_shell_is_looked_into(shell: str) -> None:
    assert starts_ranks((shell, "-c", "mpirun ./a"))
    assert not starts_ranks((shell, "-c", "./a"))


@few
@given(words, st.integers(1, 99))
def test_made_command_starts_ranks_and_is_made_once(command: tuple[str, ...], ranks: int) -> None:
    made = mpi_command(command, ranks)
    assert starts_ranks(made)
    assert mpi_command(made, ranks) == made
    assert made[len(made) - len(command) :] == command


@few
@given(st.text(alphabet="mpirun -c\"'\\;&|()#\n=/$ab", max_size=60))
def test_any_shell_line_is_read_to_an_answer(line: str) -> None:
    assert starts_ranks(("sh", "-c", line)) in (True, False)
