"""`odh` on real nodes: a job's whole life, and into its pods, for jobs of both kinds (SC-004)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.api.odh import Odh
from tests.cluster import Kubectl, eventually
from tests.e2e.notebook import place, reads_runtimes

__all__ = ["place", "reads_runtimes"]

PATIENCE = 120
# Words: how many epochs, and the rank that fails.
TRAIN = """\
import os, pathlib, sys, time
from mpi4py import MPI
world, epochs, bad = MPI.COMM_WORLD, int(sys.argv[1]), int(sys.argv[2])
pathlib.Path("/tmp/model").mkdir(exist_ok=True)
pathlib.Path("/tmp/model/weights").write_bytes(bytes(range(256)) * 4096)
for epoch in range(1, epochs + 1):
    world.Barrier()
    print("rank", world.rank, "epoch", epoch, "on", MPI.Get_processor_name(), flush=True)
    if world.rank == bad:
        sys.exit(7)
    time.sleep(0.1)
"""

pytestmark = pytest.mark.timeout(500, func_only=True)


class User(msgspec.Struct, frozen=True):
    """Somebody at a command line, in a folder, with jobs of one kind."""

    odh: Odh
    kind: str
    folder: Path

    def __call__(self, verb: str, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self.odh(self.kind, verb, *words, code=code, seconds=PATIENCE + 60)

    def create(self, name: str, epochs: int, bad: int = -1) -> None:
        """Two ranks, each on a pod of its own."""
        command = ["python3", "-c", TRAIN, str(epochs), str(bad)]
        if self.kind == "mpijob":
            self("create", name, "--retries", "0", "--", *command)
            return
        trainer = {"numNodes": 2, "command": ["mpirun", "-n", "2", *command]}
        job = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": name},
            "spec": {"runtimeRef": {"name": "mpi-openmpi-cpu"}, "trainer": trainer},
        }
        (self.folder / f"{name}.json").write_text(json.dumps(job))
        self("create", "-f", str(self.folder / f"{name}.json"))

    def prints(self, name: str) -> None:
        """Waits until ranks are at work."""
        self("wait", name, "--for", "Running", "--timeout", f"{PATIENCE}s")
        second = ("logs", name, "--rank", "1")
        eventually("it prints", lambda: "epoch 2" in self(*second).stdout, PATIENCE)

    def state(self, name: str) -> str:
        found = json.loads(self("list", "-o", "json").stdout)["items"]
        return str(next((job["state"] for job in found if job["name"] == name), "gone"))

    def pods(self, name: str) -> tuple[str, str]:
        """Where rank 0 and rank 1 run."""
        if self.kind == "mpijob":
            return f"{name}-worker-0", f"{name}-worker-1"
        return f"{name}-launcher-0-0", f"{name}-node-0-0"


@pytest.fixture(params=["mpijob", "trainjob"])
def user(
    request: pytest.FixtureRequest,
    place: Kubectl,
    reads_runtimes: None,
    tmp_path: Path,
) -> User:
    odh = Odh(Path(os.environ["KUBECONFIG"]), place.namespace)
    return User(odh, request.param, tmp_path)


def test_a_job_lives_its_whole_life_by_the_command_line(user: User, place: Kubectl) -> None:
    """Create, logs by rank, suspend, resume, restart, delete."""
    user.create("life", 6000)
    user.prints("life")
    second = user("logs", "life", "--rank", "1").stdout.splitlines()
    host = user.pods("life")[1]
    assert second and all(re.fullmatch(rf"\[1\] rank 1 epoch \d+ on {host}", s) for s in second)
    user("suspend", "life", "--wait", "--timeout", f"{PATIENCE}s")
    assert user.state("life") == "Suspended"
    eventually(
        "no pod is left", lambda: not json.loads(place("get", "pods", "-o", "json"))["items"]
    )
    user("resume", "life", "--wait", "--timeout", f"{PATIENCE}s")
    assert user.state("life") == "Running"
    user.prints("life")
    user("restart", "life")
    user.prints("life")
    user("delete", "life")
    assert user.state("life") == "gone"


def test_the_end_of_a_job_is_the_exit_code_with_the_rank_that_failed(user: User) -> None:
    user.create("good", 3)
    assert "Succeeded" in user("wait", "good", "--timeout", f"{PATIENCE}s").stderr
    user.create("bad", 3, 1)
    ended = user("wait", "bad", "--timeout", f"{PATIENCE}s", code=1)
    assert re.search(rf"[Rr]ank 1 on {user.pods('bad')[1]} .*\b7\b", ended.stderr)
    assert "rank 1 epoch 1" in user("logs", "bad", "--rank", "1").stdout
    user("restart", "good", "--wait", "--timeout", f"{PATIENCE}s")


def test_a_running_job_is_entered_by_rank(user: User, place: Kubectl) -> None:
    """`exec`, `cp` and `stack` through a real kubelet; entering pods is a right of its own."""
    whom = f"--serviceaccount={place.namespace}:scientist"
    place("create", "rolebinding", "enters", "--clusterrole=mpijob-admin", whom)
    user.create("open", 6000)
    user.prints("open")
    for rank, pod in enumerate(user.pods("open")):
        there = user("exec", "open", "--rank", str(rank), "--", "cat", "/etc/hostname").stdout
        assert there.strip() == pod
    assert "open-" in user("exec", "open", "--launcher", "--", "hostname").stdout
    failed = user("exec", "open", "--rank", "1", "--", "sh", "-c", "echo no >&2; exit 5", code=5)
    assert failed.stderr.splitlines()[-1] == "no"
    given = user.odh(user.kind, "exec", "open", "--rank", "1", "--", "cat", data="a\n$b `c`\n")
    assert given.stdout == "a\n$b `c`\n"
    assert (
        "no rank 9, but ranks 0 to 1"
        in user("exec", "open", "--rank", "9", "--", "true", code=2).stderr
    )
    stacks = user("stack", "open").stdout
    assert re.search(r"ranks? 0", stacks) and re.search(r"rank 1|ranks 0, 1", stacks), stacks
    _copied(user)


def _copied(user: User) -> None:
    """Out of the launcher's pod, which has a copy where it is a node too."""
    script = "mkdir -p /tmp/model && seq 100000 >/tmp/model/weights && echo 1 >/tmp/model/one"
    user("exec", "open", "--", "sh", "-c", script)
    user("cp", "open:/tmp/model/weights", str(user.folder / "weights"))
    assert (user.folder / "weights").read_text().split() == [str(n) for n in range(1, 100001)]
    user("cp", "open:/tmp/model", str(user.folder / "model"))
    assert (user.folder / "model" / "one").read_text() == "1\n"
    assert "/tmp/none" in user("cp", "open:/tmp/none", str(user.folder / "x"), code=2).stderr
    assert not (user.folder / "x").exists()


@pytest.fixture
def here(place: Kubectl, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts `odh` in a folder that holds a program and a module of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "mine.py").write_text("WORD = '$HOME `id`'\n")
    (folder / "train.py").write_text(f"import mine\nprint(mine.WORD, flush=True)\n{TRAIN}")
    odh = Odh(Path(os.environ["KUBECONFIG"]), place.namespace)

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            odh.command(*words),
            cwd=folder,
            env=odh.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def left(place: Kubectl) -> list[str]:
    """Jobs, their pods, and code that travelled with them."""
    found = place("get", "mpijobs,pods,configmaps", "-o", "name").split()
    return [name for name in found if not name.endswith("kube-root-ca.crt")]


def test_odh_run_takes_the_folder_along_and_leaves_nothing(
    here: Callable[..., subprocess.Popen[str]], place: Kubectl
) -> None:
    """The output by rank, and the program's verdict as the exit code."""
    out, err = (run := here("run", "--", "python3", "train.py", "3", "-1")).communicate(
        timeout=2 * PATIENCE
    )
    assert run.returncode == 0, err
    for rank in range(2):
        assert f"[{rank}] $HOME `id`" in out.splitlines()
        assert re.search(rf"^\[{rank}\] rank {rank} epoch 3 on train-\w+-worker-{rank}$", out, re.M)
    eventually("nothing is left", lambda: not left(place), PATIENCE)
    bad = here("run", "--", "python3", "train.py", "3", "1")
    _, err = bad.communicate(timeout=2 * PATIENCE)
    assert bad.returncode == 1 and re.search(r"[Rr]ank 1 on train-\w+-worker-1 .*\b7\b", err)
    eventually("nothing is left", lambda: not left(place), PATIENCE)


def test_ctrl_c_ends_a_run_on_the_cluster_and_removes_it(
    here: Callable[..., subprocess.Popen[str]], place: Kubectl
) -> None:
    run = here("run", "--name", "stopped", "--", "python3", "train.py", "6000", "-1")
    assert run.stdout is not None
    while "epoch 2" not in (line := run.stdout.readline()):
        assert line, run.communicate()
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130, err
    assert "Traceback" not in err
    eventually("nothing is left", lambda: not left(place), PATIENCE)


def test_a_job_made_with_a_folder_works_in_it_and_keeps_it_while_it_lives(
    here: Callable[..., subprocess.Popen[str]], place: Kubectl
) -> None:
    words = ("--workdir", ".", "--retries", "0", "--follow", "--", "python3", "train.py")
    made = here("mpijob", "create", "with-code", *words, "3", "-1")
    out, err = made.communicate(timeout=2 * PATIENCE)
    assert made.returncode == 0, err
    assert out.count("$HOME `id`") == 2
    assert any("with-code-code-" in name for name in left(place))
    gone = here("mpijob", "delete", "with-code")
    gone.communicate(timeout=PATIENCE)
    assert gone.returncode == 0
    eventually("nothing is left", lambda: not left(place), PATIENCE)
