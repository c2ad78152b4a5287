"""What pods use: rates from two moments, a container's own figures, pages of a DCGM exporter."""

from __future__ import annotations

import pytest

from mpi_trainer.sdk.backends.backend import Key, PodInfo
from mpi_trainer.sdk.backends.cluster.exec import usage_from
from mpi_trainer.sdk.backends.cluster.gpu_metrics import parse
from mpi_trainer.sdk.backends.usage import (
    MEBIBYTE,
    GpuUsage,
    JobUsage,
    PodUsage,
    between,
    with_gpus,
)

KEY = Key("team", "train")
PAGE = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H200",\
Hostname="node1",container="mpi",namespace="team",pod="train-worker-0"} 87
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="NVIDIA H200",namespace="team",\
pod="train-worker-0"} 1024
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",modelName="NVIDIA H200",namespace="team",\
pod="train-worker-0"} 3072
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-idle",modelName="NVIDIA H200"} 0
go_goroutines 12
"""


def _pod(name: str, cpu: float | None, memory: int | None = 7) -> PodInfo:
    return PodInfo(name, "worker", 0, "Running", True, cpu_seconds=cpu, memory_bytes=memory)


def test_busy_cores_are_cpu_time_between_two_moments() -> None:
    first = [_pod("a", 1.0), _pod("restarted", 5.0), _pod("gone", 1.0)]
    second = [_pod("a", 2.0), _pod("restarted", 0.5), _pod("new", 1.0), _pod("ended", None, None)]
    used = between(KEY, first, second, 0.5, "local")
    assert {pod.pod: pod.cpus for pod in used.pods} == {"a": 2.0, "restarted": 0.0, "new": None}


def test_a_container_tells_busy_cores_and_memory_without_droppable_files() -> None:
    said = "clock 100.00\ncpu 5000000000\nclock 102.00\ncpu 8000000000\n"
    assert usage_from(said + "memory 1000\ninactive_file 400\n") == (1.5, 600)
    assert usage_from(said + "memory 1000\ninactive_file 1\ntotal_inactive_file 5000\n") == (1.5, 0)
    assert usage_from(said) == (1.5, None)


@pytest.mark.parametrize(
    "said",
    ["", "sh: not found", "clock 1\ncpu 1", "clock 1\nclock 1\ncpu 1\ncpu 2", "cpu 1e9\nmemory -1"],
)
def test_a_container_that_cannot_tell_gives_no_figure(said: str) -> None:
    assert usage_from(said) == (None, None)


@pytest.mark.parametrize("figure", ["1e305", "nan", "inf", "-1", "1e16"])
def test_a_figure_that_no_gpu_has_is_left_out(figure: str) -> None:
    line = f'DCGM_FI_DEV_FB_USED{{UUID="a",namespace="team",pod="p"}} {figure}'
    busy = 'DCGM_FI_DEV_GPU_UTIL{UUID="a",namespace="team",pod="p"} 5'
    assert parse([f"{line}\n{busy}\n"]) == {("team", "p"): (GpuUsage("a", percent=5.0),)}


def test_gpus_are_those_of_the_pod_that_the_exporter_names() -> None:
    gpu = GpuUsage("GPU-a", "NVIDIA H200", 87.0, 1024 * MEBIBYTE, 4096 * MEBIBYTE)
    assert parse([PAGE]) == {("team", "train-worker-0"): (gpu,)}


def test_labels_that_prometheus_renamed_and_parts_of_a_gpu_are_understood() -> None:
    page = (
        'DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID="GPU-a",GPU_I_ID="3",namespace="monitoring",'
        'pod="dcgm-exporter-x",exported_namespace="team",exported_pod="train-worker-1"} 0.5 1700\n'
    )
    assert parse([page]) == {("team", "train-worker-1"): (GpuUsage("GPU-a/3", percent=50.0),)}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "x", ""])
def test_a_figure_that_is_no_number_is_left_out(value: str) -> None:
    page = f'DCGM_FI_DEV_GPU_UTIL{{UUID="a",namespace="team",pod="p"}} {value}\n'
    assert parse([page]) == {}


def test_a_pod_has_its_own_gpus_and_no_others() -> None:
    gpu = GpuUsage("GPU-a")
    used = JobUsage(KEY, (PodUsage("a", 1.0), PodUsage("b", 1.0)))
    assert [pod.gpus for pod in with_gpus(used, {"b": (gpu,), "c": (gpu,)}).pods] == [(), (gpu,)]
