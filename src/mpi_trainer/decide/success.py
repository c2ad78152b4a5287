"""Whether a launcher that returned 0 really means success: the ranks decide.

Exit code 0 alone is not evidence: Open MPI 5 returns it after losing a worker, and a hostfile
that is not read puts every rank on the launcher. Where ranks were reported, they must have ended
well and on the hosts they were meant for. Where none was reported (the agent is off, or the
command is no MPI program) the exit code is all there is.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.decide import reasons
from mpi_trainer.decide.observed import Failure, Observed, ObservedRank

_NO_RANK = (
    "MPI started no rank: only the launcher's own command ran, and the {} workers did nothing. "
    "Start the program with mpirun."
)


class ExpectedRanks(msgspec.Struct, frozen=True):
    """Where ranks are meant to run: so many workers of so many slots each, and perhaps the
    launcher."""

    launcher: str
    workers: int
    slots: int
    launcher_works: bool


def is_claimed(expected: ExpectedRanks, observed: Observed) -> bool:
    """Whether the launcher of the current attempt returned 0 and, where every pod does a part of
    the work, all the others too."""
    launcher = observed.launcher()
    if launcher is None or launcher.phase != pod_status.SUCCEEDED:
        return False
    done = sum(1 for p in observed.workers if p.phase == pod_status.SUCCEEDED)
    return not observed.every_pod_works or done >= expected.workers


def hidden_failure(expected: ExpectedRanks, observed: Observed) -> Failure | None:
    """Why the attempt failed although its launcher returned 0; None when it did not."""
    if not is_claimed(expected, observed):
        return None
    attempt = observed.record.attempt
    ranks = tuple(r for r in observed.ranks if r.attempt == attempt)
    bad = tuple(
        sorted(
            (r for r in ranks if r.end is not None and not r.end.well),
            key=lambda r: (r.ended is None, r.ended, r.rank),
        )
    )
    if bad:
        return Failure(attempt, reasons.RANK_FAILED, _ended_badly(bad), bad[0].pod)
    lost = tuple(r for r in ranks if r.end is None)
    if lost:
        text = (
            f"The launcher returned 0, but the end of {len(lost)} of {len(ranks)} ranks was never "
            f"seen (first: rank {lost[0].rank} on {lost[0].pod}); its host or MPI daemon was lost."
        )
        return Failure(attempt, reasons.RANKS_LOST, text, lost[0].pod)
    foreign = tuple(r for r in ranks if r.foreign)
    if foreign:
        return Failure(attempt, reasons.WORLDS_OF_ONE, _worlds_of_one(foreign), foreign[0].pod)
    if ranks and _all_on_launcher(expected, ranks):
        text = (
            f"All {len(ranks)} ranks ran on the launcher and none on the {expected.workers} "
            "workers: MPI did not read the hostfile. Start the program with mpirun without a host "
            "list of its own, and use one MPI installation throughout."
        )
        return Failure(attempt, reasons.PLACEMENT_WRONG, text, ranks[0].pod)
    return None


def placement_warning(expected: ExpectedRanks, observed: Observed) -> str:
    """Where the ranks of a success ran, if that is unusual, or that there were none; it may be
    meant so."""
    ranks = tuple(r for r in observed.ranks if r.attempt == observed.record.attempt)
    if not expected.workers:
        return ""
    launcher = expected.launcher
    if not ranks:
        ended = observed.launcher()
        none = ended is not None and ended.end is not None and ended.end.unstarted
        return _NO_RANK.format(expected.workers) if none else ""
    there = Counter(r.pod for r in ranks)
    if there.get(launcher) and not expected.launcher_works:
        return f"{there[launcher]} of {len(ranks)} ranks ran on the launcher, which is no worker."
    crowded = sorted(pod for pod, count in there.items() if count > max(expected.slots, 1))
    idle = expected.workers - sum(1 for pod in there if pod != launcher)
    if crowded and idle > 0:
        pod = crowded[0]
        return (
            f"{there[pod]} ranks ran on {pod}, which has slots for {expected.slots}, "
            f"while {idle} of {expected.workers} workers ran none."
        )
    return ""


def _worlds_of_one(foreign: tuple[ObservedRank, ...]) -> str:
    return (
        f"{len(foreign)} ranks used another MPI library than the mpirun that started them, so each "
        "was rank 0 in a world of its own and none has met another. Use the mpirun of the MPI that "
        "the program was built with, and the same mpiImplementation in the job."
    )


def _ended_badly(bad: tuple[ObservedRank, ...]) -> str:
    first = bad[0]
    words = first.end.text() if first.end else ""
    more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
    return f"Rank {first.rank} on {first.pod} ended with {words}{more}; the launcher returned 0."


def _all_on_launcher(expected: ExpectedRanks, ranks: tuple[ObservedRank, ...]) -> bool:
    return bool(
        expected.workers
        and not expected.launcher_works
        and all(r.pod == expected.launcher for r in ranks)
    )
