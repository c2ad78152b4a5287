"""One job as YAML, as a command line of `odh`, and as a program of the SDK. Pure.

Guarantee: each makes the same job. The short forms have words for few things, so each is built
again and compared with the job; where anything differs, the form that carries the whole manifest is
given instead.
"""

from __future__ import annotations

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.sdk.job.copies import J, as_new
from mpi_trainer.sdk.job.equivalents import manifest, program, shell
from mpi_trainer.sdk.job.equivalents.words import in_words


class Equivalents(msgspec.Struct, frozen=True):
    """`cli` is for a POSIX shell."""

    cli: str
    sdk: str
    yaml: str


def equivalents(job: MPIJob | TrainJob, namespace: str) -> Equivalents:
    """Of a sound job, as a new one in this namespace. Danger: values of variables stand in all
    three, whoever put a password there."""
    if isinstance(job, TrainJob):
        train = _placed(job, namespace)
        text = manifest.text(train)
        line = shell.of_file("trainjob", text, namespace)
        return Equivalents(line, program.of_trainjob(train, text), text)
    new = _placed(job, namespace)
    text = manifest.text(new)
    words = in_words(new)
    line = shell.of_words(words) if words else ""
    line = line or shell.of_file("mpijob", text, namespace)
    return Equivalents(line, program.of_mpijob(words, text), text)


def _placed(job: J, namespace: str) -> J:
    new = as_new(job)
    meta = msgspec.structs.replace(new.metadata, namespace=namespace)
    return msgspec.structs.replace(new, metadata=meta)
