"""`odh run` on a cluster: this folder goes along, the output comes back, nothing stays behind.

The job is the caller's while the command runs: Ctrl-C deletes it, and so does its end. A cluster
must be named for it (`--backend cluster`, `--context` …): what says "on this machine" in its help
never goes elsewhere by itself.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from mpi_trainer.api.kinds.mpijob import OPEN_MPI, RunPolicy
from mpi_trainer.cli import context
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.main import INTERRUPTED
from mpi_trainer.cli.output.verbosity import say
from mpi_trainer.cli.verbs.mpijob.logs import Printer, followed
from mpi_trainer.cli.verbs.mpijob.options import whole_seconds
from mpi_trainer.local.mpi import distributions
from mpi_trainer.sdk.backends.backend import Backend, Key, LogQuery
from mpi_trainer.sdk.backends.cluster.defaults import IMAGE
from mpi_trainer.sdk.job.new import NewJob, name_for
from mpi_trainer.sdk.job.specs import LOCAL_IMAGE

OF_THIS_MACHINE = ("mounts", "claims", "path", "runtime", "dry_run")


def wanted() -> bool:
    """Whether the command line names a cluster."""
    said = context.current_target()
    return said.backend != context.LOCAL and any(said[:2] + said[3:])


def run(options: dict[str, Any]) -> int:
    alien = [option for option in OF_THIS_MACHINE if options[option]]
    if alien:
        flag = {"mounts": "mount", "claims": "claim", "path": "file"}.get(alien[0], alien[0])
        raise click.UsageError(
            f"--{flag.replace('_', '-')} is for runs on this machine; "
            "submit a file to a cluster with `odh mpijob create -f`"
        )
    if not options["image"] and not os.environ.get(IMAGE):
        raise click.UsageError(f"give --image, or set {IMAGE}: on a cluster a job runs in an image")
    words = tuple(options["words"])
    if not words:
        raise click.UsageError("give a command after `--`, for example `-- python train.py`")
    chosen = distributions.named(options["mpi"]) if options["mpi"] else None
    job = NewJob(
        name=options["name"] or f"{name_for(words)}-{os.urandom(3).hex()}",
        command=words,
        namespace=context.cluster_config().namespace,
        workers=options["workers"] or 2,
        slots=options["slots"] or 1,
        implementation=chosen.implementation if chosen else OPEN_MPI,
        env=options["env"],
        as_is=options["as_is"],
        run_policy=RunPolicy(active_deadline_seconds=whole_seconds(options["time_limit"])),
        image=options["image"] or LOCAL_IMAGE,
    ).mpijob()
    backend = connect()
    stored = run_async(backend.create(job, "."))
    key = Key(stored.namespace, stored.name)
    if not options["quiet"]:
        say(f"{key} runs on {backend.name}, with what this folder holds")
    try:
        return run_async(_to_the_end(backend, key))
    except KeyboardInterrupt:
        say("stopping")
        return INTERRUPTED
    finally:
        run_async(_removed(backend, key))
        sys.stdout.flush()


async def _to_the_end(backend: Backend, key: Key) -> int:
    return await followed(backend, key, LogQuery(follow=True), Printer())


async def _removed(backend: Backend, key: Key) -> None:
    from mpi_trainer.sdk.errors import JobNotFound

    try:
        await backend.delete(key)
    except JobNotFound:
        return
