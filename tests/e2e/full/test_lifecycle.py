"""Real nodes come and go without a trace: processes, mounts, namespaces, links, cgroups, rules."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Kubectl, require
from tools.cluster import cgroups, processes
from tools.cluster.build import build
from tools.cluster.down import down
from tools.cluster.paths import RUN
from tools.cluster.spec import Spec, checked, components_of, load
from tools.cluster.up import up, why_unhealthy

NAME = "test-accident"
ADDONS = ("dns", "netpol")
WANTED = Spec(name=NAME, profile="full", addons=ADDONS)

pytestmark = pytest.mark.timeout(900, func_only=True)


@pytest.fixture(autouse=True)
def _gone_before_and_after() -> Iterator[None]:
    require(WANTED)
    build(components_of(checked(WANTED)))
    down(NAME)
    yield
    down(NAME)


def _machine() -> dict[str, object]:
    """Everything that a cluster could leave on the machine; other programs' things may change."""

    def said(needle: str, *command: str) -> list[str]:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line for line in answer.stdout.splitlines() if needle in line]

    return {
        "links": sorted(path.name for path in Path("/sys/class/net").glob("mpt*")),
        "routes": said("10.1", "ip", "route"),
        "namespaces": said("mpt", "ip", "netns"),
        "rules": said("", "nft", "list", "ruleset"),
        "cgroups": sorted(str(p) for tree in cgroups.trees() for p in tree.glob("mpt*")),
        "mounts": said("mpi-trainer", "cat", "/proc/mounts"),
        "marks": [p for p in Path("/proc").glob("[0-9]*") if _is_marked(p)],
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "sockets": sorted(str(path) for path in RUN.glob("*")),
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
