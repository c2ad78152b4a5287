"""A layout as people read it."""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.local.execute.prepare import description
from mpi_trainer.sdk.job.new import HostMount, NewJob


def described(**changes: Any) -> dict[str, Any]:
    mounts = (HostMount("/home/me", "/data"),)
    job = NewJob(
        "train", ("python", "train.py"), slots=2, env=(("A", "1"),), mounts=mounts, **changes
    )
    return description(layout(mpijob_with_defaults(job.mpijob())))


def test_variables_are_a_mapping_with_the_jobs_own_first() -> None:
    env = described()["launcher"]["env"]
    assert next(iter(env.items())) == ("A", "1")
    assert env["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"


def test_files_are_shown_by_path_and_mounts_by_place() -> None:
    launcher = described()["launcher"]
    assert launcher["files"]["/etc/mpi/hostfile"].count("slots=2\n") == 2
    assert launcher["mounts"] == {"/data": "mount-0"}


def test_templates_are_left_out_and_so_is_what_is_empty() -> None:
    shown = described()
    assert shown["ranks"] == 4
    assert [w["name"] for w in shown["workers"]] == ["train-worker-0", "train-worker-1"]
    for pod in (shown["launcher"], *shown["workers"]):
        assert "template" not in pod
        assert all(pod.values())


def test_a_value_from_a_secret_is_not_shown() -> None:
    job = mpijob_with_defaults(NewJob("train", ("true",)).mpijob())
    launcher = job.launcher
    content = launcher.template.content
    ref = {"secretKeyRef": {"name": "s", "key": "k"}}
    content["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "valueFrom": ref}]
    assert "TOKEN" in str(PodTemplate.of(content).view)
    replicas = {
        **(job.spec.mpi_replica_specs or {}),
        "Launcher": msgspec.structs.replace(launcher, template=PodTemplate.of(content)),
    }
    spec = msgspec.structs.replace(job.spec, mpi_replica_specs=replicas)
    shown = description(layout(msgspec.structs.replace(job, spec=spec)))
    assert "TOKEN" not in shown["launcher"]["env"]
