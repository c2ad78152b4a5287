"""What ranks print on real nodes arrives, every byte, in whole lines, with every MPI (L-1, L-2).

Fewer lines than a kubelet keeps in one file: what it rotates away is gone for any reader.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable

import pytest

from mpi_trainer.layout.mpi import implementation
from tests.api.odh import Odh
from tests.cluster import Kubectl
from tests.e2e.operator import mpijob, submit
from tests.e2e.test_mpijob import PLACES, environment, ranks
from tools.cluster.spec import Spec

LINES = int(os.environ.get("LINES", "40000"))
LONG = 100_000
TORN = 500
HUGE = 10_000_000
SHORT = 20_000
PROGRAM = f"""\
import sys
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
assert sys.stdin.read() == ""
for number in range({LINES}):
    print("rank", rank, "line", number)
print("rank", rank, "long", "x" * {LONG}, flush=True)
for number in range({TORN}):
    for part in (f"rank {{rank}} ", "torn ", f"{{number}}\\n"):
        sys.stdout.write(part)
        sys.stdout.flush()
sys.stdout.write(f"rank {{rank}} unfinished")
"""
SHORTLY = f"""\
from mpi4py import MPI
for number in range({SHORT}):
    print(str(number % 1000)[: number % 4])
"""
BINARY = f"""\
import sys
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
for number in range({LINES}):
    print("rank", rank, "line", number)
sys.stdout.flush()
size = int(sys.argv[1]) if rank == 0 else 100
for text in (b"x" * size, bytes({{*range(256)}} - {{10}})):
    with open(1, "wb", closefd=False) as out:
        out.write(text + b"\\n")
"""
CHECK = """\
import hashlib, sys
nexts = [0, 0]
for line in sys.stdin.buffer.read().split(b"\\n"):
    words = line.split()
    if words[:1] == [b"rank"]:
        assert words[2:] == [b"line", b"%d" % nexts[int(words[1])]], line
        nexts[int(words[1])] += 1
    else:
        print("captured", len(line), hashlib.md5(line).hexdigest())
print("counted", nexts)
"""
pytestmark = pytest.mark.timeout(500, func_only=True)


def expected(rank: int) -> list[str]:
    return [
        *(f"rank {rank} line {number}" for number in range(LINES)),
        f"rank {rank} long {'x' * LONG}",
        *(f"rank {rank} torn {number}" for number in range(TORN)),
    ]


@pytest.mark.parametrize("directory", PLACES)
def test_every_byte_of_every_rank_arrives(
    restricted_home: Kubectl, cluster: Spec, image: Callable[[str], str], directory: str
) -> None:
    name = f"output-{directory}"
    made = mpijob(
        name,
        image(directory),
        ranks(directory, 2, PROGRAM),
        slots=1,
        mpiImplementation=PLACES[directory],
        container={"env": environment()},
    )
    submit(restricted_home, made).until("Succeeded", 300)
    odh = Odh(cluster.kubeconfig, restricted_home.namespace)
    printed = odh("mpijob", "logs", name, seconds=240).stdout
    unmarked = re.sub(r"^\[\d\] ", "", printed, flags=re.MULTILINE)
    wrote = [*expected(0), *expected(1), "rank 0 unfinished", "rank 1 unfinished"]
    assert Counter(unmarked.replace("\n", "")) == Counter("".join(wrote))
    for rank in (0, 1):
        mine = [line for line in unmarked.split("\n") if line.startswith(f"rank {rank} ")]
        assert [line for line in mine if "unfinished" not in line] == expected(rank)


@pytest.mark.parametrize("directory", PLACES)
def test_short_lines_are_told_by_rank_and_what_a_script_captures_is_unchanged(
    restricted_home: Kubectl, cluster: Spec, image: Callable[[str], str], directory: str
) -> None:
    """Ranks are marked as clients ask for it; many lines, one of 10 MB and every byte there is are
    counted inside the pod, where no kubelet cuts them. Open MPI 5 computes over a line with the
    square of its length: for minutes, on a machine that is busy."""
    size = HUGE // 5 if directory == "mpi-openmpi5" and LINES <= 40_000 else HUGE
    name = f"marked-{directory}"
    option = {"MPI_TRAINER_TAG_OPTION": implementation(PLACES[directory]).tag_option}
    shortly = shlex.join(ranks(directory, 2, SHORTLY))
    binary = shlex.join([*ranks(directory, 2, BINARY), str(size)])
    script = f"{shortly} && {binary} | {shlex.join(['python3', '-c', CHECK])}"
    made = mpijob(
        name,
        image(directory),
        ["sh", "-c", script],
        slots=1,
        mpiImplementation=PLACES[directory],
        container={"env": environment(**option)},
    )
    submit(restricted_home, made).until("Succeeded", 400)
    odh = Odh(cluster.kubeconfig, restricted_home.namespace)
    printed = odh("mpijob", "logs", name, seconds=240).stdout.split("\n")
    for rank in (0, 1):
        mark = f"[{rank}] "
        mine = [line.removeprefix(mark) for line in printed if line.startswith(mark)]
        assert mine == [str(number % 1000)[: number % 4] for number in range(SHORT)]
    wrote = [b"x" * size, b"x" * 100, *[bytes({*range(256)} - {10})] * 2, b""]
    told = [f"captured {len(one)} {hashlib.md5(one).hexdigest()}" for one in wrote]
    assert sorted(line for line in printed if line.startswith("captured")) == sorted(told)
    assert f"counted [{LINES}, {LINES}]" in printed
