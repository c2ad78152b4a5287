"""`odh mpijob create`: a job from a command or a file, checked here, then submitted."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from mpi_trainer.api.defaults import OPEN_MPI
from mpi_trainer.api.errors import line
from mpi_trainer.api.mpijob import MPIJob
from mpi_trainer.cli import jobfiles, program
from mpi_trainer.cli.formats import Format, FormatType
from mpi_trainer.cli.mpijob import options, submitting
from mpi_trainer.cli.mpijob.overrides import split_command
from mpi_trainer.cli.parameters import Mount, Pair
from mpi_trainer.cli.voice import say, voiced
from mpi_trainer.local import distributions
from mpi_trainer.local.environment import Materials
from mpi_trainer.local.settings import Settings, here
from mpi_trainer.sdk.newjob import NewJob, name_for
from mpi_trainer.sdk.resources import ResourceRequirements
from mpi_trainer.sdk.specs import LOCAL_IMAGE

FORMATS = FormatType(("json", "yaml", "name"))
OF_COMMANDS = (
    "workers",
    "slots",
    "gpu",
    "cpu",
    "memory",
    "image",
    "line",
    "as_is",
    "env",
    "mounts",
)
POLICIES = {"retries": "backoff_limit", "ttl": "ttl_seconds_after_finished"}


@click.command("create")
@click.argument("name", required=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("-f", "--file", "path", metavar="FILE", help="Submit what FILE holds (`-`: stdin).")
@options.namespace
@click.option("--command", "line", metavar="LINE", help="The command, as one quoted word.")
@click.option("--image", help="Image of launcher and workers.  [default: none, for local jobs]")
@click.option("-w", "--workers", type=click.IntRange(1), help="Worker pods.  [default: 2]")
@click.option("-s", "--slots", type=click.IntRange(1), help="Ranks a worker.  [default: its GPUs]")
@click.option("--gpu", type=click.IntRange(0), help="GPUs a worker.")
@click.option("--cpu", metavar="QUANTITY", help="CPUs a worker, such as 4 or 500m.")
@click.option("--memory", metavar="QUANTITY", help="Memory a worker, such as 8Gi.")
@click.option(
    "--mpi", type=click.Choice([d.name for d in distributions.DISTRIBUTIONS]),
    help="MPI to use.  [default: openmpi, or what the file asks for]",
)  # fmt: skip
@click.option("-e", "--env", type=Pair("variable"), multiple=True, help="Set a variable.")
@click.option("--mount", "mounts", type=Mount(), multiple=True, help="Show a directory at DST.")
@click.option(
    "--claim", "claims", type=Pair("claim"), multiple=True,
    help="Directory that stands for a PersistentVolumeClaim.",
)  # fmt: skip
@click.option("--retries", type=click.IntRange(0), help="Attempts after the first.  [default: 6]")
@click.option("--ttl", type=options.Span(), help="Delete the job so long after its end.")
@click.option("--suspended", is_flag=True, help="Create it, but let it wait for `resume`.")
@click.option("--as-is", is_flag=True, help="Do not put `mpirun -n RANKS` before the command.")
@click.option("--follow", is_flag=True, help="Print its output; the exit code is the job's.")
@click.option("--wait", is_flag=True, help="Wait for its end; the exit code is the job's.")
@options.timeout
@click.option("--dry-run", is_flag=True, help="Check and print the manifest; submit nothing.")
@click.option(
    "-o", "--output", "form", type=FORMATS, default=Format(), show_default=False,
    help="json, yaml, name or jsonpath=EXPRESSION: print the job as stored.",
)  # fmt: skip
@voiced
def command(**given: Any) -> int:
    """Submit a job from a command or a file; it goes on when this program ends.

    \b
    odh mpijob create train --workers 4 --gpu 1 --image IMG --command "python train.py"
    odh mpijob create train -w 4 -- python train.py --epochs 3
    odh mpijob create -f mpijob.yaml --follow

    A command that does not start ranks by itself runs as `mpirun -n WORKERS×SLOTS COMMAND`.
    Ctrl-C with --follow or --wait leaves the job running.
    """
    jobs, settings = _from_file(given) if given["path"] else _from_words(given)
    jobs = [_with_policies(job, given) for job in jobs]
    if (given["follow"] or given["wait"]) and len(jobs) != 1:
        raise click.UsageError(f"--follow and --wait need one job; {given['path']} has {len(jobs)}")
    order = submitting.Order(
        follow=given["follow"], wait=given["wait"], timeout=given["timeout"], form=given["form"]
    )
    if given["dry_run"]:
        return submitting.shown(jobs, given["form"])
    return submitting.submitted(jobs, settings, order)


def _from_words(given: dict[str, Any]) -> tuple[list[MPIJob], Settings]:
    command = split_command(given["line"]) if given["line"] is not None else given["words"]
    if given["line"] is not None and given["words"]:
        raise click.UsageError("give the command once: with --command, or after `--`")
    if not command:
        raise click.UsageError(
            f'give a command, such as `{program.name()} mpijob create train --command "python '
            'train.py"`, or a job file with -f'
        )
    chosen = distributions.named(given["mpi"] or "")
    new = NewJob(
        name=given["name"] or name_for(tuple(command)),
        command=tuple(command),
        namespace=given["namespace"],
        workers=given["workers"] or 2,
        slots=given["slots"],
        env=given["env"],
        mounts=given["mounts"],
        as_is=given["as_is"],
        resources=ResourceRequirements(
            cpu=given["cpu"], memory=given["memory"], gpu=given["gpu"] or 0
        ),
        implementation=chosen.implementation if chosen else OPEN_MPI,
        image=given["image"] or LOCAL_IMAGE,
    )
    return [new.mpijob()], _settings(given, Materials())


def _from_file(given: dict[str, Any]) -> tuple[list[MPIJob], Settings]:
    path, namespace = given["path"], given["namespace"]
    alien = [option for option in OF_COMMANDS if given[option]]
    if alien or given["words"]:
        what = "a command" if not alien or alien == ["line"] else f"--{alien[0]}"
        raise click.UsageError(
            f"{what} cannot be given with -f: it stands in the file. Edit it there, or submit and "
            "change a copy with `clone`"
        )
    file = jobfiles.read(path)
    for warning in file.warnings:
        say(f"warning: {line(warning)}")
    jobs = [_in_namespace(job, namespace) for job in file.jobs]
    if given["name"]:
        if len(jobs) != 1:
            raise click.UsageError(f"{path} has {len(jobs)} jobs, so they keep their names")
        meta = msgspec.structs.replace(jobs[0].metadata, name=given["name"])
        jobs = [msgspec.structs.replace(jobs[0], metadata=meta)]
    materials = Materials(
        {c.metadata.name: c.files for c in file.config_maps},
        {s.metadata.name: s.files for s in file.secrets},
    )
    return jobs, _settings(given, materials)


def _in_namespace(job: MPIJob, namespace: str) -> MPIJob:
    if job.namespace and namespace != options.DEFAULT_NAMESPACE and job.namespace != namespace:
        raise click.UsageError(
            f"the file says namespace {job.namespace}, -n says {namespace}; change one of them"
        )
    if job.namespace:
        return job
    meta = msgspec.structs.replace(job.metadata, namespace=namespace)
    return msgspec.structs.replace(job, metadata=meta)


def _with_policies(job: MPIJob, given: dict[str, Any]) -> MPIJob:
    changes: dict[str, Any] = {
        field: int(given[option]) for option, field in POLICIES.items() if given[option] is not None
    }
    if given["suspended"]:
        changes["suspend"] = True
    if not changes:
        return job
    policy = msgspec.structs.replace(job.spec.run_policy, **changes)
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, run_policy=policy))


def _settings(given: dict[str, Any], materials: Materials) -> Settings:
    return msgspec.structs.replace(
        here(), distribution=given["mpi"], claims=dict(given["claims"]), materials=materials
    )
