"""`odh mpijob create -f FILE` on a cluster, fast: a plain call goes straight to the API server.

Whatever is not plain — an option beyond those that say where, a file that is wrong or worth a
warning, a configuration that cannot be used — is left to the command itself, which knows what to
say; then `answer` is None, and nothing has been sent or printed. Guarantee: the same requests,
output, errors and exit codes as the command's, since both go through `sending`; a test compares
the two. Danger: nothing slow may be imported here, and no click.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from mpi_trainer.cli import target
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.program import MPIJOB
from mpi_trainer.cli.target import Target

if TYPE_CHECKING:
    from mpi_trainer.api.kinds.mpijob import MPIJob
    from mpi_trainer.api.yaml.load import JobFile
    from mpi_trainer.cli.quick import Quick

_WHERE = {
    "-n": "namespace",
    "--namespace": "namespace",
    "--context": "context",
    "--kubeconfig": "kubeconfig",
    "--as": "as_user",
}
_FILE = ("-f", "--file")
_PLAIN = (MPIJOB, "create")
_MORE = ("", Target())


def answer(args: list[str]) -> int | None:
    """The exit code; None where the full command has to run."""
    path, where = _understood(args)
    if not path or not target.on_cluster(where):
        return None
    ready = _ready(path, where)
    return None if ready is None else _sent(*ready)


def _understood(args: list[str]) -> tuple[str, Target]:
    """The file, and what is said about where; no file where there is more to understand.

    kubectl's options may stand before the kind or after the verb, each with its value.
    """
    said: list[str] = []
    path, where = "", Target()
    rest = iter(args)
    for word in rest:
        name, equals, value = word.partition("=")
        if not name.startswith("-"):
            said.append(word)
            continue
        if (equals and not name.startswith("--")) or len(said) not in (0, len(_PLAIN)):
            return _MORE
        value = value if equals else next(rest, "")
        if not value or value.startswith("-"):
            return _MORE
        if name in _FILE and said:
            path = value
        elif name in _WHERE:
            where = where._replace(**{_WHERE[name]: value})
        else:
            return _MORE
    # A pipe could not be read a second time.
    plain = tuple(said) == _PLAIN and os.path.isfile(path)  # noqa: PTH113 - pathlib is slow
    return (path, where) if plain else _MORE


def _ready(path: str, where: Target) -> tuple[Quick, list[MPIJob], JobFile] | None:
    """Everything before the first request; None where there is something to say about it."""
    _import_msgspec()
    from mpi_trainer.cli import job_files, sending
    from mpi_trainer.cli.quick import Quick

    try:
        config = target.config(where)
        file = job_files.read(path)
        if file.warnings or any(
            target.contradict(job.namespace, where.namespace) for job in file.jobs
        ):
            return None
        jobs = [sending.checked(sending.placed(job, config.namespace)) for job in file.jobs]
    except Exception:
        return None
    if any(warnings for _, warnings in jobs):
        return None
    return Quick(config), [job for job, _ in jobs], file


def _sent(cluster: Quick, jobs: list[MPIJob], file: JobFile) -> int:
    from mpi_trainer.cli import sending

    sending.bring(cluster, sending.companions(file, cluster.config.namespace), terminal.say)
    for job in jobs:
        stored = cluster.create(job)
        print(sending.receipt(stored), flush=True)
        terminal.say(sending.next_step(stored))
    return 0


def _import_msgspec() -> None:
    """It uses typing_extensions where there is one, which takes as long to import as itself, and
    does as well with `typing` alone."""
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
