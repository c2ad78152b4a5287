"""What a job needs of the machine's files, checked before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, MPIJobSpec, ReplicaSpec
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute import preflight
from mpi_trainer.local.execute.settings import current_settings
from mpi_trainer.local.pods.environment import Materials

CLAIM = {"persistentVolumeClaim": {"claimName": "data"}}


def check(
    volume: dict[str, Any] | None, claims: dict[str, str] | None = None, **container: Any
) -> None:
    mounts = [{"name": "v", "mountPath": "/data"}]
    main = {"name": "mpi", "volumeMounts": mounts if volume else [], **container}
    spec = {"containers": [main], "volumes": [{"name": "v", **volume}] if volume else []}
    replica = ReplicaSpec(replicas=1, template=PodTemplate.of({"spec": spec}))
    job = MPIJob(spec=MPIJobSpec(mpi_replica_specs={LAUNCHER: replica, WORKER: replica}))
    preflight.check(job, Materials(), claims or {})


def fits(workers: int, path: str) -> None:
    main = {"name": "mpi", "volumeMounts": [{"name": "v", "mountPath": path}]}
    spec = {"containers": [main], "volumes": [{"name": "v", "emptyDir": {}}]}
    replica = ReplicaSpec(replicas=workers, template=PodTemplate.of({"spec": spec}))
    preflight.check_fits(MPIJob(spec=MPIJobSpec(mpi_replica_specs={WORKER: replica})))


def test_a_job_with_more_workers_than_a_machine_runs_is_refused() -> None:
    fits(preflight.MOST_WORKERS, "/data")
    with pytest.raises(LocalError, match="the job has 5000 workers, and this machine runs at most"):
        fits(5000, "/data")


@pytest.mark.parametrize("path", ["/", "/etc", "/etc/", "/usr", "/data/../etc"])
def test_a_volume_over_the_system_is_refused_with_another_place(path: str) -> None:
    """L-5: `--mount .:/etc`."""
    with pytest.raises(LocalError, match=f"mountPath {path}: a volume there would hide") as caught:
        fits(1, path)
    assert "such as /data" in caught.value.hint
    fits(1, "/etc/ours")


def test_a_missing_host_path_is_told_with_its_volume_and_remedy(tmp_path: Path) -> None:
    missing = tmp_path / "no"
    with pytest.raises(LocalError, match=f"volume v: this machine has no {missing}") as caught:
        check({"hostPath": {"path": str(missing)}})
    assert f"mkdir -p {missing}" in caught.value.hint
    assert not missing.exists()


def test_claims_and_folders_in_them_are_made(tmp_path: Path) -> None:
    folder = tmp_path / "claims/data"
    mounts = [{"name": "v", "mountPath": "/data", "subPath": "run/1"}]
    check(CLAIM, {"data": str(folder)}, volumeMounts=mounts)
    assert (folder / "run/1").is_dir()


def test_a_claim_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalError, match="which stands for a claim"):
        check(CLAIM, {"data": str(tmp_path / "file/below")})


def test_a_working_directory_of_the_image_is_missed() -> None:
    with pytest.raises(LocalError, match=r"workingDir of the Launcher: .* no directory /app/no"):
        check(None, workingDir="/app/no")


@pytest.mark.parametrize("path", ["/data", "/data/below"])
def test_a_working_directory_in_a_volume_is_left_to_the_pod(path: str) -> None:
    check({"emptyDir": {}}, workingDir=path)


def test_a_working_directory_that_exists_is_fine(tmp_path: Path) -> None:
    check(None, workingDir=str(tmp_path))


@pytest.mark.parametrize("long", ["nope " + "x" * 300, "x" * 300 + ".py", "y" * 5000, "n/" * 3000])
def test_a_command_in_quotes_that_is_longer_than_any_name_is_no_program(long: str) -> None:
    with pytest.raises(LocalError, match="not found"):
        preflight.check_command((long,), current_settings())
    script = f"{long}.py"
    with pytest.raises(LocalError, match="no file"):
        preflight.check_command(("python3", script), current_settings())
