"""`odh mpijob` as a user has it: a job's whole life, both grammars, exit codes, bad input."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
import yaml

from tests.local.cli import ODH, Cli, cli
from tests.local.odh import until


@pytest.fixture(scope="module")
def odh() -> Iterator[Cli]:
    with cli() as program:
        yield program


@pytest.fixture(scope="module")
def done(odh: Cli) -> str:
    """A job that has succeeded."""
    odh.create("done")
    odh("mpijob", "wait", "done", "--timeout", "60")
    return "done"


@pytest.fixture(scope="module")
def failed(odh: Cli) -> str:
    odh.create("failed", "2", "0", "1")
    odh("mpijob", "wait", "failed", "--for", "Finished", "--timeout", "60")
    return "failed"


@pytest.fixture(scope="module")
def lasting(odh: Cli) -> str:
    """A job that runs for as long as the tests do."""
    odh.create("lasting", "6000", "0.1")
    odh("mpijob", "wait", "lasting", "--for", "Running", "--timeout", "60")
    until("it prints", lambda: odh("mpijob", "logs", "lasting", "--tail", "1").stdout)
    return "lasting"


def test_a_job_lives_its_whole_life_by_the_command_line(odh: Cli) -> None:
    """SC-004: create, watch, logs by rank, suspend, resume, restart, failure, delete."""
    words = ("-w", "2", "--mpi", "mpich", "--retries", "0")
    line = "python train.py 6000 0.1 -1"
    created = odh("mpijob", "create", "life", *words, "--command", line)
    assert re.search(r"mpijob.kubeflow.org/life created at 2\S+Z, id [0-9a-f-]{36}", created.stdout)
    odh("mpijob", "wait", "life", "--for", "Running", "--timeout", "60")
    until("it prints", lambda: "epoch" in odh("mpijob", "logs", "life", "--rank", "1").stdout)
    lines = odh("mpijob", "logs", "life", "--rank", "1").stdout.splitlines()
    assert all(line.startswith("[1] rank 1 epoch") for line in lines)
    odh("mpijob", "suspend", "life", "--wait", "--timeout", "60")
    assert odh.state("life") == "Suspended"
    assert not [p for p in odh.json("mpijob", "describe", "life")["pods"] if p["pid"]]
    odh("mpijob", "resume", "life", "--wait", "--timeout", "60")
    assert odh.state("life") == "Running"
    odh("mpijob", "restart", "life")
    odh("mpijob", "wait", "life", "--for", "Running", "--timeout", "60")
    odh("mpijob", "delete", "life")
    assert odh.state("life") == "gone"
    assert not (odh.folder / "state/mpi-trainer/jobs/default/life").exists()


def test_a_failed_job_says_why_and_can_be_restarted(odh: Cli) -> None:
    odh.create("fails", "2", "0", "1")
    ended = odh("mpijob", "wait", "fails", "--timeout", "60", code=1)
    assert "exit code 3" in ended.stderr
    uid = odh.json("mpijob", "get", "fails")["metadata"]["uid"]
    odh("mpijob", "restart", "fails", "--wait", "--timeout", "60", code=1)
    assert odh.json("mpijob", "get", "fails")["metadata"]["uid"] != uid
    odh("mpijob", "delete", "fails")


def test_create_follow_prints_the_output_and_ends_with_the_job(odh: Cli) -> None:
    """AC-6."""
    words = ("-w", "2", "--mpi", "mpich", "--retries", "0", "--follow", "--", "python", "train.py")
    good = odh("mpijob", "create", "followed", *words, "2", "0", "-1")
    assert "[1] rank 1 epoch 2" in good.stdout.splitlines()
    assert "Succeeded" in good.stderr
    bad = odh("mpijob", "create", "followed-bad", *words, "2", "0", "1", code=1)
    assert "Failed" in bad.stderr
    odh("mpijob", "delete", "followed", "followed-bad")


def test_create_wait_gives_up_in_time_and_the_job_goes_on(odh: Cli) -> None:
    words = ("-w", "1", "--mpi", "mpich", "--wait", "--timeout", "1", "--", "sleep", "600")
    ended = odh("mpijob", "create", "slow", *words, code=124)
    assert "timed out after 1s: job slow is not Finished yet, and keeps running" in ended.stderr
    assert odh.state("slow") in ("Created", "Running")
    odh("mpijob", "delete", "slow")


def test_both_grammars_are_one(odh: Cli, done: str) -> None:
    """REQUIREMENTS §4: `odh mpijob VERB` and `odh training VERB mpijob`."""
    for verb, *rest in (("list", "-o", "name"), ("get", done, "-o", "yaml"), ("logs", done)):
        one = odh("mpijob", verb, *rest).stdout
        assert one
        assert odh("training", verb, "mpijob", *rest).stdout == one
    assert (
        odh("training", "list", "-o", "name").stdout == odh("mpijob", "list", "-o", "name").stdout
    )
    assert "is not a kind" in odh("training", "list", "tfjob", code=2).stderr


@pytest.mark.parametrize("name", ["odh", "oai-cli", "kubectl-odh", "oc-odh"])
def test_every_name_is_the_same_program(odh: Cli, name: str) -> None:
    program = ODH.with_name(name)
    shown = odh("mpijob", "get", "nothing", code=2, program=program).stderr
    called = name.replace("-odh", " odh")
    assert f"`{called} mpijob" in shown


def test_a_log_without_lines_says_why(odh: Cli, done: str) -> None:
    matched = odh("mpijob", "logs", done, "--grep", "nobody wrote this")
    assert (matched.stdout, matched.stderr) == ("", f"no lines match; {done} is Succeeded\n")


def test_jobs_of_one_file_are_one_document(odh: Cli) -> None:
    made = odh("mpijob", "create", "x", "--dry-run", "-w", "1", "--", "true").stdout
    jobs = [{**yaml.safe_load(made), "metadata": {"name": name}} for name in ("one", "two")]
    (odh.folder / "pair.yaml").write_text(yaml.safe_dump_all(jobs))
    stored = odh.json("mpijob", "create", "-f", "pair.yaml", "--suspended")
    assert [job["metadata"]["name"] for job in stored["items"]] == ["one", "two"]
    assert "not found" in odh("mpijob", "resume", "nobody", "two", code=2).stderr
    odh("mpijob", "wait", "two", "--for", "Finished", "--timeout", "60")
    odh("mpijob", "delete", "one", "two")


def test_a_files_warning_is_said_once_with_its_line(odh: Cli) -> None:
    manifest = odh("mpijob", "create", "x", "--dry-run", "-w", "1", "--", "true").stdout
    job = yaml.safe_load(manifest)
    job["spec"]["sshAuthMountPath"] = "keys"
    (odh.folder / "odd.yaml").write_text(yaml.safe_dump(job))
    said = odh("mpijob", "create", "-f", "odd.yaml", "--dry-run").stderr
    assert said.count("sshAuthMountPath") == 1
    assert "odd.yaml:" in said


def test_a_job_file_is_submitted_with_its_config_map(odh: Cli) -> None:
    manifest = odh("mpijob", "create", "x", "--dry-run", "-w", "1", "--", "cat", "/cfg/a").stdout
    job = yaml.safe_load(manifest)
    job["metadata"] = {"name": "filed"}
    for replica in job["spec"]["mpiReplicaSpecs"].values():
        spec = replica["template"]["spec"]
        spec["volumes"] = [{"name": "cfg", "configMap": {"name": "words"}}]
        spec["containers"][0]["volumeMounts"] = [{"name": "cfg", "mountPath": "/cfg"}]
    words = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}}
    (odh.folder / "filed.yaml").write_text(
        yaml.safe_dump_all([job, {**words, "data": {"a": "from the map\n"}}])
    )
    odh("training", "create", "mpijob", "-f", "filed.yaml", "--wait", "--timeout", "60")
    assert "from the map" in odh("mpijob", "logs", "filed").stdout
    odh("mpijob", "clone", "filed", "filed-2", "--wait", "--timeout", "60")
    assert "from the map" in odh("mpijob", "logs", "filed-2").stdout
    odh("mpijob", "delete", "filed", "filed-2")


def test_a_dry_run_prints_a_manifest_and_submits_nothing(odh: Cli) -> None:
    words = ("--workers", "4", "--gpu", "2", "--image", "IMG", "--command", "python train.py")
    job = yaml.safe_load(odh("mpijob", "create", "dry", *words, "--dry-run").stdout)
    assert job["kind"] == "MPIJob"
    assert job["spec"]["slotsPerWorker"] == 2
    launcher, worker = (job["spec"]["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker"))
    command = launcher["template"]["spec"]["containers"][0]["command"]
    assert command == ["mpirun", "-n", "8", "python", "train.py"]
    limits = worker["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] in (2, "2")
    assert odh.state("dry") == "gone"


def test_a_mistake_in_a_file_is_found_before_anything_is_submitted(odh: Cli) -> None:
    (odh.folder / "bad.yaml").write_text("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\n")
    assert "error: bad.yaml:1:1" in odh("mpijob", "create", "-f", "bad.yaml", code=2).stderr


def test_lists_come_in_every_format(odh: Cli, done: str, failed: str) -> None:
    """AC-8."""
    table = odh("mpijob", "list").stdout.splitlines()
    assert table[0].split() == ["NAME", "STATE", "WORKERS", "PROGRESS", "AGE", "DURATION"]
    assert any(line.split()[:2] == [done, "Succeeded"] for line in table)
    wide = odh("mpijob", "list", "-o", "wide").stdout
    assert "was the first to fail" in wide or "ended with exit code" in wide
    names = odh("mpijob", "list", "-o", "name", "--state", "failed").stdout.split()
    assert names == [f"mpijob.kubeflow.org/{failed}"]
    items = {job["name"]: job for job in odh.json("mpijob", "list", "-A")["items"]}
    assert items[done]["progress"]["metrics"]["loss"] == pytest.approx(1 / 3)
    assert items[done]["progress"]["fraction"] == 1.0
    as_yaml = yaml.safe_load(odh("mpijob", "list", "-o", "yaml").stdout)
    assert {job["name"] for job in as_yaml["items"]} >= {done, failed}
    path = "jsonpath={.items[*].state}"
    states = odh("mpijob", "list", "-o", path).stdout.split()
    assert {"Succeeded", "Failed"} <= set(states)


def test_get_prints_the_object_as_the_api_has_it(odh: Cli, done: str) -> None:
    job = odh.json("mpijob", "get", done)
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    assert job["status"]["completionTime"]
    path = "jsonpath={.status.conditions[-1].type}{.metadata.name}"
    assert odh("mpijob", "get", done, "-o", path).stdout.strip().endswith(done)
    two = odh.json("mpijob", "get", done, done)
    assert len(two["items"]) == 2


def test_describe_tells_everything(odh: Cli, failed: str) -> None:
    page = odh("mpijob", "describe", failed).stdout
    for words in ("State:", "Failed", "exit code 3", "Events:", "Ranks:", "Command:", "train.py"):
        assert words in page
    ranks = odh("mpijob", "describe", failed, "-o", "jsonpath={.ranks[*].rank}").stdout
    assert ranks.split() == ["0", "1"]


def test_logs_are_chosen_by_rank_text_time_and_number(odh: Cli, done: str) -> None:
    """AC-9."""
    logs = ("mpijob", "logs", done)
    assert len(odh(*logs, "--rank", "1").stdout.splitlines()) == 3
    assert odh(*logs, "--tail", "1", "--rank", "0").stdout == "[0] rank 0 epoch 3\n"
    assert odh(*logs, "--grep", "rank 1 epoch [12]").stdout.count("\n") == 2
    assert odh(*logs, "--since", "2000-01-01T00:00:00Z").stdout == odh(*logs).stdout
    assert odh(*logs, "--since", "0").stdout == ""
    assert re.match(r"2\d{3}-\d\d-\d\dT\S+ \[\d\] ", odh(*logs, "--timestamps").stdout)
    entry = json.loads(odh(*logs, "-o", "json", "--rank", "1").stdout.splitlines()[0])
    assert (entry["rank"], entry["text"]) == (1, "rank 1 epoch 1")
    assert "sshd" not in odh(*logs, "--launcher").stdout
    assert "not a regular expression" in odh(*logs, "--grep", "(", code=2).stderr
    assert odh(*logs, "--follow").stdout == odh(*logs).stdout


def test_following_a_failed_job_ends_with_its_code(odh: Cli, failed: str) -> None:
    said = odh("mpijob", "logs", failed, "--follow", code=1).stderr
    assert "Failed" in said
    assert ["RANK", "POD", "EXIT"] in [line.split() for line in said.splitlines()]
    assert f"{failed}-worker-1" in said


def test_ctrl_c_while_following_leaves_the_job_running(odh: Cli, lasting: str) -> None:
    for words in (("logs", lasting, "--follow"), ("watch", lasting)):
        follower = odh.start("mpijob", *words)
        assert follower.stdout is not None
        assert follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        _, err = follower.communicate(timeout=60)
        assert follower.returncode == 130
        assert f"job {lasting} keeps running" in err
        assert f"odh mpijob {words[0]}" in err
        assert "Traceback" not in err
    assert odh.state(lasting) == "Running"


def test_a_reader_that_goes_away_is_no_drama(odh: Cli, lasting: str) -> None:
    follower = odh.start("mpijob", "logs", lasting, "--follow")
    assert follower.stdout is not None
    assert follower.stdout.readline()
    follower.stdout.close()
    assert follower.wait(timeout=60) == 1
    assert follower.stderr is not None
    assert "Traceback" not in follower.stderr.read()
    follower.stderr.close()


def test_a_job_deleted_while_followed_is_told(odh: Cli) -> None:
    odh.create("doomed", "6000", "0.1")
    odh("mpijob", "wait", "doomed", "--for", "Running", "--timeout", "60")
    followers = [odh.start("mpijob", *words, "doomed") for words in (("logs", "-f"), ("watch",))]
    waiting = odh.start("mpijob", "wait", "doomed")
    for follower in followers:
        assert follower.stdout is not None
        assert follower.stdout.readline()
    odh("mpijob", "delete", "doomed")
    for process in (*followers, waiting):
        _, err = process.communicate(timeout=100)
        assert process.returncode in (1, 2), err
        assert "deleted" in err or "Failed" in err
        assert "Traceback" not in err


def test_two_delete_at_once(odh: Cli) -> None:
    odh.create("twice", "6000", "0.1")
    pair = [odh.start("mpijob", "delete", "twice", "--ignore-not-found") for _ in range(2)]
    for process in pair:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert odh.state("twice") == "gone"


def test_a_taken_name_is_refused_and_the_job_is_unharmed(odh: Cli, done: str) -> None:
    before = odh.json("mpijob", "get", done)
    ended = odh("mpijob", "create", done, "--mpi", "mpich", "--", "true", code=2)
    assert f"job default/{done} already exists" in ended.stderr
    assert "hint:" in ended.stderr
    assert odh.json("mpijob", "get", done) == before


@pytest.mark.parametrize(
    "words",
    [
        ("get",),
        ("describe",),
        ("explain",),
        ("logs",),
        ("wait",),
        ("watch",),
        ("suspend",),
        ("resume",),
        ("restart",),
        ("delete",),
        ("stack",),
        ("top",),
    ],
    ids=lambda words: words[0],
)
def test_a_name_that_is_nearly_right_is_guessed(
    odh: Cli, done: str, words: tuple[str, ...]
) -> None:
    ended = odh("mpijob", *words, "donne", code=2)
    assert "job default/donne not found" in ended.stderr
    assert "Did you mean `done`?" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_job_of_another_namespace_is_found(odh: Cli, done: str) -> None:
    assert "add `-n default`" in odh("mpijob", "get", done, "-n", "other", code=2).stderr


@pytest.mark.parametrize(
    "words",
    [
        ("mpijob", "lst"),
        ("mpijob", "get", "x", "-A"),
        ("mpijob", "list", "-o", "xml"),
        ("mpijob", "list", "-o", "jsonpath={..x}"),
        ("mpijob", "create", "x"),
        ("mpijob", "create", "x", "--command", "'"),
        ("mpijob", "create", "Bad_Name", "--", "true"),
        ("mpijob", "create", "-f", "no-such.yaml"),
        ("mpijob", "create", "x", "-w", "0", "--", "true"),
        ("mpijob", "create", "x", "--memory", "lots", "--", "true"),
        ("mpijob", "delete"),
        ("mpijob", "delete", "x", "--all"),
        ("mpijob", "logs", "x", "--since", "yesterday"),
        ("mpijob", "logs", "x", "--rank", "0", "--worker", "0"),
        ("mpijob", "wait", "x", "--timeout", "soon"),
        ("mpijob", "cp", "nothing", "."),
        ("mpijob", "list", "-q", "-v"),
        ("completion", "tcsh"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_two(odh: Cli, words: tuple[str, ...]) -> None:
    ended = odh(*words, code=2)
    assert ended.stderr.strip()
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr


def test_wait_ends_at_once_where_the_state_cannot_come(odh: Cli, done: str, failed: str) -> None:
    odh("mpijob", "wait", done, "--for", "running")
    odh("mpijob", "wait", failed, "--for", "Finished")
    odh("mpijob", "wait", failed, code=1)
    assert (
        "will not be Suspended" in odh("mpijob", "wait", done, "--for", "Suspended", code=1).stderr
    )


def test_wait_gives_up_with_124(odh: Cli, lasting: str) -> None:
    ended = odh("mpijob", "wait", lasting, "--timeout", "300ms", code=124)
    assert "and keeps running" in ended.stderr


def test_exec_runs_beside_the_rank_and_hands_its_code_on(odh: Cli, lasting: str) -> None:
    assert odh("mpijob", "exec", lasting, "--rank", "1", "--", "hostname").stdout == (
        f"{lasting}-worker-1\n"
    )
    for place in (("--rank", "1"), ("--worker", "0"), ("--launcher",)):
        found = odh("mpijob", "exec", lasting, *place, "--", "pwd").stdout
        assert found == f"{odh.folder.resolve()}\n"
    odh("mpijob", "exec", lasting, "--launcher", "--", "sh", "-c", "exit 7", code=7)
    assert (
        "has no rank 99" in odh("mpijob", "exec", lasting, "--rank", "99", "--", "x", code=2).stderr
    )


def test_files_are_copied_out_of_running_and_ended_jobs(odh: Cli, lasting: str, done: str) -> None:
    script = "echo weights > /tmp/model.pt"
    odh("mpijob", "exec", lasting, "--launcher", "--", "sh", "-c", script)
    odh("mpijob", "cp", f"{lasting}:/tmp/model.pt", "fetched.pt")
    assert (odh.folder / "fetched.pt").read_text() == "weights\n"
    odh("mpijob", "cp", f"{done}:train.py", "copy.py")
    assert (odh.folder / "copy.py").read_text() == (odh.folder / "train.py").read_text()
    assert "hint:" in odh("mpijob", "cp", f"{done}:/tmp/gone", ".", code=2).stderr


def test_top_and_stack_show_what_runs(odh: Cli, lasting: str) -> None:
    used = odh.json("mpijob", "top", lasting)["items"]
    assert {use["pod"] for use in used} == {
        f"{lasting}-{p}" for p in ("launcher", "worker-0", "worker-1")
    }
    assert all(use["memoryBytes"] > 0 for use in used)
    assert f"{lasting}-worker-0" in odh("mpijob", "top").stdout
    found = odh.json("mpijob", "stack", lasting)["ranks"]
    assert [stack["rank"] for stack in found] == [0, 1]


def test_clone_changes_what_is_asked(odh: Cli, done: str) -> None:
    odh("mpijob", "clone", done, "copy", "--workers", "1", "--wait", "--timeout", "60")
    assert odh.json("mpijob", "get", "copy")["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 1
    assert "rank 1 " not in odh("mpijob", "logs", "copy").stdout
    odh("mpijob", "delete", "copy")


def test_prune_takes_what_has_ended_and_nothing_else(odh: Cli, lasting: str) -> None:
    for name in ("old-1", "old-2"):
        words = ("-n", "attic", "-w", "1", "--mpi", "mpich", "--wait", "--quiet", "--", "true")
        odh("mpijob", "create", name, *words)
    assert odh("mpijob", "prune", "-n", "attic").stdout == ""
    pruned = odh("mpijob", "prune", "-n", "attic", "--older-than", "0").stdout
    assert pruned.count("deleted") == 2
    assert odh.json("mpijob", "list", "-n", "attic")["items"] == []
    assert odh.state(lasting) == "Running"


def test_a_line_of_five_megabytes_and_broken_utf8_come_through(odh: Cli) -> None:
    program = "import sys; sys.stdout.buffer.write(b'x' * 5_000_000 + b'\\n\\xff\\xfe bad\\n')"
    words = ("-w", "1", "--mpi", "mpich", "--retries", "0", "--wait", "--timeout", "60")
    odh("mpijob", "create", "long", *words, "--", "python", "-c", program)
    text = odh("mpijob", "logs", "long").stdout
    assert text.count("x") == 5_000_000
    assert "\ufffd\ufffd bad" in text
    lines = odh("mpijob", "logs", "long", "-o", "json").stdout.splitlines()
    assert sum(json.loads(line)["text"].count("x") for line in lines) == 5_000_000
    odh("mpijob", "delete", "long")


def test_quiet_says_nothing_but_data(odh: Cli, done: str) -> None:
    assert odh("mpijob", "wait", done, "--quiet").stderr == ""
    assert odh("mpijob", "list", "-n", "empty", "--quiet").stderr == ""
    assert "no jobs in namespace empty" in odh("mpijob", "list", "-n", "empty").stderr


def test_colours_and_redrawing_are_for_terminals_only(odh: Cli, lasting: str) -> None:
    plain = odh.start("mpijob", "watch", lasting)
    assert plain.stdout is not None
    assert "\x1b" not in plain.stdout.readline()
    plain.send_signal(signal.SIGINT)
    plain.communicate(timeout=60)
    shown = on_a_terminal(odh, "mpijob", "watch", lasting)
    assert re.search(r"\x1b\[\d+F", shown), "drawn again in place"
    assert f"{lasting} Running" in shown
    assert "ranks 0" in shown
    assert "█" in shown or "·" in shown


def on_a_terminal(odh: Cli, *words: str, seconds: float = 60.0) -> str:
    """What appears on a terminal until it was drawn twice with progress, and then Ctrl-C."""
    ours, theirs = pty.openpty()
    env = {**odh.env, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    process = subprocess.Popen(
        [ODH, *words], cwd=odh.folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not _drawn_twice(seen.decode(errors="replace")):
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    os.close(ours)
    assert process.returncode == 130
    return seen.decode(errors="replace")


def _drawn_twice(text: str) -> bool:
    bar = "█" in text or "·" in text
    return bool(re.search(r"\x1b\[\d+F", text)) and "ranks 0" in text and bar


def test_watching_a_list_prints_changes(odh: Cli) -> None:
    watcher = odh.start("mpijob", "list", "-n", "seen", "--watch", "-o", "name")
    words = ("-w", "1", "--mpi", "mpich", "--wait", "--quiet", "--", "true")
    odh("mpijob", "create", "appears", "-n", "seen", *words)
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "mpijob.kubeflow.org/appears\n"
    watcher.send_signal(signal.SIGINT)
    watcher.communicate(timeout=60)
    assert watcher.returncode == 130
