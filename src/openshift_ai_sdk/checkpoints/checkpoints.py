"""The checkpoints of one training: which is the newest, when to save, and saving by all ranks.

Ranks meet in the folder only. A rank tells that its part is on disk by a small file beside it, or
that it gave up by an empty one; rank 0 looks for them, and sets the marker.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from .checkpoint import (
    ATTEMPTS,
    MARKER,
    NOTHING,
    STEPS,
    Checkpoint,
    Name,
    as_part,
    judged,
    mark,
    marked,
    names,
    part_name,
)
from .files import Broken, State, number, read_whole, sync_folder, write_part, write_whole, writer

PATIENCE: Final = 600.0
"""seconds that rank 0 waits for the parts of others, and they, when they stop, for its marker"""

_ATTEMPT: Final = "attempt"
_ENVIRONMENT: Final = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("RANK", "WORLD_SIZE"),
)
_FULL: Final = (OSError, RuntimeError)
"""what a write that has no room raises: torch.save tells it by RuntimeError"""

_log = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints of one training in a folder of its own. Make it before the first step.

    rank, size: this process and how many there are. Without them the variables of Open MPI, MPICH,
        Intel MPI or torchrun say it; without those it is the only one.
    every: steps from one checkpoint to the next. keep: how many whole ones stay; the folder needs
        room for one more.
    agree: gives every rank the smallest number that any rank gave, such as
        `lambda number: world.allreduce(number, op=MPI.MIN)`. With it all ranks take the same
        checkpoint and stop at the same step; `Checkpoints()`, `newest` and `due` then communicate,
        so every rank has to call them alike. `save` never does, and may run in a thread.
        Without it the ranks exchange messages of their own between this and their first `save`,
        `newest` reads the parts of all ranks, and a stop is seen by each rank for itself.

    SIGTERM no longer ends the program, unless this is made outside of the main thread: the loop has
    to ask `asked_to_stop`.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        rank: int | None = None,
        size: int | None = None,
        every: int = 1,
        keep: int = 2,
        agree: Callable[[int], int] | None = None,
    ) -> None:
        found_rank, found_size = _place()
        self.rank = found_rank if rank is None else rank
        self.size = found_size if size is None else size
        if not 0 <= self.rank < self.size:
            raise ValueError(f"rank {self.rank} of {self.size}: give both, rank from 0")
        if every < 1 or keep < 1:
            raise ValueError(f"every={every}, keep={keep}: both are at least 1")
        self.folder, self.every, self.keep = Path(folder), every, keep
        self._agree = agree
        self._signalled = self._stopping = False
        self._last = (-1, False)
        self._passed_over: frozenset[Name] = frozenset()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._begun = self._begin()
        self._catch_sigterm()

    # --- which attempt this is --------------------------------------------------------------------

    def _begin(self) -> tuple[int, int] | None:
        """Number and token of this attempt; None where only rank 0 can know them."""
        attempt, token = NOTHING, NOTHING
        if self.rank == 0:
            stored = self._stored_attempt() or (0, 0)
            attempt = 1 + max([stored[0], *(name.attempt for name in names(self.folder))])
            if attempt >= ATTEMPTS:
                raise ValueError(f"{self.folder} has had {ATTEMPTS - 1} attempts: use a new one")
            token = int.from_bytes(os.urandom(6), "big")
            for left in self.folder.glob(f".{_ATTEMPT}.*"):
                left.unlink(missing_ok=True)
            write_whole(self.folder / _ATTEMPT, {"attempt": attempt, "token": token})
        if self._agree is not None:
            return self._agree(attempt), self._agree(token)
        return (attempt, token) if self.rank == 0 else None

    def _stored_attempt(self) -> tuple[int, int] | None:
        try:
            said = read_whole(self.folder / _ATTEMPT)
            return number(said, "attempt", ATTEMPTS), number(said, "token", 1 << 48)
        except (OSError, Broken):
            return None

    def _current(self) -> tuple[int, int] | None:
        return self._begun or self._stored_attempt()

    @property
    def attempt(self) -> int:
        """Which start of this training it is, from 1. Without `agree` the other ranks know it only
        after a message from rank 0."""
        return (self._current() or (0, 0))[0]

    # --- the newest that is whole -----------------------------------------------------------------

    def newest(self) -> Checkpoint | None:
        """The newest whole checkpoint, or None. What is not whole is passed over, with a warning
        that says why; what was never finished, without one."""
        (reached, found), bound = self._newest_up_to(NOTHING), NOTHING
        while self._agree is not None:
            smallest = self._agree(reached)
            if smallest == bound:
                break
            bound = smallest
            if reached > bound:
                reached, found = self._newest_up_to(bound)
        self._passed_over = frozenset(n for n in names(self.folder) if n.number > reached)
        return found

    def _newest_up_to(self, bound: int) -> tuple[int, Checkpoint | None]:
        """The newest whole one and its number, 0 for none."""
        # With `agree` the ranks share the reading; without it each must come to the same end.
        stride = self.size if self._agree else 1
        for name in sorted(names(self.folder), reverse=True):
            if name.number > bound:
                continue
            folder = self.folder / str(name)
            try:
                return name.number, judged(folder, name, self.rank, stride)
            except FileNotFoundError:
                continue
            except (OSError, Broken) as error:
                if self.rank in (0, getattr(error, "part", 0)):
                    _log.warning("checkpoint %s passed over: %s", folder, error)
        return 0, None

    # --- when to save -----------------------------------------------------------------------------

    def due(self, step: int) -> bool:
        """Whether to save now that `step` steps are done: by `every`, and when the job stops."""
        if self._agree is not None:
            self._stopping = self._agree(0 if self._signalled else 1) == 0
        return step % self.every == 0 or self.asked_to_stop

    @property
    def asked_to_stop(self) -> bool:
        """Whether a rank has got SIGTERM: save, and end with a status other than 0. With `agree` it
        changes in `due` alone, on all ranks at the same step."""
        return self._signalled if self._agree is None else self._stopping

    def _catch_sigterm(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGTERM)

        def note(number: int, frame: Any) -> None:
            self._signalled = True
            if callable(before):
                before(number, frame)

        signal.signal(signal.SIGTERM, note)

    # --- saving -----------------------------------------------------------------------------------

    def save(self, step: int, state: State) -> bool:
        """Writes this rank's part of the checkpoint after `step` steps; every rank has to call it.

        state: arrays by name, bytes, a function that writes to the path it is given (such as
            `lambda path: torch.save(model.state_dict(), path)`), or None for nothing.

        Rank 0 returns True when the checkpoint is whole, another rank when its part is written or,
        once asked to stop, when the checkpoint is whole. Where that fails, for want of room for
        example, a warning says why, the answer is False and the checkpoint before stays. The last
        step is not written a second time.
        """
        last, answer = self._last
        if not max(last, 0) <= step < STEPS:
            raise ValueError(f"step {step}: the last was {last}, and none is over {STEPS - 1}")
        if step > last:
            answer = self._save(step, writer(state))
            self._last = step, answer
        return answer

    def _save(self, step: int, write: Callable[[Path], object] | None) -> bool:
        folder = None
        try:
            _until(lambda: self._current() is not None, f"rank 0 has not begun in {self.folder}")
            # From here on it is known: what a later attempt stores there is not of this one.
            self._begun = attempt, token = self._current() or (0, 0)
            name = Name(attempt, step, token)
            folder = self.folder / str(name)
            folder.mkdir(exist_ok=True)
            part = write_part(folder / part_name(self.rank), write) if write else None
            write_whole(folder / _written_name(self.rank), {"part": part})
            if self.rank == 0:
                self._complete(folder, name)
            elif self.asked_to_stop:
                _until((folder / MARKER).exists, f"{folder} has no marker of rank 0")
        except (*_FULL, Broken) as error:
            _log.warning("step %d is not saved, the checkpoint before stays: %s", step, error)
            if folder is not None:
                self._give_up(folder)
            return False
        if self.rank == 0:
            with suppress(OSError):
                self._remove_old()
        return True

    def _complete(self, folder: Path, name: Name) -> None:
        """Waits for the parts of all ranks, then sets the marker. It looks for what others wrote in
        the folder's list: over NFS a name that was missing may be remembered so."""
        wanted = {_written_name(rank) for rank in range(self.size)}
        failed = {_failed_name(rank) for rank in range(self.size)}

        def all_there() -> bool:
            here = {path.name for path in folder.iterdir()}
            if here & failed:
                raise Broken(f"{min(here & failed)}: that rank says why")
            return wanted <= here

        _until(all_there, f"parts of other ranks are missing in {folder}")
        said = [read_whole(folder / _written_name(rank)) for rank in range(self.size)]
        sync_folder(self.folder)
        mark(folder, name, [as_part(each.get("part")) for each in said])

    def _give_up(self, folder: Path) -> None:
        """Frees the room of what will not be whole; rank 0 waits no longer."""
        with suppress(OSError):
            if self.rank == 0:
                shutil.rmtree(folder)
            else:
                (folder / part_name(self.rank)).unlink(missing_ok=True)
                (folder / _failed_name(self.rank)).touch()

    def _remove_old(self) -> None:
        """Keeps the newest; what a newer version or another program has made stays too, and what a
        later attempt is about to save. What `newest` has passed over stands for no whole one."""
        whole = 0
        for name in sorted(names(self.folder), reverse=True):
            folder, passed_over = self.folder / str(name), name in self._passed_over
            with suppress(OSError, Broken):
                with suppress(FileNotFoundError):
                    marked(folder, name)
                    whole += not passed_over
                enough = whole + passed_over > self.keep
                if enough or (whole and not (folder / MARKER).exists()):
                    shutil.rmtree(folder)


def _place() -> tuple[int, int]:
    """Rank and size as the variables of who started this process say."""
    for rank, size in _ENVIRONMENT:
        if os.environ.get(rank, "").isdecimal() and os.environ.get(size, "").isdecimal():
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def _written_name(rank: int) -> str:
    return f"rank-{rank:06d}.written"


def _failed_name(rank: int) -> str:
    return f"rank-{rank:06d}.failed"


def _until(fact: Callable[[], bool], otherwise: str) -> None:
    """Waits for what another rank does."""
    deadline, pause = time.monotonic() + PATIENCE, 0.005
    while not fact():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{otherwise} after {PATIENCE:.0f} s")
        time.sleep(pause)
        pause = min(2 * pause, 0.5)
