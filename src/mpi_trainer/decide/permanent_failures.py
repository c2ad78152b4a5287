"""Failures that would be the same at every try, and therefore end a job at the first (L-4).

An image that has no valid name, a program that is not there or may not be run, arguments that a
program refuses. Everything else may be different the next time. Danger: a program is found by what
shells and MPI say of it, so a program that ends with 126 or 127 for reasons of its own is not tried
again either.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.decide import cause_text, reasons
from mpi_trainer.decide.observed import End, Failure, Observed, ObservedPod, ObservedRank

# POSIX: found but not to be run, and not found.
_OF_SHELLS = frozenset({126, 127})
# Open MPI's own: 66 and 183 from version 5, 134 and 132 from 4. Other programs end so by signals,
# so they count only where the agent watched and saw no rank begin.
_OF_OPEN_MPI = frozenset({66, 132, 134, 183})
_USAGE = 2
_NOT_FOUND = re.compile(r"executable file not found|no such file or directory|permission denied")
_EXPLAINED = re.compile(r"(?i)not found|no such file|permission denied|that it could run")
_NO_SCRIPT = re.compile(r"can't open file '[^']{1,400}': \[Errno (?:2|13)\]")
_EXIT = "raised sys.exit(2)"


def has_invalid_image(pod: ObservedPod) -> bool:
    """Whether the pod waits for an image that no registry can have."""
    return pod.phase == pod_status.PENDING and pod.waiting == pod_status.INVALID_IMAGE_NAME


def explained(failure: Failure, *, retries: bool) -> Failure:
    """The failure with what its codes mean, and, where there are `retries`, that none follows."""
    sentences = [failure.message.rstrip(".")]
    if failure.reason == reasons.NO_PROGRAM and not _EXPLAINED.search(failure.message):
        sentences.append("A program was not found or cannot be run: check the command")
    if retries:
        sentences.append("It would fail the same way again, so it is not retried")
    return replace(failure, message=". ".join(sentences) + "." * (len(sentences) > 1))


def invalid_image(pod: ObservedPod) -> str:
    detail = f": {pod.why[: cause_text.LONGEST_DETAIL].rstrip('.')}" if pod.why else ""
    return f"Pod {pod.name} has no valid image name{detail}; correct `image` in its template."


def reason(pod: ObservedPod, observed: Observed) -> str:
    """Why the failed pod's end would be the same again; empty where it might not."""
    end = pod.end or End()
    ranks = [r for r in observed.ranks if r.attempt == pod.attempt]
    first = _first(ranks)
    codes = {end.code, first.code if first is not None else None}
    if codes & _OF_SHELLS or (
        end.reason in pod_status.NOT_STARTED and _NOT_FOUND.search(end.message)
    ):
        return reasons.NO_PROGRAM
    if end.code in _OF_OPEN_MPI and end.unstarted:
        return reasons.NO_PROGRAM
    if _USAGE in codes and (_EXIT in end.message or _NO_SCRIPT.search(end.message)):
        return reasons.BAD_ARGUMENTS
    return ""


def _first(ranks: list[ObservedRank]) -> End | None:
    """The end of the rank that failed before the others."""
    bad = [r for r in ranks if r.end is not None and not r.end.well]
    return min(bad, key=lambda r: (r.ended is None, r.ended, r.rank)).end if bad else None
