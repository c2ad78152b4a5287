"""The SDK on a real cluster: the local backend's own tests, and what only a cluster can show.

The rest of `tests/lifecycle.py` runs here by hand: `tests/e2e/full/test_sdk.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openshift_ai_sdk.training import MPIJob, NotShippable, TrainingClient, VolumeNotFound
from tests import sdkexample
from tests.cluster import Kubectl
from tests.e2e.notebook import place
from tests.e2e.test_manifests import GPU, gpus
from tests.lifecycle import (
    PATIENCE,
    test_failure_is_told_at_once_with_rank_and_reason,
    test_job_deleted_while_somebody_follows_ends_the_following,
    test_life_of_a_job,
)

__all__ = [
    "gpus",
    "place",
    "test_failure_is_told_at_once_with_rank_and_reason",
    "test_job_deleted_while_somebody_follows_ends_the_following",
    "test_life_of_a_job",
]

pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.usefixtures("place")]


@pytest.fixture
def claim(place: Kubectl, tmp_path: Path) -> Iterator[str]:
    """A PersistentVolumeClaim with numbers, bound to a folder that all nodes see."""
    folder = sdkexample.write_numbers(tmp_path / "data")
    for parent in (tmp_path, *tmp_path.parents[:-2]):
        parent.chmod(parent.stat().st_mode | 0o005)
    volume = f"{place.namespace}-data"
    size = {"storage": "1Mi"}
    place.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "capacity": size,
                "accessModes": ["ReadWriteMany"],
                "hostPath": {"path": str(folder)},
                "claimRef": {"namespace": place.namespace, "name": "training-data"},
                "storageClassName": "",
            },
        }
    )
    place.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "training-data", "namespace": place.namespace},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": size},
                "storageClassName": "",
                "volumeName": volume,
            },
        }
    )
    yield volume
    place("delete", "persistentvolume", volume, "--wait=false")


def test_program_of_the_specification_runs_as_it_is(
    place: Kubectl, gpus: int, claim: str, image: Callable[[str], str]
) -> None:
    """Issue: `examples/sdk/job.py` with a GPU for each worker, by whoever has `mpijob-user`."""
    assert gpus >= 2
    words = ("--workers", "2", "--cpu", "0.25", "--memory", "256Mi", "--gpu", "1")
    ended = sdkexample.run_example(*words, "--image", image("mpi-openmpi"))
    sdkexample.demand_success(ended, workers=2)
    asked = place.get("mpijob", "example")["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert asked["containers"][0]["resources"]["limits"][GPU] == 1
    again = sdkexample.run_example(*words, "--image", image("mpi-openmpi"))
    assert f"job {place.namespace}/example already exists" in again.stderr


def test_volume_that_the_namespace_does_not_have_is_named_before_anything_is_made(
    place: Kubectl, claim: str
) -> None:
    job = MPIJob("lost", volume_mounts=[{"name": "training-dat", "mountPath": "/data"}])
    with pytest.raises(VolumeNotFound, match="volume training-dat not found") as caught:
        job.create()
    assert place.namespace in str(caught.value) and "training-data" in caught.value.hint
    assert TrainingClient().list_jobs() == ()


def test_code_travels_with_the_job_and_goes_with_it(place: Kubectl, tmp_path: Path) -> None:
    """Modules of one's own, on an unchanged image, without a shell between; content-addressed."""
    (tmp_path / "mine.py").write_text("ANSWER = '$HOME `id` 42'\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "big.bin").write_bytes(b"x" * 5_000_000)
    (tmp_path / ".odhignore").write_text("data/\n")

    def work() -> None:
        from pathlib import Path

        import mine  # type: ignore[import-not-found]

        print(f"the answer is {mine.ANSWER} {Path('data').exists()}", flush=True)

    job = MPIJob.from_function(work, workdir=str(tmp_path), name="shipped").create()
    job.wait(timeout=2 * PATIENCE)
    said = ["the answer is $HOME `id` 42 False"] * 2
    assert [line.text for line in job.logs() if line.rank is not None] == said
    job.restart()
    job.wait(timeout=2 * PATIENCE)
    assert [line.text for line in job.logs() if line.rank is not None] == said
    (stored,) = _code(place)
    assert stored.startswith("shipped-code-")
    job.delete()
    assert not _code(place)


def _code(place: Kubectl) -> list[str]:
    names = place("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}").split()
    return [name for name in names if "-code-" in name]


def test_folder_that_is_too_large_creates_nothing(place: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(os.urandom(1 << 20))
    job = MPIJob("large", command=["true"], workdir=str(tmp_path))
    with pytest.raises(NotShippable, match=r"weights.bin \(1.0 MiB\)") as caught:
        job.create()
    assert ".odhignore" in caught.value.hint
    assert TrainingClient().list_jobs() == ()
