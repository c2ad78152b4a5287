"""What a job on real nodes uses, where there is no metrics API: its pods are asked (AC-10).

`full/test_metrics_server.py` has the same with metrics-server.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Callable

import pytest

from openshift_ai_sdk.training import MPIJobClient, connect
from tests.api.odh import Odh
from tests.cluster import Kubectl
from tests.e2e.operator import mpijob, submit
from tests.pages import shell_blocks

MEBIBYTE = 1 << 20
# Each rank holds 100 MiB and computes until it is let go.
BUSY = (
    "import os, pathlib; held = bytearray(os.urandom(1 << 20)) * 100\n"
    "while not pathlib.Path('/tmp/go').exists(): sum(range(100000))"
)

pytestmark = pytest.mark.timeout(400, func_only=True)


def test_pods_tell_what_they_use_and_their_peaks_stay_known(
    restricted_home: Kubectl, image: Callable[[str], str]
) -> None:
    command = ["mpirun", "--bind-to", "none", "-n", "2", "python3", "-c", BUSY]
    job = submit(restricted_home, mpijob("train", image("mpi-openmpi"), command, slots=1))
    job.until("Running")
    odh = Odh(restricted_home.spec.kubeconfig, restricted_home.namespace)

    def used() -> dict[str, dict[str, float]]:
        found = odh.json("top", "train")
        assert any("no metrics API" in note for note in found["notes"])
        return {item["pod"]: item for item in found["items"]}

    for _ in range(20):
        pods = used()
        if all(_busy(pods[f"train-worker-{n}"]) for n in range(2)):
            break
    else:
        pytest.fail(f"they are not busy: {pods}")
    _type_what_the_page_says(odh)
    (launcher,) = (pod for pod in pods if "launcher" in pod)
    assert pods[launcher]["memoryBytes"] < 100 * MEBIBYTE
    backend = connect(kubeconfig=odh.kubeconfig, namespace=odh.namespace)
    metrics = MPIJobClient(backend=backend).metrics("train")
    assert metrics.memory_bytes is not None and metrics.memory_bytes > 200 * MEBIBYTE
    assert metrics.cpus is not None and metrics.cpus > 0.05
    assert metrics.source == "the pods' control groups"

    job.let_go()
    job.until("Succeeded")
    peaks = {item["pod"]: item["peakMemoryBytes"] for item in odh.json("top", "train")["items"]}
    assert set(peaks) == {"train-worker-0", "train-worker-1"}
    assert min(peaks.values()) > 100 * MEBIBYTE


def _busy(item: dict[str, float]) -> bool:
    """A busy machine gives each rank only a part of a core."""
    return item["cpus"] > 0.02 and item["memoryBytes"] > 100 * MEBIBYTE


def _type_what_the_page_says(odh: Odh) -> None:
    (block,) = shell_blocks("docs/cluster-quickstart.md", "What it uses")
    for line in block.splitlines():
        _, *words = shlex.split(line, comments=True)
        if "-w" not in words:
            assert "train-worker-1" in odh(*words).stdout
            continue
        with subprocess.Popen(
            odh.command(*words), env=odh.environment(), stdout=subprocess.PIPE, text=True
        ) as watching:
            assert watching.stdout is not None
            assert any("train-worker-1" in row for row in watching.stdout)
            watching.send_signal(signal.SIGINT)
