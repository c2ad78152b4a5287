"""What is wrong is told on one screen, with what to do about it, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.local.odh import ODH, run
from tests.local.ordinary import OrdinaryUser, ordinary_user

SCREEN = 25
JOB = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: train
spec:
  slotsPerWorker: 1
  runPolicy:
    backoffLimit: 0
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - name: mpi
              image: local
              command: [mpirun, -n, "2", hostname]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: mpi
              image: local
"""
VOLUME = """\
              volumeMounts: [{name: files, mountPath: %s}]
          volumes: [{name: files, %s}]
"""
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
LAUNCHER = JOB[JOB.index("    Launcher:") : JOB.index("    Worker:")]
WORKER_LINE = "      replicas: 2\n"

# What is wrong, the file, and words that must be in the answer: the place, and the remedy.
FILES: list[tuple[str, str | bytes, tuple[str, ...]]] = [
    (
        "unknown field",
        JOB.replace("slotsPerWorker", "slotPerWorker"),
        (":6:3: spec.slotPerWorker", "did you mean `slotsPerWorker`"),
    ),
    (
        "wrong type",
        JOB.replace(WORKER_LINE, "      replicas: two\n"),
        ("Worker.replicas", "write an integer"),
    ),
    (
        "zero replicas",
        JOB.replace(WORKER_LINE, "      replicas: 0\n"),
        ("Worker.replicas", "set replicas to the number of worker pods"),
    ),
    (
        "negative replicas",
        JOB.replace(WORKER_LINE, "      replicas: -1\n"),
        ("Worker.replicas: Invalid value: -1", "must be at least 1"),
    ),
    (
        "two launchers",
        JOB.replace("      replicas: 1\n", "      replicas: 2\n"),
        ("Launcher.replicas: Invalid value: 2", "a job has one launcher pod"),
    ),
    ("no launcher", JOB.replace(LAUNCHER, ""), ("Launcher: Required value", "add a Launcher")),
    (
        "name too long for its pods",
        JOB.replace("name: train", f"name: {'a' * 60}"),
        ("metadata.name: Too long", "use at most 54 characters"),
    ),
    ("YAML bomb", BOMB, ("expands to more than", "use fewer aliases")),
    ("binary file", b"\x7fELF\x02\x01\x01\0\xff\xfe", ("is not UTF-8 text", "MPIJob manifest")),
    ("text with zero bytes", b"\0\0\0hello", ("U+0000", "is this really a text file?")),
    ("empty file", "", ("holds no document", "write an MPIJob")),
    (
        "two jobs",
        f"{JOB}---\n{JOB.replace('train', 'other')}",
        ("2 jobs (train, other)", "a file of its own"),
    ),
    (
        "suspended job",
        JOB.replace("    backoffLimit: 0\n", "    suspend: true\n"),
        ("train is suspended", "Set spec.runPolicy.suspend to false"),
    ),
    (
        "missing ConfigMap",
        JOB + VOLUME % ("/files", "configMap: {name: settings}"),
        ("no ConfigMap settings", "into the same file"),
    ),
    (
        "missing mount point in the home",
        JOB + VOLUME % (Path.home() / "no-such-folder/x", "emptyDir: {}"),
        ("no-such-folder/x: this directory does not exist", "create it with mkdir -p"),
    ),
    (
        "missing hostPath",
        JOB + VOLUME % ("/data", "hostPath: {path: /no/such}"),
        ("volume files: this machine has no /no/such", "mkdir -p /no/such"),
    ),
    (
        "claim whose name is a path",
        JOB + VOLUME % ("/data", "persistentVolumeClaim: {claimName: ../../x}"),
        ("claimName '../../x'", "Correct claimName"),
    ),
    (
        "missing workingDir",
        JOB + "              workingDir: /no/such\n",
        ("workingDir of the Worker: this machine has no directory /no/such", "--mount .:/no/such"),
    ),
]

# What is wrong, the words after `odh`, and words that must be in the answer.
LINES: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("unknown MPI", ("run", "--mpi", "nope", "--", "true"), ("'nope'", "'mpich'")),
    ("neither command nor file", ("run",), ("either a command after `--` or a job file",)),
    ("both", ("run", "-f", "x.yaml", "--", "true"), ("either a command after `--` or a job file",)),
    (
        "workers with a file",
        ("run", "-w", "3", "-f", "x.yaml"),
        ("--workers", "change it in the file"),
    ),
    ("no workers", ("run", "-w", "0", "--", "true"), ("--workers", "a whole number from 1 to 256")),
    ("empty command", ("run", "--", ""), ("the command is empty", "variable")),
    ("missing file", ("run", "-f", "no.yaml"), ("cannot read no.yaml", "Check the path")),
    ("directory as file", ("run", "-f", "."), (". is a directory", "a file in it")),
    ("misspelt option", ("run", "--wokers", "3", "--", "true"), ("--workers", "odh run --help")),
    ("unknown verb", ("rnu",), ("'rnu'", "odh --help")),
    ("bad job name", ("run", "--name", "My_Job", "--", "true"), ("My_Job", "write for example")),
    ("mount of nothing", ("run", "--mount", "/no:/x", "--", "true"), ("/no", "mkdir -p /no")),
    ("relative mount", ("run", "--mount", ".:x", "--", "true"), ("absolute DST",)),
    ("unset variable", ("run", "-e", "NO_SUCH", "--", "true"), ("NO_SUCH=VALUE",)),
    ("claim without folder", ("run", "--claim", "no", "--", "true"), ("no=", "--claim")),
    ("nothing to validate", ("validate", "-f", "no.yaml"), ("cannot read no.yaml",)),
    ("unknown MPI to install", ("mpi", "install", "nope"), ("'nope'", "'mpich'")),
]


def demand(ended: CompletedProcess[str], *words: str, code: int = 2) -> None:
    assert ended.returncode == code, ended.stdout + ended.stderr
    text = ended.stdout + ended.stderr
    assert "Traceback" not in text
    assert len(text.splitlines()) <= SCREEN, text
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"


@pytest.mark.parametrize(("content", "words"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_a_broken_file_is_explained(
    tmp_path: Path, content: str | bytes, words: tuple[str, ...]
) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    demand(run("run", "-f", str(file), cwd=tmp_path), *words)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(("line", "words"), [c[1:] for c in LINES], ids=[c[0] for c in LINES])
def test_a_wrong_command_line_is_explained(
    tmp_path: Path, line: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ended = run(*line, cwd=tmp_path)
    demand(ended, *words)
    assert ended.stderr.startswith("error: ")
    assert not list(tmp_path.iterdir())


def test_the_job_of_the_broken_files_runs_unbroken(tmp_path: Path) -> None:
    """Or each of them could be refused for a reason of its own."""
    (tmp_path / "job.yaml").write_text(JOB)
    demand(run("run", "-f", "job.yaml", cwd=tmp_path), "2 ranks on 2 hosts", code=0)


def test_every_file_is_validated_though_one_is_missing(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(JOB)
    ended = run("validate", "-f", "no.yaml", "-f", "good.yaml", cwd=tmp_path)
    demand(ended, "cannot read no.yaml", "good.yaml: valid (train)")


@pytest.mark.parametrize("command", ["mpirun -n 2 no-such-program", "no-such-program"])
def test_a_command_that_does_not_exist_fails_the_job(command: str, tmp_path: Path) -> None:
    """The job was sound and ran: exit 1, and the program is named."""
    ended = run("run", "-w", "2", "--as-is", "--", *command.split(), cwd=tmp_path)
    demand(ended, "no-such-program", "Failed after", code=1)


def test_a_deleted_directory_is_explained(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"'
    ended = run("run", "--", "true", cwd=tmp_path, program=("sh", "-c", script, str(ODH)))
    demand(ended, "the current directory was deleted")


# --- the machine ------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    """An environment in which no MPI is installed."""
    return {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}


def left(folder: Path) -> set[str]:
    return {p.name for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".lock")}


def test_an_mpi_that_cannot_be_fetched_is_explained(tmp_path: Path, data: dict[str, str]) -> None:
    (tmp_path / "empty").mkdir()
    env = {**data, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "empty")}
    ended = run("run", "--mpi", "mpich", "--", "true", cwd=tmp_path, env=env)
    demand(ended, "cannot install MPICH", "pip config list", "odh mpi list")
    assert not left(tmp_path / "data")


def test_a_data_folder_that_cannot_be_written_is_explained(data: dict[str, str]) -> None:
    env = {**data, "XDG_DATA_HOME": "/proc/no-such"}
    demand(run("run", "--mpi", "mpich", "--", "true", env=env), "/proc/no-such", "XDG_DATA_HOME")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_is_not_blamed_on_the_network(tmp_path: Path) -> None:
    """L-4."""
    small = tmp_path / "small"
    small.mkdir()
    script = 'mount -t tmpfs -o size=3m none "$1" && exec "$0" mpi install mpich'
    ended = subprocess.run(
        ("unshare", "--mount", "sh", "-c", script, str(ODH), str(small)),
        env={**os.environ, "XDG_DATA_HOME": str(small)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    assert "No space left on device" in ended.stderr
    assert f"Free space in {small}/mpi-trainer/mpi and" in ended.stderr
    assert "network" not in ended.stderr


def in_machine_without(hidden: str, shown: Path) -> tuple[str, ...]:
    """The program in a mount namespace of its own, with an empty folder over `hidden`."""
    script = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", script, str(shown), hidden, str(ODH))


Without = Callable[[str], tuple[str, ...]]


@pytest.fixture
def without(tmp_path: Path) -> Without:
    (tmp_path / "nothing").mkdir()
    return lambda hidden: in_machine_without(hidden, tmp_path / "nothing")


@pytest.mark.skipif(os.getuid() != 0, reason="covers a system folder in a mount namespace")
def test_a_machine_without_sshd_is_told_how_to_get_one(
    tmp_path: Path, data: dict[str, str], without: Without
) -> None:
    ended = run("run", "--mpi", "mpich", "--", "true", program=without("/usr/sbin"), env=data)
    demand(ended, "there is no sshd", "apt-get install openssh-server", "make setup")
    assert not (tmp_path / "data").exists(), "no MPI was installed for a run that cannot be"
    demand(run("doctor", program=without("/usr/sbin"), env=data), "sshd is not", "fix: ", code=1)


@pytest.fixture
def user() -> Iterator[OrdinaryUser]:
    with ordinary_user() as someone:
        yield someone


@pytest.mark.skipif(os.getuid() != 0, reason="root makes the file and another cannot read it")
def test_an_unreadable_file_is_explained(user: OrdinaryUser) -> None:
    file = user.home / "job.yaml"
    file.write_text(JOB)
    file.chmod(0o600)
    env: Mapping[str, str] = user.env
    ended = run("run", "-f", str(file), program=user.program, env=env)
    demand(ended, f"cannot read {file}: Permission denied", "permissions")


def test_a_fault_of_odh_is_one_line_and_not_a_stack(tmp_path: Path) -> None:
    """A broken installation stands for a fault that nobody has foreseen."""
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml/__init__.py").write_text("raise RuntimeError('broken')\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words, own = ("run", "--dry-run", "--", "true"), (str(ODH),)  # with imports of its own
    demand(run(*words, env=env, program=own), "a fault of odh", "RuntimeError: broken", code=1)
    shown = run(*words, env={**env, "ODH_TRACEBACK": "1"}, program=own)
    assert "Traceback" in shown.stderr
