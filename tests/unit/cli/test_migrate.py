"""`odh migrate`: files in, files out, nothing where something is wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
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


def test_nothing_is_said_of_pods_that_were_not_compared() -> None:
    """An MPIJob v1 becomes one of v2beta1, which has no other pods to compare with."""
    said = run("-f", "-", "--check", data=yaml.safe_dump(V1)).stderr
    assert "pods of both are the same" not in said
    assert (
        "pods of both are the same" in run("-f", "-", "--check", data=yaml.safe_dump(base())).stderr
    )


def test_an_mpijob_of_another_group_is_told_as_such() -> None:
    other = {**base(), "apiVersion": "batch.tensorstack.dev/v1beta1"}
    with pytest.raises(LocalError) as refused:
        run("-f", "-", data=yaml.safe_dump(other))
    assert refused.value.hint == (
        "An MPIJob of another API group than kubeflow.org is not converted."
    )


def test_what_a_check_finds_of_two_jobs_of_one_name_is_told_of_each() -> None:
    """A refusal of the one must not go under what is said of the other."""
    old = {**V1, "metadata": {"name": base()["metadata"]["name"]}}
    for both in ([old, base()], [base(), old]):
        ended = run("-f", "-", "-o", "json", "--check", data=yaml.safe_dump_all(both))
        found = {one["apiVersion"]: one["check"] for one in json.loads(ended.stdout)["jobs"]}
        assert found["kubeflow.org/v1"]["differences"] == []
        assert found["kubeflow.org/v2beta1"]["differences"] != []


@pytest.mark.parametrize("verb", ["migrate", "validate"])
def test_a_file_is_read_where_no_cluster_can_be(
    verb: str, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A KUBECONFIG that names nothing, as in a CI job, says nothing of files."""
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    ended = CliRunner().invoke(odh, [verb, "-f", str(job)], standalone_mode=False)
    assert (ended.exception, ended.return_value) == (None, 0)


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


def test_two_jobs_that_would_have_one_file_are_told(tmp_path: Path) -> None:
    for number, name in enumerate(({"name": "train"}, {"generateName": "train-"})):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(V1 | {"metadata": name}))
    out = tmp_path / "out"
    with pytest.raises(LocalError, match="two jobs"):
        run("-f", str(tmp_path), "--output-dir", str(out))
    assert not out.exists()


@pytest.mark.parametrize("second", [{"name": "train"}, {"generateName": "train-"}])
def test_two_jobs_whose_runtimes_would_be_one_are_told_with_their_places(
    second: dict[str, str], job: Path, tmp_path: Path
) -> None:
    """Applied one after the other, the second would change the first one's pods."""
    more = tmp_path / "more.yaml"
    more.write_text(yaml.safe_dump(base() | {"metadata": second}))
    ended = run("-f", str(job), "-f", str(more))
    assert ended.return_value == USAGE and ended.stdout == ""
    (told,) = (one for one in ended.stderr.splitlines() if "Duplicate" in one)
    assert f"{more}:" in told and f"at {job}:" in told


def test_jobs_of_one_name_in_two_namespaces_have_files_of_their_own(tmp_path: Path) -> None:
    two = [base(), base()]
    for one, where in zip(two, ("a", "b"), strict=True):
        one["metadata"]["namespace"] = where
    out = tmp_path / "out"
    ended = run("-f", "-", "--output-dir", str(out), data=yaml.safe_dump_all(two))
    assert ended.return_value == 0, ended.stderr
    assert sorted(path.name for path in out.iterdir()) == ["a.train.yaml", "b.train.yaml"]


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


def test_a_file_without_a_job_is_told_with_what_would_be_one(tmp_path: Path, job: Path) -> None:
    service = tmp_path / "service.yaml"
    service.write_text("apiVersion: v1\nkind: Service\n")
    slip = tmp_path / "slip.yaml"
    slip.write_text(yaml.safe_dump(base() | {"kind": "MPIjob"}))
    made = tmp_path / "made.yaml"
    made.write_text(run("-f", str(job)).stdout)
    for words, hint in (
        (("-f", str(service)), "SageMaker's CreateTrainingJob"),
        (("-f", str(job), "--to", "mpijob"), "is what `--to mpijob` makes"),
        (("-f", str(made)), "needs no conversion"),
        (("-f", str(slip)), "Write `kind: MPIJob`"),
    ):
        with pytest.raises(LocalError, match="no job to convert") as told:
            run(*words)
        assert hint in told.value.hint and words[1] in told.value.problem


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


@pytest.mark.parametrize("words", [(), ("-f", "x.yaml", "report"), ("-f", "")])
def test_a_wrong_call_is_told(words: tuple[str, ...]) -> None:
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


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("job.yaml",), "odh migrate -f job.yaml"),
        (("-",), "odh migrate -f -"),
        (("-f", "a.yaml", "b.yaml", "c.yaml"), "its own `-f`"),
    ],
)
def test_files_without_an_option_are_told_how_to_be_given(
    words: tuple[str, ...], hint: str
) -> None:
    """As people type it, and as a shell writes `*.yaml`."""
    with pytest.raises(LocalError, match="no `-f` stands before") as told:
        run(*words)
    assert hint in told.value.hint


def test_a_kind_may_be_written_as_kubernetes_has_it(job: Path) -> None:
    assert run("-f", str(job), "--to", "TrainJob").return_value == 0


def test_one_file_that_is_given_twice_is_read_once(job: Path, tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to(job)
    ended = run("-f", str(job), "-f", str(tmp_path), "-f", f"{tmp_path}/../{tmp_path.name}")
    assert ended.return_value == 0, ended.stderr
    ended = run("-f", "-", "-f", "-", data=job.read_text())
    assert ended.return_value == 0, ended.stderr


def test_what_was_made_inside_a_folder_is_no_source_of_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "v1.yaml").write_text(yaml.safe_dump(V1))
    words = ("-f", str(tmp_path), "--output-dir", str(tmp_path / "new"), "--overwrite")
    assert [run(*words).return_value for _ in range(2)] == [0, 0]
    assert "v2beta1" in (tmp_path / "new" / "team.mnist.yaml").read_text()


def test_of_a_folder_only_files_that_end_are_read_and_none_of_other_programs(
    job: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    flows = tmp_path / ".github" / "workflows"
    flows.mkdir(parents=True)
    (flows / "ci.yml").write_text("on: push\n")
    assert run("-f", str(tmp_path)).return_value == 0
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    ended = run("-f", str(tmp_path))
    assert ended.return_value == USAGE and "cannot read" in ended.stderr


def test_a_folder_that_cannot_be_listed_is_not_passed_over(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    scan = os.scandir

    def refusing(path: str) -> Any:
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(LocalError, match=r"cannot list .*closed: Permission denied"):
        run("-f", str(tmp_path))


def test_names_of_files_that_are_no_text_are_shown_and_obeyed_by_no_terminal(
    tmp_path: Path,
) -> None:
    for name in (b"\xff.yaml", b"\x1b[2J.yaml"):
        path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
        Path(path).write_text("{{")
        plain = run("-f", path)
        assert plain.return_value == USAGE and "\x1b" not in plain.stderr
        (told,) = json.loads(run("-f", path, "-o", "json").stdout)["unread"]
        assert "\\x" in told
        assert "cannot read" in run("-f", f"{path}.absent").stderr


def test_what_stands_in_the_way_of_the_files_is_told(job: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "train.yaml").mkdir(parents=True)
    for folder, words in ((out, "train.yaml is a directory"), (job, "is not a directory")):
        with pytest.raises(LocalError, match=words) as told:
            run("-f", str(job), "--output-dir", str(folder), "--overwrite")
        assert "--output-dir" in told.value.hint
    assert [one.name for one in out.iterdir()] == ["train.yaml"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (OSError(28, "No space left on device"), "cannot write to .*: No space left"),
        (KeyboardInterrupt(), None),
    ],
)
def test_a_full_disk_or_an_interrupt_leaves_what_was_there(
    fault: BaseException,
    told: str | None,
    job: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    run("-f", str(job), "--output-dir", str(out))
    (out / "train.yaml").write_text("mine")

    def half(path: Path, *_: object) -> None:
        path.write_bytes(b"half")
        raise fault

    monkeypatch.setattr(Path, "write_text", half)
    expected = LocalError if told else (KeyboardInterrupt, click.Abort)
    with pytest.raises(expected, match=told):
        run("-f", str(job), "--output-dir", str(out), "--overwrite")
    assert [(one.name, one.read_bytes()) for one in out.iterdir()] == [("train.yaml", b"mine")]


def test_a_link_in_the_way_is_replaced_and_what_it_points_to_is_not(
    job: Path, tmp_path: Path
) -> None:
    precious, out = tmp_path / "precious", tmp_path / "out"
    out.mkdir()
    for there in (False, True):
        if there:
            precious.write_text("mine")
        (out / "train.yaml").unlink(missing_ok=True)
        (out / "train.yaml").symlink_to(precious)
        with pytest.raises(LocalError, match="there already"):
            run("-f", str(job), "--output-dir", str(out))
        run("-f", str(job), "--output-dir", str(out), "--overwrite")
        assert precious.exists() is there and not (out / "train.yaml").is_symlink()
    assert precious.read_text() == "mine"


def test_json_has_no_objects_where_nothing_is_written(job: Path, broken: Path) -> None:
    """MIG-1: whoever pipes them on does not see the exit code."""
    words = ("-f", str(job), "-f", str(broken), "-o", "json")
    assert [one["objects"] for one in json.loads(run(*words).stdout)["jobs"]] == [[], []]
    kept = json.loads(run(*words, "--keep-going").stdout)["jobs"]
    assert [len(one["objects"]) for one in kept] == [2, 0]


@pytest.mark.parametrize(
    "odd",
    [
        yaml.safe_dump(AZURE) + "? " + "x" * 50_000 + "\n: 1\n",
        json.dumps(base() | {"metadata": {"name": "x" * 50_000}}),
        json.dumps({"apiVersion": "v1", "kind": "x" * 50_000}),
        json.dumps(AZURE | {"inputs": {"n\x1b[2J" + "x" * 900: 1}, "command": "train"}),
    ],
)
def test_a_name_of_many_characters_does_not_make_the_report_large(odd: str, job: Path) -> None:
    """150 kB with one such field and 2000 others became 100 MB."""
    ended = run("-f", str(job), "-f", "-", data=odd)
    assert len(ended.stderr) < 20_000 and "\x1b" not in ended.stderr


def test_a_list_of_jobs_is_read_as_the_api_server_writes_it() -> None:
    data = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJobList", "items": [base()]}
    ended = run("-f", "-", data=json.dumps(data))
    assert ended.return_value == 0 and "kind: TrainJob" in ended.stdout


def test_a_job_without_a_version_is_called_that() -> None:
    bare = {key: value for key, value in base().items() if key != "apiVersion"}
    assert "MPIJob train (no apiVersion)" in run("-f", "-", data=json.dumps(bare)).stderr
