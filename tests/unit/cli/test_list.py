"""`odh mpijob list` and `get` of this machine's jobs: every state, every form, damaged jobs too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from mpi_trainer.api.kinds.conditions import STATES, Condition
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.cli.app import odh
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.local.execute.settings import current_settings
from mpi_trainer.local.jobs.jobdir import JobDir, JobState
from mpi_trainer.local.paths import jobs_dir
from mpi_trainer.sdk.job.new import NewJob

AGO = datetime.now(UTC) - timedelta(days=3, minutes=30)
PROGRESS = (None, Progress(step=5, total=20, unit="epoch", metrics={"loss": 0.5}), Progress(step=7))


def stored(namespace: str, name: str, state: str, number: int) -> JobDir:
    folder = jobs_dir() / namespace / name
    folder.mkdir(parents=True)
    job = JobDir(folder)
    kinds = ("Created",) if state == "Created" else ("Created", "Running", state)
    conditions = tuple(
        Condition(type=kind, status="True" if kind != "Running" or kind == state else "False",
                  reason=f"Because{kind}", message=f"It is\n{kind}. " * 9)
        for kind in dict.fromkeys(kinds)
    )  # fmt: skip
    made = NewJob(name, ("true",), namespace=namespace).mpijob()
    meta = msgspec.structs.replace(made.metadata, creation_timestamp=AGO)
    job.write_job(msgspec.structs.replace(made, metadata=meta))
    job.write_settings(current_settings())
    job.write_state(
        JobState(
            created=AGO + timedelta(hours=number),
            workers=number,
            slots=2,
            implementation="MPICH",
            status=MPIJobStatus(
                conditions=conditions,
                start_time=AGO if number % 2 else None,
                completion_time=AGO + timedelta(hours=1) if state in STATES[-2:] else None,
            ),
            progress=PROGRESS[number % len(PROGRESS)],
            waits_for="2 cores" if number == 2 else "",
        )
    )
    return job


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[JobDir]]:
    """One job in each state; those that have not ended are held, as by a supervisor."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = [stored("default", f"job-{i}", state, i) for i, state in enumerate(STATES)]
    made.append(stored("other", "elsewhere", "Succeeded", 9))
    held = [job.lock_alive() for job in made]
    yield made
    for descriptor in held:
        assert descriptor is not None
        os.close(descriptor)


def printed(*words: str) -> str:
    ended = CliRunner().invoke(odh, words, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def rows(*words: str) -> list[list[str]]:
    return [line.split() for line in printed(*words).splitlines()[1:]]


@pytest.mark.usefixtures("jobs")
def test_every_state_is_in_the_table_newest_first() -> None:
    assert [row[1] for row in rows("mpijob", "list")] == [*reversed(STATES)]


@pytest.mark.usefixtures("jobs")
def test_a_namespace_or_all_of_them() -> None:
    assert [row[0] for row in rows("mpijob", "list", "-n", "other")] == ["elsewhere"]
    spaces = [row[:2] for row in rows("mpijob", "list", "-A")]
    assert spaces[0] == ["other", "elsewhere"]
    assert len(spaces) == len(STATES) + 1


@pytest.mark.usefixtures("jobs")
def test_progress_and_what_a_job_waits_for_are_shown() -> None:
    assert "25% epoch 5/20" in printed("mpijob", "list")
    wide = {row[0]: " ".join(row) for row in rows("mpijob", "list", "-o", "wide")}
    assert wide["job-2"].endswith("2 cores")
    assert "MPICH" in wide["job-1"]


@pytest.mark.usefixtures("jobs")
def test_both_grammars_print_the_same() -> None:
    assert printed("training", "list", "mpijob") == printed("mpijob", "list")
    assert printed("training", "list", "--namespace", "other") == printed(
        "mpijob", "list", "-n", "other"
    )


@pytest.mark.usefixtures("jobs")
def test_names_and_data_are_those_of_the_table() -> None:
    names = [row[0] for row in rows("mpijob", "list")]
    assert printed("mpijob", "list", "-o", "name").split() == [
        f"mpijob.kubeflow.org/{name}" for name in names
    ]
    items = json.loads(printed("mpijob", "list", "-o", "json"))["items"]
    assert [item["name"] for item in items] == names


def labelled(job: JobDir, **labels: str) -> None:
    stored = job.job()
    meta = msgspec.structs.replace(stored.metadata, labels=labels)
    job.write_job(msgspec.structs.replace(stored, metadata=meta))


def named(*words: str) -> list[str]:
    return [name.rpartition("/")[2] for name in printed(*words, "-o", "name").split()]


@pytest.mark.parametrize("verb", ["mpijob list", "list", "mpijob get", "training list"])
def test_labels_choose_jobs(jobs: list[JobDir], verb: str) -> None:
    labelled(jobs[1], team="a")
    labelled(jobs[2], team="b")
    words = verb.split()
    assert named(*words, "-l", "team=a") == ["job-1"]
    assert named(*words, "--selector", "team in (a,b)") == ["job-2", "job-1"]
    assert len(named(*words, "-l", "team!=a")) == len(STATES) - 1
    none = CliRunner().invoke(odh, [*words, "-l", "team=c"])
    assert (none.exit_code, none.stderr) == (0, "no jobs match in namespace default\n")


def test_a_damaged_job_has_no_labels(jobs: list[JobDir]) -> None:
    labelled(jobs[1], team="a")
    (jobs[0].path / "job.json").write_bytes(b"{")
    assert named("mpijob", "list", "-l", "team") == ["job-1"]
    items = json.loads(printed("mpijob", "list", "-o", "json"))["items"]
    assert {item["name"] for item in items} >= {"job-0", "job-1"}


@pytest.mark.usefixtures("jobs")
def test_lists_are_sorted_smallest_first() -> None:
    by_age = [f"job-{i}" for i in reversed(range(len(STATES)))]
    assert named("mpijob", "list") == named("mpijob", "list", "--sort-by", "age") == by_age
    for field in ("name", "created", "workers", ".metadata.name", "{.workers}"):
        assert named("mpijob", "list", "--sort-by", field) == by_age[::-1]
    states = [row[1] for row in rows("mpijob", "list", "--sort-by", "state")]
    assert states == sorted(STATES)
    lengths = [row[-1] for row in rows("mpijob", "list", "--sort-by", "duration")]
    assert lengths[-1] == "-" and lengths[0] != "-"


@pytest.mark.usefixtures("jobs")
def test_columns_are_chosen_by_paths() -> None:
    columns = "custom-columns=NAME:.metadata.name,W:.spec.mpiReplicaSpecs.Worker.replicas,X:.spec.x"
    lines = printed("mpijob", "list", "--sort-by", "name", "-o", columns).splitlines()
    assert lines[0].split() == ["NAME", "W", "X"]
    assert lines[1].split() == ["job-0", "2", "<none>"]
    state = printed("mpijob", "get", "job-1", "-o", "custom-columns=S:.state", "--no-headers")
    assert state == f"{STATES[1]}\n"


@pytest.mark.usefixtures("jobs")
def test_items_of_a_list_have_the_shape_that_get_prints() -> None:
    path = "{.items[*].metadata.name}"
    assert printed("mpijob", "list", "-o", f"jsonpath={path}").split() == [
        f"job-{i}" for i in reversed(range(len(STATES)))
    ]
    listed = json.loads(printed("mpijob", "list", "-o", "json"))
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    one = json.loads(printed("mpijob", "get", "job-1", "-o", "json"))
    item = next(item for item in listed["items"] if item["name"] == "job-1")
    assert one.items() <= item.items()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("-l team=a=b", "the label value `a=b` must be letters"),
        ("-l team>1", "'team>1' is not a label selector; write KEY=VALUE"),
        ("--sort-by sate", "'sate' is not one of name, age, created, state, duration"),
        ("--sort-by .metdata.name", "did you mean `.metadata`?"),
        ("--sort-by .items[?(@.x)]", "is not understood"),
        ("-o custom-columns=NAME", "'NAME' is not HEADER:PATH"),
        ("-o custom-columns=N:.name,", "'' is not HEADER:PATH"),
        ("-o custom-columns=N:.nme", "did you mean `.name`?"),
        ("-o custom-columns", "custom-columns=HEADER:PATH,..."),
    ],
)
def test_wrong_selectors_orders_and_columns_are_explained(words: str, why: str) -> None:
    ended = CliRunner().invoke(odh, ["mpijob", "list", *words.split()])
    assert ended.exit_code == 2
    assert why in ended.stderr


@pytest.mark.usefixtures("jobs")
def test_get_keeps_the_order_of_the_names() -> None:
    found = rows("mpijob", "get", "job-5", "job-1")
    assert [row[0] for row in found] == ["job-5", "job-1"]


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"created": 3}', b"\xff", b"null"])
def test_a_damaged_job_hides_no_other(jobs: list[JobDir], damage: bytes) -> None:
    (jobs[0].path / "state.json").write_bytes(damage)
    assert {row[0] for row in rows("mpijob", "list")} == {f"job-{i}" for i in range(len(STATES))}


def test_a_job_that_lost_its_supervisor_is_listed_as_failed(jobs: list[JobDir]) -> None:
    job = stored("default", "orphan", "Running", 11)
    (job.path / "alive.lock").touch()
    states = {row[0]: row[1] for row in rows("mpijob", "list")}
    assert states["orphan"] == "Failed"


@pytest.mark.parametrize("namespace", ["../default", "-", ""])
@pytest.mark.usefixtures("jobs")
def test_a_namespace_is_no_path(namespace: str) -> None:
    ended = CliRunner().invoke(odh, ["mpijob", "list", "-n", namespace])
    assert "elsewhere" not in ended.output


@pytest.mark.parametrize("words", ["--help", "mpijob --help", "mpijob list", "mpijob list -o json"])
@pytest.mark.usefixtures("jobs")
def test_short_commands_import_no_http_and_no_yaml(words: str) -> None:
    """Each takes a good part of what a short command may take in all."""
    code = "import sys; from mpi_trainer.cli.app import run; run(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True
    )
    slow = {"aiohttp", "http.client", "yaml", "mpi_trainer.kube.client"}
    assert not slow & set(loaded.stdout.splitlines()[-1].split())
