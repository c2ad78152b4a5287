"""What a host tells the launcher of its ranks: watch.sh, under every POSIX shell found."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.layout.agent import scripts
from tests.local.odh import until
from tests.local.test_rank_wrapper import SHELLS

PARTS = ("watch", "processes", "waiting", "places")
ABOUT = "rank=3\nsize=4\nworld=w\nby=openmpi\nhost=h\npid={0}\nwrapper={0}\nparent=1\nstart=7\n"
ENDED = "end=8\nat=800\noom=0\norphan=0\nstatus=0\n"
NAME = "3.h.77.7"


class Watch:
    """The script, with the folder that ranks leave their records in."""

    def __init__(self, shell: list[str], folder: Path) -> None:
        agent, scratch = folder / "agent", folder / "scratch"
        self.ranks = scratch / "ranks"
        self.ranks.mkdir(parents=True)
        agent.mkdir()
        for name in PARTS:
            (agent / name).write_text(scripts.text(name))
        self._said = folder / "said"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [*shell, str(agent / "watch"), "start"],
                env={"PATH": os.environ["PATH"], "MPI_TRAINER_SCRATCH": str(scratch)},
                stdin=subprocess.PIPE,
                stdout=said,
            )
        until("it watches", lambda: self.told("hello"))

    def told(self, *kinds: str) -> list[str]:
        lines = self._said.read_text().splitlines()
        return [line for line in lines if line.split()[0] in kinds]

    def left(self, kind: str, text: str) -> None:
        """A record, whole from the first moment."""
        unfinished = self.ranks / ".unfinished"
        unfinished.write_text(text)
        unfinished.rename(self.ranks / f"{NAME}.{kind}")

    def end(self) -> None:
        self._process.communicate(b"bye\n", timeout=30)


@pytest.fixture(params=SHELLS, ids=lambda shell: str(shell[0]))
def watch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watch]:
    found = Watch(request.param, tmp_path)
    yield found
    found.end()


def test_a_rank_that_comes_and_goes_during_one_look_is_told_from_its_start(watch: Watch) -> None:
    """OBS-2: all of it is there between two steps of a look, which is slow on a busy machine."""
    pipe = watch.ranks / "held.daemon"
    os.mkfifo(pipe)
    with pipe.open("w") as held:  # a look is in its midst now, and waits for this
        about = ABOUT.format(os.getpid())
        watch.left("start", about)
        watch.left("raised", f"pid={os.getpid()}\nwhere=x.py:1\nwhat=ValueError\n")
        watch.left("end", about + ENDED)
        print("status=3", file=held)
    until("its end is told", lambda: watch.told("end"))
    kinds = [line.split()[0] for line in watch.told("daemon", "start", "raised", "end")]
    assert kinds == ["daemon", "start", "raised", "end"]
    assert all("world=w" in line for line in watch.told("start", "raised", "end"))
