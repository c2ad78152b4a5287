"""TrainJob files by `odh validate`: alone, with a runtime file beside them, with a shipped one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.cli.verbs.validate import command
from tests.unit.api.trainers import runtime, train_job


def written(folder: Path, name: str, value: dict[str, Any]) -> str:
    path = folder / name
    path.write_text(json.dumps(value))
    return str(path)


def validated(*paths: str) -> int:
    arguments = [part for path in paths for part in ("-f", path)]
    code: int = command.main(arguments, standalone_mode=False)
    return code


LONG = (("metadata", "name"), "x" * 50)


def test_job_is_judged_with_the_runtime_of_another_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = written(tmp_path, "job.yaml", train_job(LONG))
    assert validated(job, written(tmp_path, "runtime.yaml", runtime())) == 2
    assert "use at most 44 characters" in capsys.readouterr().err


def test_job_is_judged_with_a_shipped_runtime(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ref = (("spec", "runtimeRef", "name"), "mpi-openmpi-cpu")
    assert validated(written(tmp_path, "job.yaml", train_job(LONG, ref))) == 2
    assert "use at most 44 characters" in capsys.readouterr().err
    assert validated(written(tmp_path, "job.yaml", train_job(ref))) == 0
    assert "valid (train)" in capsys.readouterr().out


def test_job_without_its_runtime_is_judged_alone_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ref = (("spec", "runtimeRef", "name"), "elsewhere")
    assert validated(written(tmp_path, "job.yaml", train_job(LONG, ref))) == 0
    assert "its runtime elsewhere is not here" in capsys.readouterr().err


def test_runtime_file_is_judged_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = runtime((("spec", "mlPolicy", "numNodes"), 0))
    assert validated(written(tmp_path, "runtime.yaml", bad)) == 2
    assert "spec.mlPolicy.numNodes: Invalid value: 0: must be at least 1" in capsys.readouterr().err


def test_misspelt_field_of_a_pod_template_is_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A template may have fields that we do not know, so it is no error."""
    pod = {"nodeSelectors": {}, "containers": [{"name": "m", "image": "x", "command": ["true"]}]}
    replicas = {"Launcher": {"template": {"spec": pod}}}
    job = {"kind": "MPIJob", "apiVersion": "kubeflow.org/v2beta1", "metadata": {"name": "a"}}
    path = written(tmp_path, "job.yaml", {**job, "spec": {"mpiReplicaSpecs": replicas}})
    assert validated(path) == 0
    said = capsys.readouterr()
    assert "Launcher.template.spec.nodeSelectors: Unknown field" in said.err
    assert "did you mean `nodeSelector`?" in said.err
    assert "valid (a)" in said.out
