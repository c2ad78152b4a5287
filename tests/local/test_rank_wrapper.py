"""The two shell scripts that stand around a rank: rank.sh and mpiexec.sh.

They run as plain processes under every POSIX shell found, because a worker image may have
any of them as /bin/sh. The danger they are tested against is changing what mpirun sees.
"""

import os
import select
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.local.agentnames import assigned

AGENT = Path(__file__).parents[2] / "src" / "mpi_trainer" / "layout" / "agent"
RANK = str(AGENT / "rank.sh")
LAUNCH = AGENT / "launch.sh"
SHIM = AGENT / "mpiexec.sh"
SHELLS = [
    shell
    for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"])
    if shutil.which(shell[0]) is not None
]
RANKED = {"PMI_RANK": "2", "PMI_SIZE": "4"}
WRAP = "/wrap"
KEEP = "MPI_TRAINER_KEEP_WORDS"
KEPT = b"\nmpi-agent kept"


@pytest.fixture(params=SHELLS, ids=lambda shell: str(shell[0]))
def plain_shell(request: pytest.FixtureRequest) -> list[str]:
    found: list[str] = request.param
    return found


@pytest.fixture(params=["", "1"], ids=["plain", "words-kept"])
def keep(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(KEEP, request.param)
    return str(request.param)


@pytest.fixture
def shell(plain_shell: list[str], keep: str) -> list[str]:
    """Whatever the wrapper does with a rank's words, it stays out of the way."""
    return plain_shell


def base(extra: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], KEEP: os.environ.get(KEEP, ""), **extra}


def run(
    argv: list[str], env: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        argv, env=base(env), input=stdin, capture_output=True, timeout=30, check=False
    )


def wrapped(
    shell: list[str], directory: Path, *command: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    env = {**RANKED, "MPI_TRAINER_RANK_DIR": str(directory)}
    return run([*shell, RANK, *command], env, stdin)


def records(directory: Path, kind: str) -> list[dict[str, str]]:
    return [
        dict(line.split("=", 1) for line in path.read_text().splitlines())
        for path in sorted(directory.glob(f"*.{kind}"))
    ]


def test_start_and_end_carry_the_documented_keys(shell: list[str], tmp_path: Path) -> None:
    done = wrapped(shell, tmp_path, "sh", "-c", "echo $$")
    (start,), (end,) = records(tmp_path, "start"), records(tmp_path, "end")
    about = ["rank", "size", "world", "by", "host", "pid", "wrapper", "parent", "start"]
    assert list(start) == about
    assert list(end) == [*about, "end", "at", "oom", "orphan", "status"]
    assert (start["rank"], start["size"], start["host"]) == ("2", "4", os.uname().nodename)
    assert start["pid"].encode() == done.stdout.strip()
    assert end["status"] == "0"
    assert start.items() <= end.items()
    assert int(end["end"]) >= int(start["start"])


def test_a_workers_directory_wins_over_the_launchers(shell: list[str], tmp_path: Path) -> None:
    """Hydra hands the launcher's variables to every rank."""
    launcher, worker = tmp_path / "launcher", tmp_path / "worker"
    launcher.mkdir()
    worker.mkdir()
    folders = {"MPI_TRAINER_RANK_DIR": launcher, "MPI_TRAINER_WORKER_RANK_DIR": worker}
    run([*shell, RANK, "true"], {**RANKED, **{k: str(v) for k, v in folders.items()}})
    assert len(records(worker, "end")) == 1
    assert list(launcher.iterdir()) == []


def test_nothing_unfinished_stays_behind(shell: list[str], tmp_path: Path) -> None:
    wrapped(shell, tmp_path, "true")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_the_start_is_complete_before_the_rank_runs(shell: list[str], tmp_path: Path) -> None:
    done = wrapped(shell, tmp_path, "sh", "-c", 'cat "$MPI_TRAINER_RANK_DIR"/*.start')
    assert b"rank=2\n" in done.stdout


@pytest.mark.parametrize("status", [0, 3, 127, 137, 139, 192, 255])
def test_an_exit_status_stays_an_exit_status(shell: list[str], tmp_path: Path, status: int) -> None:
    done = wrapped(shell, tmp_path, "sh", "-c", f"exit {status}")
    assert done.returncode == status
    assert records(tmp_path, "end")[0]["status"] == str(status)


@pytest.mark.parametrize("name", ["KILL", "SEGV", "ABRT", "BUS", "TERM", "INT", "USR1", "HUP"])
def test_a_signal_stays_a_signal_and_nothing_is_printed(
    shell: list[str], tmp_path: Path, name: str
) -> None:
    done = wrapped(shell, tmp_path, "sh", "-c", f"ulimit -c 0; kill -{name} $$")
    number = signal.Signals[f"SIG{name}"]
    assert done.returncode == -number
    assert (done.stdout, done.stderr) == (b"", b"")
    end = records(tmp_path, "end")[0]
    assert end["signal"] == str(int(number))
    assert "status" not in end


def test_the_three_streams_are_the_ranks_own(shell: list[str], tmp_path: Path) -> None:
    done = wrapped(shell, tmp_path, "sh", "-c", "cat; echo oops >&2", stdin=b"a\0b")
    assert (done.stdout, done.stderr) == (b"a\0b", b"oops\n")


def test_arguments_arrive_byte_for_byte(shell: list[str], tmp_path: Path) -> None:
    arguments = ["a b", "", "*", "$HOME", "line\nline", "'\"\\", "-n"]
    done = wrapped(shell, tmp_path, "printf", r"%s\0", *arguments)
    assert done.stdout.decode().split("\0")[:-1] == arguments


def test_neither_script_has_a_variable_that_a_job_might_have() -> None:
    """CTL-14: what a script sets under a job's name reaches the job's program changed."""
    assert {name for name in assigned("rank", "mpiexec") if not name.startswith("mt_")} == set()


def test_the_rank_ignores_and_blocks_no_signal(shell: list[str], tmp_path: Path) -> None:
    done = wrapped(shell, tmp_path, "grep", "-E", "Sig(Ign|Blk|Cgt)", "/proc/self/status")
    bare = run(["grep", "-E", "Sig(Ign|Blk|Cgt)", "/proc/self/status"], {})
    assert done.stdout == bare.stdout


@pytest.mark.parametrize("taken", [(3,), (9,), (3, 4, 5, 6, 7, 8, 9)])
def test_descriptors_of_the_launcher_stay_open(
    shell: list[str], tmp_path: Path, taken: tuple[int, ...]
) -> None:
    """MPICH hands the rank an open socket by number (PMI_FD)."""
    listing = ["sh", "-c", "for f in 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$f ] && echo $f; done"]
    opened = " ".join(f"{fd}</dev/null" for fd in taken)
    env = {**RANKED, "MPI_TRAINER_RANK_DIR": str(tmp_path)}
    outer = ["bash", "-c", f'"$@" {opened}', "outer"]
    done = run([*outer, *shell, RANK, *listing], env)
    assert done.stdout == run([*outer, *listing], env).stdout


def group_after(
    shell: list[str], tmp_path: Path, sent: signal.Signals, program: str
) -> tuple[int, bytes]:
    """Signals the group, as mpirun does, once the rank says it is ready."""
    with subprocess.Popen(
        [*shell, RANK, "bash", "-c", program],
        env=base({**RANKED, "MPI_TRAINER_RANK_DIR": str(tmp_path)}),
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, sent)
        rest = process.stdout.read()
        return process.wait(timeout=30), rest


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1"])
def test_a_signal_to_the_group_ends_rank_and_wrapper(
    shell: list[str], tmp_path: Path, name: str
) -> None:
    fifo = tmp_path / "never"
    os.mkfifo(fifo)
    sent = signal.Signals[f"SIG{name}"]
    code, _ = group_after(shell, tmp_path, sent, f'exec 3<>"{fifo}"; echo ready; read -r -u 3 _')
    assert code == -sent
    assert records(tmp_path, "end")[0]["signal"] == str(int(sent))


def test_a_handled_signal_is_delivered_once_and_the_wrapper_waits(
    shell: list[str], tmp_path: Path
) -> None:
    program = (
        "trap 'echo caught; n=1' USR1; n=; echo ready; while [ -z \"$n\" ]; do :; done; exit 5"
    )
    code, rest = group_after(shell, tmp_path, signal.SIGUSR1, program)
    assert (code, rest) == (5, b"caught\n")
    assert records(tmp_path, "end")[0]["status"] == "5"


def test_a_child_that_outlives_the_rank_does_not_hold_the_wrapper(
    shell: list[str], tmp_path: Path
) -> None:
    fifo = tmp_path / "release"
    os.mkfifo(fifo)
    program = f'(read -r _ <"{fifo}") </dev/null >/dev/null 2>&1 & exit 4'
    assert wrapped(shell, tmp_path, "sh", "-c", program).returncode == 4
    with fifo.open("w") as release:
        release.write("go\n")
    assert records(tmp_path, "end")[0]["status"] == "4"


@pytest.mark.parametrize("keep", ["1"], indirect=True)
def test_a_ranks_last_words_outlive_the_kill_of_its_group(shell: list[str], tmp_path: Path) -> None:
    """MPICH kills all ranks at MPI_Abort, and the output that it has not passed on is lost."""
    program = "printf 'early %5000s\\nAbort(42) on node 2' >&2; echo ready; while :; do :; done"
    code, _ = group_after(shell, tmp_path, signal.SIGKILL, program)
    assert code == -signal.SIGKILL
    (kept,) = tmp_path.glob(".*.words")
    deadline = time.monotonic() + 30
    while not (said := kept.read_bytes()).endswith(KEPT):
        assert time.monotonic() < deadline, "its words within 30 s"
        time.sleep(0.01)  # a look; the loop has a deadline
    words = said.removesuffix(KEPT)
    assert (len(words), words[-20:]) == (2000, b"\nAbort(42) on node 2")


def test_two_launches_of_one_script_do_not_share_a_name(shell: list[str], tmp_path: Path) -> None:
    wrapped(shell, tmp_path, "true")
    wrapped(shell, tmp_path, "true")
    assert len(records(tmp_path, "end")) == 2


@pytest.mark.parametrize(
    ("env", "rank", "size"),
    [
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "PMIX_RANK": "1"}, "1", "3"),
        ({"PMIX_RANK": "5"}, "5", ""),
        ({"PMI_RANK": "0", "PMI_SIZE": "8"}, "0", "8"),
    ],
)
def test_rank_number_of_every_launcher(
    shell: list[str], tmp_path: Path, env: dict[str, str], rank: str, size: str
) -> None:
    run([*shell, RANK, "true"], {**env, "MPI_TRAINER_RANK_DIR": str(tmp_path)})
    assert [(r["rank"], r["size"]) for r in records(tmp_path, "start")] == [(rank, size)]


@pytest.mark.parametrize("directory", [None, "", "/nonexistent/place", "/dev/null"])
def test_without_a_usable_directory_the_program_replaces_the_wrapper(
    shell: list[str], directory: str | None
) -> None:
    env = RANKED if directory is None else {**RANKED, "MPI_TRAINER_RANK_DIR": directory}
    process = subprocess.Popen(
        [*shell, RANK, "sh", "-c", "echo $$; exit 6"], env=base(env), stdout=subprocess.PIPE
    )
    out, _ = process.communicate(timeout=30)
    assert (int(out), process.returncode) == (process.pid, 6)


def test_a_missing_program_is_recorded_as_127(shell: list[str], tmp_path: Path) -> None:
    done = wrapped(shell, tmp_path, "no-such-program-here")
    assert done.returncode == 127
    assert b"no-such-program-here" in done.stderr
    assert records(tmp_path, "end")[0]["status"] == "127"


def test_both_scripts_are_clean_under_shellcheck() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = run(["shellcheck", RANK, str(SHIM)], {})
    assert done.stdout == b""


class Launcher:
    """A shim in front of a real program that prints its arguments, NUL-ended."""

    def __init__(self, shell: list[str], directory: Path) -> None:
        self.shell = shell
        self.shim = directory / "shim" / "mpiexec"
        self.real = directory / "real" / "mpiexec"
        for path, text in (
            (self.shim, SHIM.read_text()),
            (self.real, '#!/bin/sh\n[ $# -eq 0 ] || printf "%s\\0" "$@"\n'),
        ):
            path.parent.mkdir()
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def given(self, *arguments: str, **env: str) -> list[str]:
        path = f"{self.shim.parent}:{self.real.parent}:{os.environ['PATH']}"
        command = [*self.shell, str(LAUNCH), *self.shell, str(self.shim), *arguments]
        done = run(command, {"PATH": path, **env})
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode().split("\0")[:-1]


@pytest.fixture
def launcher(plain_shell: list[str], tmp_path: Path) -> Launcher:
    return Launcher(plain_shell, tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["app"], [WRAP, "app"]),
        (["-n", "4", "app", "-x", "a b"], ["-n", "4", WRAP, "app", "-x", "a b"]),
        (["-n=4", "app"], ["-n=4", WRAP, "app"]),
        (["--np", "4", "app"], ["--np", "4", WRAP, "app"]),
        (["-env", "K", "V W", "app"], ["-env", "K", "V W", WRAP, "app"]),
        (["-genv", "K", "-n", "app"], ["-genv", "K", "-n", WRAP, "app"]),
        (["-genvall", "-f", "h f", "app"], ["-genvall", "-f", "h f", WRAP, "app"]),
        (["-hosts", "a,b", "-ppn", "2", "app"], ["-hosts", "a,b", "-ppn", "2", WRAP, "app"]),
        (["app", "", "x\ny", "$HOME *"], [WRAP, "app", "", "x\ny", "$HOME *"]),
        (
            ["-n", "1", "a", "-n", "9", ":", "-n", "2", "-env", "K", ":", "b", "c"],
            ["-n", "1", WRAP, "a", "-n", "9", ":", "-n", "2", "-env", "K", ":", WRAP, "b", "c"],
        ),
    ],
)
def test_the_wrapper_stands_before_every_program(
    launcher: Launcher, before: list[str], after: list[str]
) -> None:
    assert launcher.given(*before, MPI_TRAINER_RANK_WRAPPER=WRAP) == after


def test_words_are_kept_where_hydra_starts_the_ranks(launcher: Launcher) -> None:
    launcher.real.write_text(f'#!/bin/sh\nprintf "%s\\0" "${KEEP}"\n')
    assert launcher.given("app", MPI_TRAINER_RANK_WRAPPER=WRAP) == ["1"]
    assert launcher.given("app") == [""]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-info"],
        ["-n", "4"],
        ["-configfile", "file"],
        ["-n", "1", "-not-an-option", "x", "app"],
        ["-env=K", "V", "app"],
        ["-n", "1", "app", ":", "-unknown", "b"],
        ["-n", "1", "app", ":"],
        ["-n", "1", ":", "app"],
    ],
)
def test_what_is_not_understood_passes_untouched(launcher: Launcher, arguments: list[str]) -> None:
    asked = {"MPI_TRAINER_RANK_WRAPPER": WRAP}
    assert launcher.given(*arguments, **asked) == arguments


TAG = "-prepend-pattern=%r:"
TAG5 = ["--tag-output"]


@pytest.mark.parametrize("wrapper", [[], [WRAP]], ids=["bare", "wrapped"])
@pytest.mark.parametrize(
    ("given", "added"),
    [
        (["-n", "2"], [TAG]),
        (["-l"], []),
        (["--prepend-rank"], []),
        (["-prepend-pattern", "%r:"], []),
    ],
)
def test_a_rank_prefix_is_asked_for_once(
    launcher: Launcher, wrapper: list[str], given: list[str], added: list[str]
) -> None:
    """Hydra refuses a repeated prefix option and the run would fail."""
    env = {"MPI_TRAINER_TAG_OPTION": TAG}
    if wrapper:
        env["MPI_TRAINER_RANK_WRAPPER"] = WRAP
    assert launcher.given(*given, "app", **env) == [*added, *given, *wrapper, "app"]


def test_the_programs_own_prefix_option_is_not_the_launchers(launcher: Launcher) -> None:
    env = {"MPI_TRAINER_TAG_OPTION": TAG, "MPI_TRAINER_RANK_WRAPPER": WRAP}
    assert launcher.given("ls", "-l", **env) == [TAG, WRAP, "ls", "-l"]


def test_another_dialect_names_its_own_tag_option(launcher: Launcher) -> None:
    env = {"MPI_TRAINER_TAG_OPTION": "--tag-output"}
    given = ["--np", "2", "ls", "-l"]
    assert launcher.given(*given, **env) == ["--tag-output", *given]


@pytest.mark.parametrize(
    ("version", "next_to_it", "added"),
    [
        ("4.1.4", "orted", []),
        ("3.1.6", "orted", []),
        ("5.0.11", "", TAG5),
        ("4.1.4", "prterun", TAG5),
    ],
)
def test_open_mpi_4_marks_nothing_without_a_copier_of_each_rank(
    launcher: Launcher, version: str, next_to_it: str, added: list[str]
) -> None:
    """It would drop short lines."""
    answer = f'#!/bin/sh\n[ "$1" != --version ] || exec echo "mpirun (Open MPI) {version}"\n'
    launcher.real.write_text(answer + launcher.real.read_text())
    (launcher.real.parent / next_to_it).touch()
    env = {"MPI_TRAINER_TAG_OPTION": "--tag-output", "OMPI_MCA_orte_fork_agent": "/other/rank"}
    assert launcher.given("--np", "2", "ls", "-l", **env) == [*added, "--np", "2", "ls", "-l"]


def test_what_a_script_captures_is_not_marked(launcher: Launcher) -> None:
    script = 'count=$("$@"); printf "%s\\0" "$count"'
    path = f"{launcher.shim.parent}:{launcher.real.parent}:{os.environ['PATH']}"
    command = [*launcher.shell, str(LAUNCH), "sh", "-c", script, "sh"]
    done = run(
        [*command, *launcher.shell, str(launcher.shim), "app"],
        {"PATH": path, "MPI_TRAINER_TAG_OPTION": TAG},
    )
    assert (done.stdout, done.returncode) == (b"app\0", 0)


def test_a_command_that_is_not_there_is_said_to_be(plain_shell: list[str]) -> None:
    done = run([*plain_shell, str(LAUNCH), "no-such-command"], {"PATH": os.environ["PATH"]})
    assert done.returncode == 127
    assert done.stderr == b"launcher: no-such-command: command not found\n"


def test_a_wrapper_killed_before_its_rank_begins_leaves_nobody_who_holds_its_output(
    plain_shell: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mpirun waits for the end of that output: Intel's did so for ever when one rank failed while
    another was just being started. Killed a little later every time, all through the start."""
    monkeypatch.setenv(KEEP, "1")
    env = base({**RANKED, "MPI_TRAINER_RANK_DIR": str(tmp_path)})
    for try_ in range(40):
        wrapper = subprocess.Popen(
            [*plain_shell, RANK, "sleep", "60"],
            env=env,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert wrapper.stderr is not None
        time.sleep(try_ * 0.0005)  # the moment of the kill, which is what is tried
        os.killpg(wrapper.pid, signal.SIGKILL)
        wrapper.wait(10)
        ready, _, _ = select.select([wrapper.stderr], [], [], 10)
        assert ready, f"still held after {try_ * 0.5} ms"
        assert wrapper.stderr.read() == b""
        wrapper.stderr.close()
