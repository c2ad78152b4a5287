"""Real nodes come and go without a trace: processes, mounts, namespaces, links, cgroups, rules."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Kubectl, shared_cluster
from tools.cluster import cgroups, processes
from tools.cluster.down import down
from tools.cluster.spec import Spec, load
from tools.cluster.up import up, why_unhealthy

NAME = "test-accident"
ADDONS = ("dns", "netpol")
WANTED = Spec(name=NAME, profile="full", addons=ADDONS)

pytestmark = pytest.mark.timeout(900, func_only=True)


@pytest.fixture(autouse=True)
def _gone_before_and_after() -> Iterator[None]:
    for _ in shared_cluster(WANTED):
        pass
    down(NAME)
    yield
    down(NAME)


def _machine() -> dict[str, object]:
    """Everything that a cluster could leave on the machine."""

    def said(*command: str) -> list[str]:
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.splitlines()

    return {
        "links": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "routes": said("ip", "route"),
        "namespaces": said("ip", "netns"),
        "rules": said("nft", "list", "ruleset"),
        "cgroups": sorted(str(p) for tree in cgroups.trees() for p in tree.glob("mpt*")),
        "mounts": [line for line in said("cat", "/proc/mounts") if "mpi-trainer" in line],
        "marks": [p for p in Path("/proc").glob("[0-9]*") if _is_marked(p)],
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
    }


def _is_marked(process: Path) -> bool:
    try:
        return f"clusters/{NAME}".encode() in (process / "environ").read_bytes()
    except OSError:
        return False


def test_ten_times_up_and_down_leave_the_machine_as_it_was() -> None:
    before = _machine()
    for _ in range(10):
        assert not why_unhealthy(up(WANTED))
        down(NAME)
        assert _machine() == before


@pytest.mark.parametrize("seconds", [0.5, 1.0, 2.0, 4.0, 8.0, 12.0])
def test_nothing_is_left_of_an_up_that_was_killed(seconds: float) -> None:
    before = _machine()
    command = [sys.executable, "-m", "tools.cluster", "up", "--name", NAME]
    command.append(f"--addons={','.join(ADDONS)}")
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.kill()
    down(NAME)
    assert _machine() == before


def test_up_over_a_cluster_whose_node_died_starts_afresh() -> None:
    spec = up(WANTED)
    processes.end([processes.recorded(spec.state)["kubelet-node2"]])
    assert why_unhealthy(spec) == "kubelet-node2 is dead"
    again = up(WANTED)
    assert not why_unhealthy(again)
    Kubectl(again).wait("--for=condition=Ready", "nodes", "--all")
    assert load(NAME) == again
