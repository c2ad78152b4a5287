"""`odh mpijob clone`: a copy of a job, with changes."""

from __future__ import annotations

from typing import Any

import click

from mpi_trainer.api.kinds.mpijob import KIND, MPIJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.parameters import Pair
from mpi_trainer.cli.verbs.mpijob import options, submit
from mpi_trainer.cli.verbs.mpijob.overrides import Overrides, clone, split_command
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.errors import JobError


class _Setting(Pair):
    name = "PATH=VALUE"


@click.command("clone")
@options.name
@click.argument("newname")
@options.namespace
@click.option("-w", "--workers", type=click.IntRange(1), help="Worker pods.")
@click.option("-s", "--slots", type=click.IntRange(1), help="Ranks per worker.")
@click.option("--image", help="Image of launcher and workers.")
@click.option("--command", "line", metavar="LINE", help="Another command, as one quoted word.")
@click.option("-e", "--env", type=Pair("variable"), multiple=True, help="Set a variable.")
@click.option(
    "--set", "settings", type=_Setting("field"), multiple=True,
    help="Set any field, such as spec.runPolicy.backoffLimit=0.",
)  # fmt: skip
@options.submission
@verbosity_options
def command(**given: Any) -> int:
    """Submit a copy of a job, with changes.

    \b
    odh mpijob clone train train-8 --workers 8
    odh mpijob clone train once --set spec.runPolicy.backoffLimit=0 --follow
    """
    key = Key(given["namespace"], given["name"])
    wanted = Overrides(
        workers=given["workers"],
        slots=given["slots"],
        image=given["image"],
        command=None if given["line"] is None else split_command(given["line"]),
        env=given["env"],
        settings=given["settings"],
    )
    old = run_async(connect().get(key))
    if old.kind != KIND:
        raise JobError(f"job {key} is a {old.kind}, and only MPIJobs are cloned")
    job = clone(decode(MPIJob, old.manifest).value, given["newname"], given["namespace"], wanted)
    after = submit.AfterSubmit(given["follow"], given["wait"], given["timeout"], given["form"])
    return submit.shown([job], after) if given["dry_run"] else submit.copied(job, key, after)
