"""Whether a job that has been quiet for long seems to be stuck: which ranks wait in which call, and
which one has not come. Pure.

Every rank must be known to wait: it has used no CPU all the time, or has been in one call of MPI
for the whole time between two looks. CPU alone tells nothing, because waiting ranks poll. Where one
may compute there is no suspicion, whatever the others do: a false alarm is worse than a miss. So a
line that calls something besides MPI which may take long counts as computing, and so does one that
calls nothing known.

Guarantee: what is said is bounded and printable, and no text of a program but the names of its
files, functions and calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from mpi_trainer.diagnose.finding import Finding
from mpi_trainer.layout.agent.quiet import Frame, Place, Quiet
from mpi_trainer.layout.agent.summary import Ranks

CAUSE: Final = "NoProgress"
WORDS: Final = "seems to be stuck: "
"""what stands before it in a condition, after the job's own words"""
REMEDY: Final = (
    "See the whole stacks with `odh mpijob stack NAME`: all ranks must call the same collectives "
    "in the same order, and every receive needs its send. Nothing was ended: delete the job, or "
    "set activeDeadlineSeconds."
)
NAMED: Final = 4
"""places that a text names"""
_LONGEST: Final = 60

# Methods of mpi4py, in either spelling (comm.Allreduce, comm.allreduce).
_COLLECTIVES: Final = (
    *("Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Gatherv", "Allgather", "Allgatherv"),
    *("Scatter", "Scatterv", "Alltoall", "Alltoallv", "Alltoallw", "Scan", "Exscan"),
    *("Reduce_scatter", "Reduce_scatter_block"),
)
_OTHERS: Final = (
    *("Recv", "Send", "Ssend", "Sendrecv", "Sendrecv_replace", "Probe", "Mprobe"),
    *("Wait", "Waitall", "Waitany", "Waitsome", "Fence"),
)
_MPI: Final = {name.lower(): f"MPI_{name}" for name in (*_COLLECTIVES, *_OTHERS)}
_INIT: Final = "MPI_Init"
_COLLECTIVE_CALLS: Final = frozenset((_INIT, *(f"MPI_{name}" for name in _COLLECTIVES)))
# Those of torch.distributed and Horovod are functions of their modules.
_LIBRARIES: Final = {"torch/distributed/": "torch.distributed", "horovod/": "horovod"}
_OF_LIBRARIES: Final = frozenset(
    (
        *("all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all"),
        *("all_to_all_single", "allgather", "allreduce", "alltoall", "barrier", "broadcast"),
        *("broadcast_object_list", "gather", "join", "monitored_barrier", "recv", "reduce"),
        *("reduce_scatter", "reduce_scatter_tensor", "scatter", "send", "synchronize", "wait"),
    )
)
# Whose methods have the same names and compute.
_COMPUTING: Final = frozenset(
    ("np", "numpy", "cp", "cupy", "jnp", "jax", "torch", "tf", "F", "pd", "functools", "operator")
)
# Whose methods have the same names and wait for something else.
_NO_MPI: Final = ("sock", "conn", "pipe", "queue", "proc", "event", "thread", "lock", "future")
# What arguments are made with, in no time.
_QUICK: Final = frozenset(
    (
        *(
            "abs",
            "array",
            "asarray",
            "bool",
            "copy",
            "dict",
            "empty",
            "float",
            "format",
            "get_rank",
        ),
        *("get_size", "int", "item", "len", "list", "max", "min", "ones", "print", "range", "set"),
        *("str", "sum", "tuple", "zeros"),
    )
)


class Group(msgspec.Struct, frozen=True):
    """Ranks that wait at the same place. `call` is empty where it is not known."""

    ranks: Ranks
    hosts: tuple[str, ...] = ()
    call: str = ""
    place: str = ""
    idle: bool = False
    missing: bool = False
    """whether others wait for them in a collective"""

    def who(self) -> str:
        """`rank 2 on train-worker-1`, `ranks 0-1,3`."""
        if len(self.ranks) > 1:
            return f"ranks {_cut(str(self.ranks))}"
        return f"rank {self.ranks}" + (f" on {self.hosts[0]}" if self.hosts else "")

    def where(self) -> str:
        """`wait in MPI_Recv (train.py:37)`, as of one rank or several."""
        one = len(self.ranks) == 1
        place = f" ({self.place})" if self.place and self.call else ""
        if self.call:
            return f"{'waits' if one else 'wait'} in {self.call}{place}"
        used = f"{'uses' if one else 'use'} no CPU"
        return f"{used} at {self.place}" if self.place else used


class Suspicion(msgspec.Struct, frozen=True):
    seconds: int
    groups: tuple[Group, ...]

    def text(self) -> str:
        """One line: for how long, which ranks wait where, and which one is missing."""
        return (
            f"no output and no progress for {_duration(self.seconds)}: {'; '.join(self._parts())}"
        )

    def _parts(self) -> Iterator[str]:
        for group in self.groups[:NAMED]:
            missing = "have" if len(group.ranks) > 1 else "has"
            come = f" {missing} not come there:" if group.missing else ""
            yield f"{group.who()}{come} {group.where()}"
        more = len(self.groups) - NAMED
        if more > 0:
            yield f"{sum(len(one.ranks) for one in self.groups[NAMED:])} more ranks elsewhere"


def suspicion(quiet: Quiet) -> Suspicion | None:
    """None where a rank may compute."""
    groups = [_group(place) for place in quiet.places]
    known = [group for group in groups if group is not None]
    if not known or len(known) < len(groups):
        return None
    together = max(known, key=lambda one: (_is_collective(one.call), len(one.ranks)))
    if not _is_collective(together.call):
        return Suspicion(quiet.seconds, tuple(sorted(known, key=_order)))
    others = sorted((one for one in known if one is not together), key=_order)
    missing = (msgspec.structs.replace(one, missing=one.call != together.call) for one in others)
    return Suspicion(quiet.seconds, (together, *missing))


def text(quiet: Quiet | None) -> str:
    """Empty where there is nothing to suspect."""
    found = suspicion(quiet) if quiet is not None else None
    return found.text() if found is not None else ""


def finding(text: str) -> Finding:
    """A suspicion as `explain` shows it: of a job that runs, and of no failure."""
    return Finding(CAUSE, "suspicion", f"the job {WORDS}{text}", REMEDY)


def in_message(message: str) -> str:
    """The suspicion in a condition's message; empty where there is none."""
    return message.partition(WORDS)[2].removesuffix(".")


def _order(group: Group) -> tuple[int, int]:
    """The fewest ranks first: those are most often the ones to look at."""
    return len(group.ranks), group.ranks.runs[0][0]


def _group(place: Place) -> Group | None:
    """None where the ranks may compute, or it is not known which they are."""
    if not len(place.ranks):
        return None
    call = _waits_in(place)
    if not place.idle and not (call and (place.same or place.ending)):
        return None
    return Group(place.ranks, place.on, call, _shown(place.frames), place.idle)


def _waits_in(place: Place) -> str:
    """The call in which ranks at this place wait; empty where none is known."""
    if place.ending:
        return "MPI_Finalize" if place.mpi else ""
    if not place.frames:
        return ""
    return _of_library(place.frames[0]) or (_of_mpi(place) if place.mpi else "")


def _of_library(inner: Frame) -> str:
    found = (name for part, name in _LIBRARIES.items() if part in inner.file)
    name = next(found, "")
    return f"{name}.{inner.function}" if name and inner.function in _OF_LIBRARIES else ""


def _of_mpi(place: Place) -> str:
    """By the names in the line: one of MPI's, and none that may take long."""
    if place.calls == ("import.mpi4py",):
        return _INIT
    if place.frames[0].file.startswith("<"):
        return ""
    waiting = [found for one in place.calls if (found := _mpi_name(one))]
    known = all(_mpi_name(one) or _last(one) in _QUICK for one in place.calls)
    return waiting[0] if waiting and known else ""


def _mpi_name(call: str) -> str:
    """`comm.allreduce` is MPI_Allreduce; `np.add.reduce`, `conn.recv` and `wait` alone are none."""
    receiver, _, method = call.rpartition(".")
    if not receiver or receiver.partition(".")[0] in _COMPUTING:
        return ""
    if any(part in _last(receiver).lower() for part in _NO_MPI):
        return ""
    return _MPI.get(method.lower(), "")


def _is_collective(call: str) -> bool:
    return call in _COLLECTIVE_CALLS or "." in call


def _last(call: str) -> str:
    return call.rpartition(".")[2]


def _shown(frames: tuple[Frame, ...]) -> str:
    """`train.py:41`: the innermost line that is the user's own, else the innermost of a library."""
    files = [one for one in frames if not one.file.startswith("<")]
    own = (one for one in files if not _is_library(one.file))
    found = next(own, files[0] if files else None)
    if found is None:
        return ""
    name = found.file.rpartition("/")[2]
    return f"{_cut(name)}:{found.line}" if name.isprintable() else ""


def _is_library(file: str) -> bool:
    return any(part in file for part in ("/site-packages/", "/dist-packages/", "/lib/python"))


def _duration(seconds: int) -> str:
    """`6m12s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
