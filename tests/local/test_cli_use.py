"""What people asked of `odh` after using it for real: named filters, short forms, questions."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
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
def repeated(odh: Cli) -> str:
    """A job that has failed three times."""
    words = ("-w", "1", "--mpi", "mpich", "--retries", "2", "--as-is", "--wait")
    script = 'n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; echo "try $n"; exit 7'
    odh("mpijob", "create", "repeated", *words, "--", "sh", "-c", script, code=1)
    return "repeated"


def test_logs_of_an_attempt_that_was_not_made_are_an_error(odh: Cli, repeated: str) -> None:
    assert "try 2" in odh("mpijob", "logs", repeated, "--attempt", "3").stdout
    refused = odh("mpijob", "logs", repeated, "--attempt", "9", code=1)
    assert refused.stdout == ""
    assert refused.stderr == f"error: job {repeated} has no attempt 9, but attempts 1 to 3\n"


def test_logs_of_a_rank_that_is_not_there_are_an_error(odh: Cli) -> None:
    odh("mpijob", "create", "two", "-w", "2", "--mpi", "mpich", "--wait", "--", "echo", "hello")
    refused = odh("mpijob", "logs", "two", "--rank", "9", code=1)
    assert refused.stderr == "error: job two has no rank 9, but ranks 0 to 1\n"


@pytest.fixture(scope="module")
def done(odh: Cli) -> str:
    words = ("-w", "2", "--mpi", "mpich", "--wait")
    odh("mpijob", "create", "done", *words, "--", "echo", "hello")
    return "done"


def test_jobs_are_reached_by_short_forms_and_aliases(odh: Cli, done: str) -> None:
    listed = odh("ls").stdout
    assert listed.splitlines()[0].split()[:2] == ["KIND", "NAME"]
    assert done in listed and odh("list").stdout.splitlines()[0] == listed.splitlines()[0]
    assert odh("get", done, "-o", "yaml").stdout == odh("mpijob", "get", done, "-o", "yaml").stdout
    assert odh("get", "mpijob", done, "-o", "name").stdout == f"mpijob.kubeflow.org/{done}\n"
    assert odh("logs", done).stdout == odh("mpijob", "logs", done).stdout
    odh("mpijob", "create", "waiting", "--suspended", "--", "true")
    assert odh("resume", "waiting").stdout == "waiting resumed\n"
    odh("wait", "waiting", "--for", "Finished", "--timeout", "60")
    ended = odh("stop", "waiting", code=2).stderr
    assert "has ended and cannot be suspended" in ended
    assert ended == odh("cancel", "waiting", code=2).stderr
    assert odh("rm", "waiting").stdout == "waiting deleted\n"
    assert odh("mpijob", "stop", "waiting", code=2).stderr.startswith(
        "error: job default/waiting not found"
    )


def test_get_without_a_name_lists(odh: Cli, done: str) -> None:
    assert done in odh("mpijob", "get").stdout
    assert odh("mpijob", "get", "-o", "name").stdout == odh("mpijob", "list", "-o", "name").stdout
    assert done not in odh("mpijob", "get", "--state", "Running").stdout


def test_get_shows_the_jobs_that_are_there_and_names_the_others(odh: Cli, done: str) -> None:
    shown = odh("mpijob", "get", done, "nope", code=2)
    assert done in shown.stdout and "job default/nope not found" in shown.stderr


def test_names_are_taken_as_they_are_printed(odh: Cli, done: str) -> None:
    (printed,) = odh("mpijob", "get", done, "-o", "name").stdout.split()
    assert odh("mpijob", "logs", printed).stdout == odh("mpijob", "logs", done).stdout


def test_delete_all_asks(odh: Cli, done: str) -> None:
    refused = odh("mpijob", "delete", "--all", "-n", "default", code=2)
    assert "--all needs --yes where nobody can be asked" in refused.stderr
    assert done in odh("mpijob", "list").stdout
    odh("mpijob", "create", "other", "-n", "apart", "--suspended", "--", "true")
    leader, follower = pty.openpty()
    asked = subprocess.Popen(
        [ODH, "mpijob", "delete", "--all", "-n", "apart"],
        env=odh.env, stdin=follower, stdout=subprocess.PIPE, stderr=follower, text=True,
    )  # fmt: skip
    os.close(follower)
    assert b"Delete 1 job in namespace apart?" in _until(leader, b"?")
    os.write(leader, b"n\n")
    assert asked.communicate(timeout=60)[0] == "" and asked.returncode == 1
    os.close(leader)
    gone = odh("mpijob", "delete", "--all", "-n", "apart", "--yes").stdout
    assert gone == "mpijob.kubeflow.org/other deleted\n"


def _until(leader: int, end: bytes) -> bytes:
    seen = b""
    while end not in seen:
        assert select.select([leader], [], [], 60)[0], seen
        seen += os.read(leader, 1000)
    return seen


def test_options_stand_in_place_of_yaml(odh: Cli) -> None:
    words = (
        "--queue", "team", "--priority-class", "high", "--node-selector", "zone=a",
        "--toleration", "gpu=yes:NoSchedule", "--toleration", "spot", "--service-account", "robot",
        "--shm-size", "1Gi", "--pvc", "data:/data:ro", "--env-from-secret", "login",
        "--env-from-secret", "TOKEN=login:token", "--label", "team=a", "--time-limit", "1h30m",
        "--launcher-cpu", "1",
    )  # fmt: skip
    made = yaml.safe_load(
        odh("mpijob", "create", "x", *words, "--dry-run", "--", "python", "train.py").stdout
    )
    assert made["metadata"]["labels"] == {"team": "a", "kueue.x-k8s.io/queue-name": "team"}
    assert made["spec"]["runPolicy"]["activeDeadlineSeconds"] == 5400
    for role in ("Launcher", "Worker"):
        pod = made["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
        assert (pod["priorityClassName"], pod["serviceAccountName"]) == ("high", "robot")
        assert pod["nodeSelector"] == {"zone": "a"}
        assert pod["tolerations"] == [
            {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
            {"key": "spot", "operator": "Exists"},
        ]
        claim, shm = pod["volumes"]
        assert claim["persistentVolumeClaim"] == {"claimName": "data"}
        assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}
        (container,) = pod["containers"]
        assert [m["mountPath"] for m in container["volumeMounts"]] == ["/data", "/dev/shm"]
        assert container["envFrom"] == [{"secretRef": {"name": "login"}}]
        assert container["env"][-1]["valueFrom"] == {
            "secretKeyRef": {"name": "login", "key": "token"}
        }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--toleration", "a:Never"), "EFFECT is one of NoSchedule"),
        (("--pvc", "data"), "is not NAME:PATH"),
        (("--env-from-secret", "A=b"), "is neither SECRET nor NAME=SECRET:KEY"),
        (("--time-limit", "soon"), "is not a duration"),
        (("--node-selector", "=x"), "has no name"),
    ],
)
def test_bad_options_say_what_they_take(odh: Cli, words: tuple[str, ...], said: str) -> None:
    assert said in odh("mpijob", "create", "x", *words, "--", "true", code=2).stderr


def test_a_claim_by_option_is_a_directory_here(odh: Cli) -> None:
    words = ("--pvc", "data:/data", "--claim", f"data={odh.folder}/claim", "--shm-size", "16Mi")
    script = "echo kept > /data/out && df -m /dev/shm | tail -1"
    odh("mpijob", "create", "claims", "-w", "1", "--mpi", "mpich", *words, "--wait", "--as-is",
        "--", "sh", "-c", script)  # fmt: skip
    assert (odh.folder / "claim/out").read_text() == "kept\n"
    assert " 16 " in odh("logs", "claims").stdout


def test_a_time_limit_ends_the_job(odh: Cli) -> None:
    ended = odh(
        "run", "-w", "1", "--mpi", "mpich", "--time-limit", "2s", "--", "sleep", "60", code=1
    )
    assert "active longer than 2 s" in ended.stderr


def test_runs_are_kept_in_a_history(odh: Cli) -> None:
    odh("run", "-w", "2", "--mpi", "mpich", "--", "echo", "with \x1b[31m colour")
    first = odh.json("history")["items"][0]
    assert (first["state"], first["ranks"], first["mpi"]) == ("Succeeded", 2, "mpich")
    assert first["command"] == ["echo", "with \x1b[31m colour"]
    assert first["folder"] == str(odh.folder)
    page = odh("history", "--limit", "1").stdout
    assert len(page.splitlines()) == 2 and "\x1b" not in page


@pytest.mark.parametrize(
    ("command", "said", "hint"),
    [
        (("pyhton", "train.py"), "program `pyhton` not found", "Did you mean `python`?"),
        (("python", "nope.py"), "no file nope.py in", "Check its name"),
        (("python train.py",), "program `python train.py` not found", "without quotes"),
        (("train.py",), "program `train.py` not found", "`-- python train.py`"),
        (("./train.py",), "./train.py is not an executable file", "`-- python ./train.py`"),
        (("/usr/lib",), "/usr/lib is not an executable file", "check the path"),
        (("cd", "x"), "`cd` is a shell built-in", "sh -c"),
    ],
)
def test_a_command_that_cannot_run_is_refused_before_anything_starts(
    odh: Cli, command: tuple[str, ...], said: str, hint: str
) -> None:
    for verb in (("run",), ("mpijob", "create", "typo")):
        refused = odh(*verb, "-w", "1", "--", *command, code=2)
        assert said in refused.stderr and hint in refused.stderr
    assert "typo" not in odh("list", "-A").stdout


def test_resources_that_are_not_there_are_warned_about(odh: Cli) -> None:
    words = ("--gpu", "1", "--cpu", "4000", "--memory", "900Ti", "--suspended")
    said = odh("mpijob", "create", "large", "-w", "1", *words, "--", "true").stderr
    assert "warning: the job asks for GPUs, and this machine has none" in said
    assert "more CPUs than this machine has: 4000" in said
    assert "more memory than this machine has: 900Ti" in said


def test_more_ranks_than_slots_are_warned_about(odh: Cli) -> None:
    words = ("mpijob", "create", "x", "-w", "2", "--dry-run", "--", "mpirun", "-n", "8")
    assert "mpirun starts 8 ranks, and the job has 2 slots" in odh(*words, "hostname").stderr
    assert odh(*words, "--oversubscribe", "hostname").stderr == ""


def test_trainjobs_are_listed_and_completed_apart_from_mpijobs(odh: Cli, done: str) -> None:
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "trainer"},
        "spec": {"runtimeRef": {"name": "mpi-mpich-cpu"}, "suspend": True,
                 "trainer": {"command": ["mpirun", "-n", "2", "true"], "numNodes": 2}},
    }  # fmt: skip
    (odh.folder / "trainjob.yaml").write_text(yaml.safe_dump(job))
    limits = ("--queue", "team", "--label", "a=b", "--time-limit", "90")
    made = odh.json("trainjob", "create", "-f", "trainjob.yaml", *limits)
    assert made["metadata"]["labels"] == {"a": "b", "kueue.x-k8s.io/queue-name": "team"}
    assert made["spec"]["activeDeadlineSeconds"] == 90
    listed = ("trainjob", "list", "-o", "wide", "--state", "Suspended")
    wide = until("it is suspended", lambda: odh(*listed).stdout)
    assert "trainer" in wide and done not in wide
    assert odh("trainjob", "list", "--state", "Running").stdout == ""
    for kind, offered, hidden in (("trainjob", "trainer", done), ("mpijob", done, "trainer")):
        env = {
            "COMP_WORDS": f"odh {kind} get ",
            "COMP_CWORD": "3",
            "_ODH_COMPLETE": "bash_complete",
            "COVERAGE_PROCESS_START": "",  # it gives up after a moment
        }
        words = subprocess.run([ODH], env={**odh.env, **env}, capture_output=True, text=True)
        assert offered in words.stdout and hidden not in words.stdout
    rendered = odh("render", "-f", "trainjob.yaml").stdout
    assert "kind: JobSet" in rendered


def test_lists_of_kubectl_are_read_from_files_and_standard_input(odh: Cli) -> None:
    made = yaml.safe_load(odh("mpijob", "create", "x", "-w", "1", "--dry-run", "--", "true").stdout)
    stored = {"uid": "1-2", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    jobs = [{**made, "metadata": {"name": name, **stored}, "status": {}} for name in ("p", "q")]
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": jobs, "metadata": {}})
    (odh.folder / "list.yaml").write_text(text)
    assert odh("validate", "-f", "list.yaml").stdout == "list.yaml: valid (p, q)\n"
    shown = subprocess.run(
        [ODH, "mpijob", "create", "-f", "-", "--dry-run", "-o", "json"],
        env=odh.env, input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for item in json.loads(shown.stdout)["items"]:
        assert set(item["metadata"]) == {"name", "namespace"}
    jobs[1]["spec"] = {"slotsPerWorker": "many"}
    (odh.folder / "list.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List",
                                                          "items": jobs}))  # fmt: skip
    assert "spec.slotsPerWorker: " in odh("validate", "-f", "list.yaml", code=2).stderr


SPEAKING = """
import logging, sys, time
from mpi4py import MPI
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
rank = MPI.COMM_WORLD.rank
logging.info("rank %s begins", rank)
if rank == 1:
    logging.warning("slow disk")
    try:
        raise ValueError("no such column")
    except ValueError:
        logging.exception("cannot read")
MPI.COMM_WORLD.Barrier()
"""


@pytest.fixture(scope="module")
def speaking(odh: Cli) -> str:
    (odh.folder / "speaking.py").write_text(SPEAKING)
    words = ("-w", "2", "--mpi", "mpich", "--wait")
    odh("mpijob", "create", "speaking", *words, "--", "python", "speaking.py")
    return "speaking"


def test_logs_of_all_pods_have_pod_names_and_begin_with_the_launcher(
    odh: Cli, speaking: str
) -> None:
    """AC-9."""
    lines = odh("logs", speaking, "--all-pods").stdout.splitlines()
    pods = list(dict.fromkeys(line.split()[0] for line in lines))
    launcher, *workers = (f"[pod/speaking-{one}]" for one in ("launcher", "worker-0", "worker-1"))
    assert pods[0] == launcher and set(pods[1:]) == set(workers)
    assert any(line.startswith(f"{launcher} [1] INFO:root:rank 1 begins") for line in lines)
    one = odh("logs", speaking, "--pod", "speaking-worker-0").stdout
    assert one == odh("logs", speaking, "--worker", "0").stdout
    refused = odh("logs", speaking, "--pod", "nope", code=2).stderr
    assert "has no pod nope" in refused and "speaking-launcher" in refused


def test_logs_are_filtered_by_level_and_by_time(odh: Cli, speaking: str) -> None:
    """AC-9: level; since and until."""
    errors = odh("logs", speaking, "--level", "error").stdout
    assert "cannot read" in errors and "slow disk" not in errors
    assert "  File " in errors and "ValueError: no such column" in errors
    assert "slow disk" in odh("logs", speaking, "--level", "warning").stdout
    whole = [json.loads(line) for line in odh("logs", speaking, "-o", "json").stdout.splitlines()]
    middle = whole[len(whole) // 2]["time"]
    early = odh("logs", speaking, "--until", middle, "-o", "json").stdout.splitlines()
    late = odh("logs", speaking, "--since", middle, "-o", "json").stdout.splitlines()
    assert len(early) + len(late) >= len(whole)
    assert odh("logs", speaking, "--until", "1h").stdout == ""
    assert all(json.loads(line)["time"] <= middle for line in early)
    assert all(json.loads(line)["time"] >= middle for line in late)
    both = odh("logs", speaking, "--until", "1m", "--follow", code=2).stderr
    assert "--until has no meaning with --follow" in both


READING = """
from datetime import UTC, datetime
from openshift_ai_sdk.training import MPIJob
job = MPIJob.get("speaking")
pods = [line.pod for line in job.logs(all_pods=True)]
assert pods[0] == "speaking-launcher" and len(set(pods)) == 3, pods
assert {line.pod for line in job.logs(pod="speaking-worker-1")} == {"speaking-worker-1"}
errors = [line.text for line in job.logs(level="error")]
assert "ValueError: no such column" in errors and not any("slow" in one for one in errors)
assert list(job.logs(until=datetime(2020, 1, 1, tzinfo=UTC))) == []
print("read")
"""


def test_the_sdk_chooses_lines_by_pod_level_and_time_too(odh: Cli, speaking: str) -> None:
    """AC-9."""
    env = {**odh.env, "MPI_TRAINER_BACKEND": "local"}
    ended = subprocess.run(
        [sys.executable, "-c", READING], env=env, capture_output=True, text=True, check=False
    )
    assert ended.stdout == "read\n", ended.stderr


def test_cp_from_an_ended_job_says_what_to_do(odh: Cli, speaking: str) -> None:
    odh("mpijob", "cp", f"{speaking}:speaking.py", "copied.py")
    assert (odh.folder / "copied.py").read_text() == SPEAKING
    never = odh("mpijob", "cp", f"{speaking}:nope.pt", "x", code=2).stderr
    assert never.startswith(f"error: no file {odh.folder}/nope.pt")
    gone = odh("mpijob", "cp", f"{speaking}:/tmp/model.pt", "x", code=2).stderr
    assert "was on the pod's own disk" in gone and "Let the job write to a volume" in gone


def test_resume_of_a_job_that_is_not_suspended_says_so(odh: Cli) -> None:
    odh.create("busy", "6000", "0.1")
    said = odh("resume", "busy")
    assert said.stdout == "" and "busy is not suspended; it is" in said.stderr
    odh("rm", "busy")


def test_a_backend_that_does_not_exist_is_refused(odh: Cli) -> None:
    env = {**odh.env, "MPI_TRAINER_BACKEND": "clustr"}
    ended = subprocess.run([ODH, "list"], env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "MPI_TRAINER_BACKEND is 'clustr'; set it to local or cluster" in ended.stderr


def test_messages_of_open_mpi_take_one_line_on_a_terminal_only(odh: Cli) -> None:
    """L-6: the rank table and the verdict say it all; a pipe gets every line."""
    program = "from mpi4py import MPI; c = MPI.COMM_WORLD; c.rank or c.Abort(7); c.Barrier()"
    # On one host: ranks that lose a connection would write into the midst of the message.
    words = ("run", "-w", "1", "-s", "2", "--mpi", "openmpi", "--", "python", "-c", program)
    frame = "-" * 74
    assert odh(*words, code=1).stderr.count(frame) >= 2
    ours, theirs = pty.openpty()
    env = {**odh.env, "TERM": "xterm"}
    with subprocess.Popen(
        [ODH, *words], cwd=odh.folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # how Linux tells that nobody writes any more
            while data := os.read(ours, 65536):
                seen += data
    os.close(ours)
    text = seen.decode(errors="replace")
    assert frame not in text
    assert "Open MPI: MPI_ABORT was invoked on rank 0" in text
    assert "exit code 7" in text
