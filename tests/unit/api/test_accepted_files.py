"""Every file in `accepted/` runs on the public operator, so it is accepted here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import load

FOLDER = Path(__file__).parent / "accepted"


def read(name: str) -> load.JobFile:
    return load.jobs((FOLDER / name).read_text(), name)


def job(name: str) -> MPIJob:
    [found] = read(name).jobs
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.stem)
def test_manifest_that_runs_upstream_is_accepted(path: Path) -> None:
    """API-1."""
    assert len(load.jobs(path.read_text(), path.name).jobs) == 1


def test_pi_is_read_as_it_was_written() -> None:
    pi = job("pi.yaml")
    assert (pi.name, pi.workers, pi.slots) == ("pi", 2, 1)
    assert pi.spec.ssh_auth_mount_path == "/home/mpiuser/.ssh"
    assert pi.spec.run_policy.ttl_seconds_after_finished == 60
    [launcher] = pi.launcher.template.view.spec.containers
    assert launcher.args == ("-n", "2", "/home/mpiuser/pi")
    assert pi.launcher.template.content["spec"]["containers"][0]["securityContext"] == {
        "runAsUser": 1000
    }


def test_aliased_template_serves_both_roles() -> None:
    intel = job("intel.yaml")
    assert intel.launcher.template == intel.worker.template


def test_merged_container_keeps_its_own_name() -> None:
    [worker] = job("merged.yaml").worker.template.view.spec.containers
    assert (worker.name, worker.image) == ("worker", "example.com/train:1")
    assert worker.env[0].name == "NCCL_DEBUG"


def test_null_counts_as_not_set() -> None:
    [launcher] = job("mpich.yaml").launcher.template.view.spec.containers
    assert launcher.env == ()


def test_yes_is_true_as_for_kubectl() -> None:
    assert job("kueue.yaml").spec.run_policy.suspend is True


def test_octal_file_modes_are_octal() -> None:
    code = job("volumes.yaml").launcher.template.view.spec.volumes[0].config_map
    assert code is not None
    assert (code.default_mode, code.items[0].mode) == (0o755, 0o444)


def test_attachments_come_with_their_content() -> None:
    found = read("volumes.yaml")
    assert found.config_maps[0].files == {"train.py": b'print("hello")\n'}
    assert found.secrets[0].files == {"key": b"hunter2", "region": b"eu-1"}


def test_job_without_ranks_is_warned_about() -> None:
    [warning] = read("no-worker.yaml").warnings
    assert "no pod is left to run ranks" in str(warning)
    assert warning.position is not None


def test_status_of_the_api_server_is_read() -> None:
    done = job("from-the-api-server.yaml")
    assert done.status.conditions[0].type == "Created"
    assert done.status.replica_statuses["Launcher"].succeeded == 1
    assert done.metadata.creation_timestamp is not None
