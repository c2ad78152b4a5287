"""What the children of a job are called. Upstream's names to the letter.

Pods take theirs from the Layout. Guarantee: for a validated job every name here is a DNS label of
at most 63 characters, since a worker's name, which validation measures, is never shorter.
"""

from __future__ import annotations

from collections.abc import Collection

from mpi_trainer.api.kinds.annotations import DOMAIN

EVIDENCE = f"{DOMAIN}/evidence"
"""finalizer of the launcher pod: it stays until what it says of the job's end has been recorded"""

APP = "app"
SSH_VOLUME = "ssh-auth"
CONFIG_VOLUME = "mpi-job-config"


def config_map(job: str) -> str:
    return f"{job}-config"


def secret(job: str) -> str:
    return f"{job}-ssh"


def service(job: str) -> str:
    return job


def unused(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, or with the first number behind it that makes it unlike all of `taken`."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def label(path: str) -> str:
    """A path as a name for a volume: `/run/mpi-agent` is `run-mpi-agent`."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in path.lower())
    return plain[-50:].strip("-") or "root"
