"""A rank of Open MPI 4 whose short lines are made longer: rank.sh and relay.py, under every shell.

Here is what Open MPI 4 gives a rank: a terminal for its output, and a pipe for its errors. The
danger is what the program sees of that, and a process that stays.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from ast import literal_eval
from pathlib import Path
from shutil import which

import pytest

from mpi_trainer.layout.agent import scripts
from tests.local.odh import until
from tests.local.test_rank_wrapper import SHELLS, records

WORD = b"\x1e9a8b7c6d-1234-1234-1234-123456789abc"
PYTHON = [sys.executable, "-c"]


class Rank:
    """A rank and both its outputs, read as Open MPI reads them: at once, until it stops."""

    def __init__(self, shell: list[str], folder: Path, *program: str | bytes, **env: str) -> None:
        self.folder = folder / "ranks"
        self.folder.mkdir()
        for name in ("rank", "relay"):
            (folder / name).write_text(scripts.text(name))
        self.out, out = os.openpty()
        self.err, err = os.pipe()
        own = {"PATH": os.environ["PATH"], **env}
        ours = {"OMPI_COMM_WORLD_RANK": "1", "MPI_TRAINER_RANK_DIR": str(self.folder)}
        self.process = subprocess.Popen(
            [which(shell[0]) or "", *shell[1:], str(folder / "rank"), *program],
            env={**own, **ours, "OMPI_MPI_TRAINER_WORD": WORD.decode()},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,
        )
        os.close(out)
        os.close(err)

    def read(self, seconds: float = 20) -> tuple[bytes, bytes]:
        """What comes until nobody writes any more; Open MPI's terminal makes two bytes of a
        newline."""
        texts = {self.out: b"", self.err: b""}
        open_ = [*texts]
        while open_:
            ready = select.select(open_, [], [], seconds)[0]
            assert ready, texts
            for one in ready:
                try:
                    data = os.read(one, 4096)
                except OSError:
                    data = b""
                texts[one] += data
                if not data:
                    open_.remove(one)
        return texts[self.out].replace(b"\r\n", b"\n"), texts[self.err]

    def copiers(self) -> list[int]:
        """Processes that hold the padding."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if WORD in words and os.fsencode(self.folder) in words:
                found.append(int(folder.name))
        return found

    def close(self) -> None:
        for one in (self.out, self.err):
            os.close(one)
        self.process.wait(10)
        until("the copier's end", lambda: not self.copiers())


@pytest.fixture(params=SHELLS, ids=lambda shell: str(shell[0]))
def shell(request: pytest.FixtureRequest) -> list[str]:
    found: list[str] = request.param
    return found


def test_short_lines_are_long_and_nothing_else_is_changed(shell: list[str], tmp_path: Path) -> None:
    """Lines, pieces, binary bytes and a line without an end; on both outputs."""
    program = """
import os
any_ = bytes({*range(256)} - {10, 13})
for number in (1, 2):
    os.write(number, b"1\\n" * 5000)
    for piece in (b"a ", b"b ", b"c\\n", b"x" * 100000 + b"\\n", any_, b"end"):
        os.write(number, piece)
"""
    rank = Rank(shell, tmp_path, *PYTHON, program)
    wrote = (
        b"1\n" * 5000
        + b"a b c\n"
        + b"x" * 100000
        + b"\n"
        + bytes({*range(256)} - {10, 13})
        + b"end"
    )
    for text in rank.read():
        assert all(len(line) >= 31 for line in text.split(b"\n")[:-1])
        assert text.replace(WORD, b"") == wrote
    rank.close()


def test_the_program_is_the_rank_and_sees_what_it_would_see(
    shell: list[str], tmp_path: Path
) -> None:
    program = """
import os, sys
print(os.getpid(), os.getppid(), os.getpgrp(), os.isatty(1), os.isatty(2), sys.argv[1:])
print(sorted(os.listdir("/proc/self/fd"))[:-1])
print(open("/proc/self/environ", "rb").read())
"""
    ignored = ["sh", "-c", 'grep SigIgn /proc/$$/status; exec "$@"', "sh"]
    arguments = [b"", b"a b", b"\xff$x", b"*"]
    rank = Rank(shell, tmp_path, *ignored, *PYTHON, program, *arguments, NAME="\udcfe", LANG="C")
    out, err = rank.read()
    rank.close()
    (start,) = records(rank.folder, "start")
    signals, processes, opened, variables, _ = out.replace(WORD, b"").decode().split("\n")
    wrapper = str(rank.process.pid)
    shown = str([os.fsdecode(one) for one in arguments])
    assert err == b""
    status = subprocess.check_output(["grep", "SigIgn", "/proc/self/status"], text=True)
    assert signals.split() == status.split()
    assert processes == " ".join([start["pid"], wrapper, wrapper, "True", "False", shown])
    assert opened == "['0', '1', '2']"
    seen = dict(one.partition(b"=")[::2] for one in literal_eval(variables).split(b"\0"))
    assert seen[b"NAME"] == b"\xfe"
    assert {b"LC_CTYPE", b"OMPI_MPI_TRAINER_WORD"} & seen.keys() == set()


@pytest.mark.parametrize(
    ("ends", "how"), [("exit 0", "status"), ("exit 7", "status"), ("kill -9 $$", "signal")]
)
def test_all_is_handed_on_before_the_wrapper_ends(
    shell: list[str], tmp_path: Path, ends: str, how: str
) -> None:
    rank = Rank(shell, tmp_path, "sh", "-c", f"seq 20000; {ends}")
    out, _ = rank.read()
    rank.close()
    assert out.replace(WORD, b"").split() == [b"%d" % i for i in range(1, 20001)]
    (end,) = records(rank.folder, "end")
    assert how in end
    assert [path.name for path in rank.folder.iterdir() if path.name.startswith(".")] == []


def test_a_kill_of_the_whole_group_loses_nothing(shell: list[str], tmp_path: Path) -> None:
    rank = Rank(shell, tmp_path, "sh", "-c", "seq 3000; kill -KILL 0")
    out, _ = rank.read()
    rank.close()
    assert out.replace(WORD, b"").split() == [b"%d" % i for i in range(1, 3001)]


def test_what_the_rank_has_left_holds_no_wrapper_and_is_still_read(
    shell: list[str], tmp_path: Path
) -> None:
    rank = Rank(shell, tmp_path, "sh", "-c", "(sleep 3; echo late) & echo early; exit 3")
    assert rank.process.wait(2.5) == 3
    assert rank.read()[0].replace(WORD, b"") == b"early\nlate\n"
    rank.close()


def test_nobody_stays_whose_reader_is_gone(shell: list[str], tmp_path: Path) -> None:
    """Not even where the program has nothing to say."""
    rank = Rank(shell, tmp_path, "sh", "-c", "trap '' HUP; exec sleep 30")
    until("a copier", lambda: len(rank.copiers()) == 1)
    os.close(rank.out)
    os.close(rank.err)
    until("the copier's end", lambda: not rank.copiers())
    os.killpg(rank.process.pid, signal.SIGKILL)
    rank.process.wait(10)


def test_a_prompt_comes_at_once(shell: list[str], tmp_path: Path) -> None:
    rank = Rank(shell, tmp_path, "sh", "-c", "printf 'name? '; sleep 2; echo thanks")
    assert select.select([rank.out], [], [], 10)[0]
    assert os.read(rank.out, 100) == b"name? "
    before = time.monotonic()
    assert rank.read()[0] == b"thanks" + WORD + b"\n"
    assert time.monotonic() - before > 1
    rank.close()


def test_a_program_that_is_not_there_is_said_to_be(shell: list[str], tmp_path: Path) -> None:
    rank = Rank(shell, tmp_path, "/no/such/program")
    _, err = rank.read()
    rank.close()
    assert b"/no/such/program" in err
    assert b"not found" in err or b"No such file" in err
    assert rank.process.returncode == 127


def test_where_there_is_no_python_the_rank_runs_and_the_danger_is_told(
    shell: list[str], tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "mkfifo", "rm", "mv", "date", "grep", "sleep"):
        (programs / name).symlink_to(f"/bin/{name}")
    rank = Rank(shell, tmp_path, "sh", "-c", "echo short", PATH=str(programs))
    out, err = rank.read()
    rank.close()
    assert out == b"short\n"
    assert err.startswith(b"mpi-agent: no python3 on ")
