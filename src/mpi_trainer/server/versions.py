"""ETags of jobs, and what they allow: not to send again, and not to change what nobody has seen.

An ETag stands for the job as its API has it, status included. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from mpi_trainer.sdk.backends.backend import JobView
from mpi_trainer.server.problems import refused


def etag(job: JobView) -> str:
    """Strong: two jobs have the same one only where nothing of them differs."""
    text = msgspec.json.encode(job.manifest, order="deterministic")
    return f'"{hashlib.sha256(text).hexdigest()[:32]}"'


def unchanged(job: JobView, if_none_match: str) -> bool:
    """Whether the caller has the job as it is now."""
    return bool(if_none_match) and _names(if_none_match, etag(job), weak=True)


def check_match(job: JobView, if_match: str) -> None:
    """Refuses where the caller has seen another version of the job."""
    if if_match and not _names(if_match, etag(job), weak=False):
        raise refused(
            412,
            "changed",
            f"job {job.key} has changed since you read it",
            "Read it again, and repeat the call with its new ETag.",
        )


def _names(header: str, tag: str, *, weak: bool) -> bool:
    if header.strip() == "*":
        return True
    return tag in _tags(header, weak=weak)


def _tags(header: str, *, weak: bool) -> Iterator[str]:
    """A weak one never matches where a strong one is asked for."""
    for part in header.split(","):
        text = part.strip()
        yield text.removeprefix("W/") if weak else text
