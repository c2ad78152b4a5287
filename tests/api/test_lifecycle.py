"""A cluster comes up, goes down and survives accidents without leaving anything behind.

Shown here with the smallest profile; `tests/e2e/full` does the same with real nodes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cluster import Kubectl
from tools.cluster import processes
from tools.cluster.down import down, leftovers
from tools.cluster.spec import Spec, load
from tools.cluster.up import up, why_unhealthy

NAME = "test-accident"
WANTED = Spec(name=NAME, profile="api")


@pytest.fixture(scope="module", autouse=True)
def _taken_down(api_server: Spec) -> Iterator[None]:
    """Beside the shared API server, whose being up also means that everything is built."""
    yield
    down(NAME)


@pytest.fixture
def absent() -> None:
    """For what begins with no such cluster; the others take the one that is there."""
    down(NAME)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tools.cluster", *arguments, "--name", NAME]


@pytest.mark.usefixtures("absent")
@pytest.mark.parametrize("seconds", [0.4, 0.8, 1.6])
def test_nothing_is_left_of_an_up_that_was_killed(seconds: float) -> None:
    with subprocess.Popen(_command("up", "--profile", "api"), stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds)  # the moment of its death, early, in the middle and late
        process.kill()
    spec = load(NAME)
    subprocess.run(_command("down"), check=True, stderr=subprocess.DEVNULL)
    assert load(NAME) is None
    if spec:
        assert leftovers(spec) == []
        assert not spec.state.exists()


@pytest.mark.usefixtures("absent")
def test_two_at_once_make_one_cluster() -> None:
    first, second = (
        subprocess.Popen(_command("up", "--profile", "api"), stderr=subprocess.DEVNULL)
        for _ in range(2)
    )
    assert (first.wait(240), second.wait(240)) == (0, 0)
    spec = load(NAME)
    assert spec
    assert len(processes.marked(spec.state)) == len(processes.recorded(spec.state)) == 3


def test_up_over_a_whole_cluster_changes_nothing() -> None:
    spec = up(WANTED)
    before = processes.recorded(spec.state)
    assert processes.recorded(up(WANTED).state) == before


def test_clusters_side_by_side_are_apart(api_server: Spec) -> None:
    other = up(WANTED)
    Kubectl(other)("create", "configmap", "mine")
    assert other.slot != api_server.slot
    assert Kubectl(api_server).attempt("get", "configmap", "mine").returncode


def test_up_over_a_cluster_that_lost_a_process_starts_afresh() -> None:
    spec = up(WANTED)
    Kubectl(spec)("create", "configmap", "old")
    processes.end([processes.recorded(spec.state)["apiserver"]])
    assert why_unhealthy(spec) == "apiserver is dead"
    again = up(WANTED)
    assert not why_unhealthy(again)
    assert Kubectl(again).attempt("get", "configmap", "old").returncode
