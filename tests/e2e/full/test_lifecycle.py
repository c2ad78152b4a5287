"""Real nodes come and go without a trace: processes, mounts, namespaces, links, cgroups, rules."""

from __future__ import annotations

import ipaddress
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Kubectl, require
from tools.cluster import cgroups, kernel, processes
from tools.cluster.build import build
from tools.cluster.down import down
from tools.cluster.paths import RUN, clusters_root
from tools.cluster.spec import Spec, checked, components_of, existing, load
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
    """Everything that a cluster could leave on the machine, but what other clusters have there."""
    others = [spec for spec in existing() if spec.name != NAME]
    foreign = [n for s in others for n in (s.addresses.bridge, f"clusters/{s.name}/", str(s.run))]
    blocks = [ipaddress.ip_network(spec.addresses.block) for spec in others]

    def ours(text: str) -> bool:
        addresses = re.findall(r"10[.](?:1[6-9]|2[012])\d[.]\d+[.]\d+", text)
        known = any(ipaddress.ip_address(a) in block for a in addresses for block in blocks)
        return not known and not any(re.search(rf"{re.escape(n)}(?!\d)", text) for n in foreign)

    def said(needle: str, *command: str) -> list[str]:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line for line in answer.stdout.splitlines() if needle in line and ours(line)]

    settings = [(Path("/proc/sys") / name).read_text() for name in kernel.SETTINGS]
    return {
        "links": [p.name for p in sorted(Path("/sys/class/net").glob("mpt*")) if ours(p.name)],
        "routes": said("10.", "ip", "route"),
        "namespaces": said("mpt", "ip", "netns"),
        "rules": said("", "nft", "list", "ruleset"),
        "cgroups": sorted(str(p) for t in cgroups.trees() for p in t.glob("mpt*") if ours(p.name)),
        "mounts": said(str(clusters_root()), "cat", "/proc/mounts"),
        "marks": [p for p in Path("/proc").glob("[0-9]*") if _is_marked(p)],
        "settings": [] if any(spec.real_nodes for spec in others) else settings,
        "sockets": sorted(str(p) for p in RUN.glob("[0-9]*") if ours(str(p))),
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
