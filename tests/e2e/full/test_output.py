"""What ranks print on real nodes arrives, every byte of it, with every MPI (L-1, L-2), and in whole
lines with every MPI but Open MPI 4, whose marks cost lines (decision 26).

Fewer lines than a kubelet keeps in one file: what it rotates away is gone for any reader.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable

import pytest

from tests.api.odh import Odh
from tests.cluster import Kubectl
from tests.e2e.operator import mpijob, submit
from tests.e2e.test_mpijob import PLACES, environment, ranks
from tools.cluster.spec import Spec

LINES = int(os.environ.get("LINES", "40000"))
LONG = 100_000
TORN = 500
MIXES = "mpi-openmpi"
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
    for rank in (0, 1) if directory != MIXES else ():
        mine = [line for line in unmarked.split("\n") if line.startswith(f"rank {rank} ")]
        assert [line for line in mine if "unfinished" not in line] == expected(rank)
