"""`odh migrate`: files in, files out, nothing where something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mpi_trainer.cli.app import odh
from mpi_trainer.cli.main import USAGE
from mpi_trainer.local.errors import LocalError
from tests.unit.migrate.cases import base
from tests.unit.migrate.test_clouds import AZURE, REQUEST
from tests.unit.migrate.test_legacy import V1


def run(*words: str, data: str | None = None) -> Result:
    command = ["--backend", "local", "migrate", *words]
    return CliRunner().invoke(
        odh, command, input=data, catch_exceptions=False, standalone_mode=False
    )


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "mpijob.yaml"
    path.write_text(yaml.safe_dump(base()))
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.yaml"
    bad = base(slotsPerWorker=0)
    bad["metadata"]["name"] = "broken"
    path.write_text(yaml.safe_dump(bad))
    return path


def test_objects_go_to_stdout_and_the_report_to_stderr(job: Path) -> None:
    """MIG-1."""
    ended = run("-f", str(job))
    assert ended.return_value == 0
    made = list(yaml.safe_load_all(ended.stdout))
    assert [one["kind"] for one in made] == ["TrainingRuntime", "TrainJob"]
    assert "becomes TrainingRuntime and TrainJob" in ended.stderr
    assert "to do: " in ended.stderr


def test_what_comes_out_is_a_sound_job_file(job: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(run("-f", str(job)).stdout)
    checked = CliRunner().invoke(odh, ["validate", "-f", str(path)], standalone_mode=False)
    assert checked.return_value == 0, checked.output


def test_json_has_objects_fields_and_what_was_passed_over() -> None:
    """MIG-1."""
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    ended = run("-f", "-", "-o", "json", "--check", data=yaml.safe_dump_all([other, base()]))
    data = json.loads(ended.stdout)
    (made,) = data["jobs"]
    assert data["passedOver"] == {"ConfigMap": 1}
    assert [one["kind"] for one in made["objects"]] == ["TrainingRuntime", "TrainJob"]
    assert {one["result"] for one in made["fields"]} == {"carried", "changed"}
    assert all(one["known"] for one in made["check"]["differences"])
    assert made["check"]["asked"] is False


def test_a_folder_is_converted_into_files(tmp_path: Path, job: Path) -> None:
    inner = tmp_path / "more"
    inner.mkdir()
    (inner / "v1.yml").write_text(yaml.safe_dump(V1))
    (inner / "sage.json").write_text(json.dumps(REQUEST))
    (inner / "azure.yaml").write_text(yaml.safe_dump(AZURE))
    (inner / "empty.yaml").write_text("---\n# nothing\n")
    (inner / "notes.txt").write_text("{{")
    out = tmp_path / "out"
    ended = run("-f", str(tmp_path), "--output-dir", str(out))
    assert ended.return_value == 0, ended.stderr
    assert ended.stdout == ""
    names = ["bert-large.yaml", "mnist-horovod.yaml", "team.mnist.yaml", "train.yaml"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert job.exists()


def test_files_are_not_replaced_unless_that_is_asked_for(job: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("-f", str(job), "--output-dir", str(out))
    (out / "train.yaml").write_text("mine")
    with pytest.raises(LocalError, match="there already"):
        run("-f", str(job), "--output-dir", str(out))
    assert (out / "train.yaml").read_text() == "mine"
    assert run("-f", str(job), "--output-dir", str(out), "--overwrite").return_value == 0
    assert "TrainJob" in (out / "train.yaml").read_text()
    assert [path.name for path in out.iterdir()] == ["train.yaml"]


def test_two_jobs_that_would_have_one_file_are_told(job: Path, tmp_path: Path) -> None:
    generated = base()
    generated["metadata"] = {"generateName": "train-"}
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(generated))
    out = tmp_path / "out"
    with pytest.raises(LocalError, match="two jobs"):
        run("-f", str(job), "-f", str(tmp_path / "more.yaml"), "--output-dir", str(out))
    assert not out.exists()


def test_one_broken_job_keeps_all_from_being_written(
    job: Path, broken: Path, tmp_path: Path
) -> None:
    """MIG-1: all or nothing, and the error has file, field and remedy."""
    out = tmp_path / "out"
    ended = run("-f", str(job), "-f", str(broken), "--output-dir", str(out))
    assert ended.return_value == USAGE
    assert not out.exists()
    assert f"{broken}:" in ended.stderr
    assert "spec.slotsPerWorker" in ended.stderr
    assert "nothing was written" in ended.stderr
    assert run("-f", str(job), "-f", str(broken)).stdout == ""


def test_what_can_be_converted_is_written_where_that_is_asked_for(
    job: Path, broken: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("-f", str(job), "-f", str(broken), "--keep-going", "--output-dir", str(out))
    assert run(*words).return_value == USAGE
    assert [path.name for path in out.iterdir()] == ["train.yaml"]


def test_a_file_that_cannot_be_read_is_told_with_the_others(job: Path, tmp_path: Path) -> None:
    (tmp_path / "chart.yaml").write_text("{{ if }}")
    ended = run("-f", str(tmp_path), "-f", str(tmp_path / "absent.yaml"))
    assert ended.return_value == USAGE
    assert "chart.yaml:1:" in ended.stderr
    assert "cannot read" in ended.stderr
    assert ended.stdout == ""
    assert job.exists()


def test_a_file_without_a_job_is_told() -> None:
    ended = run("-f", "-", data="apiVersion: v1\nkind: Service\n")
    assert ended.return_value == USAGE
    assert "no job to convert" in ended.stderr
    assert "passed over: 1 Service" in ended.stderr


def test_text_of_a_job_does_not_reach_the_terminal_as_commands() -> None:
    bad = {"TrainingJobName": "x\x1b[2J", "RoleArn": "y"}
    ended = run("-f", "-", data=json.dumps(bad))
    assert "\x1b" not in ended.stderr


def test_the_check_shows_that_the_pods_are_the_same(job: Path) -> None:
    """MIG-1."""
    ended = run("-f", str(job), "--check")
    assert "otherwise the pods of both are the same" in ended.stderr
    assert "differs: " not in ended.stderr


def test_a_table_of_machines_is_read(tmp_path: Path) -> None:
    """MIG-2."""
    table = tmp_path / "table.yaml"
    table.write_text("ml.own: {cpu: 10, memory: 20Gi}\n")
    request = REQUEST | {"ResourceConfig": {"InstanceType": "ml.own", "InstanceCount": 2}}
    data = json.dumps(request)
    assert run("-f", "-", data=data).return_value == USAGE
    ended = run("-f", "-", "--instances", str(table), data=data)
    assert "cpu: 9000m" in ended.stdout


@pytest.mark.parametrize("words", [(), ("-f", "x.yaml", "report")])
def test_a_wrong_call_is_told(words: tuple[str, ...]) -> None:
    import click

    with pytest.raises(click.UsageError):
        run(*words)


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_place_without_jobs_has_nothing_to_migrate(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MIG-4."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ended = run("report", "-o", form)
    if form == "json":
        assert json.loads(ended.stdout)["jobs"] == []
    else:
        assert "no jobs" in ended.stderr
