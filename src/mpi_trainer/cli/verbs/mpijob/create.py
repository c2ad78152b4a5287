"""`odh mpijob create`: a job from a command or a file, checked here, then submitted."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from mpi_trainer.api.errors import line
from mpi_trainer.api.kinds.mpijob import OPEN_MPI, MPIJob
from mpi_trainer.cli import context, job_files
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.parameters import Mount, Mpi, Pair, check_claims
from mpi_trainer.cli.verbs.mpijob import check_first, options, submit
from mpi_trainer.cli.verbs.mpijob.overrides import split_command
from mpi_trainer.cli.verbs.mpijob.pod_options import pod_options, with_pod_options
from mpi_trainer.sdk.job.copies import as_new
from mpi_trainer.sdk.job.new import NewJob, name_for
from mpi_trainer.sdk.job.specs import LOCAL_IMAGE, ResourceRequirements

if TYPE_CHECKING:
    from mpi_trainer.api.yaml.load import JobFile
    from mpi_trainer.local.execute.settings import LocalSettings
    from mpi_trainer.sdk.backends.backend import Backend

OF_COMMANDS = (
    "workers",
    "slots",
    "gpu",
    "cpu",
    "memory",
    "launcher_cpu",
    "launcher_memory",
    "image",
    "line",
    "as_is",
    "env",
    "mounts",
)
OF_THIS_MACHINE = {
    "mounts": "--mount shows a folder of this machine, which a cluster's nodes do not have; "
    "mount a claim with --pvc",
    "claims": "--claim stands for a claim where there is no cluster; a cluster has its own",
}
MPI_OF_A_FILE = (
    "--mpi chooses among this machine's; on a cluster the image has its own, and the file names it "
    "in spec.mpiImplementation"
)
POLICIES = {"retries": "backoff_limit", "ttl": "ttl_seconds_after_finished"}


class _Create(click.Command):
    """`create [NAME] -- COMMAND...`: what stands after `--` is the command, all of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        after = tuple(args[args.index("--") + 1 :]) if "--" in args else None
        rest = super().parse_args(ctx, args)
        if after is None or ctx.params.get("name") is None:
            return rest
        before = [ctx.params["name"], *ctx.params["words"]]
        before = before[: len(before) - len(after)]
        if len(before) > 1 and not ctx.resilient_parsing:
            raise click.UsageError(
                f"a job has one name, and before `--` there are {len(before)} words: "
                f"{', '.join(before[:5])}",
                ctx,
            )
        ctx.params.update(name=before[0] if before else None, words=after)
        return rest


@click.command("create", cls=_Create)
@click.argument("name", required=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("-f", "--file", "path", metavar="FILE", help="Submit what FILE holds (`-`: stdin).")
@options.namespace
@click.option("--command", "line", metavar="LINE", help="The command, as one quoted word.")
@click.option("--image", help="Image of launcher and workers; on this machine none is needed.")
@click.option("-w", "--workers", type=click.IntRange(1), help="Worker pods.  [default: 2]")
@click.option(
    "-s", "--slots", type=click.IntRange(1), help="Ranks per worker.  [default: its GPUs]"
)
@click.option("--gpu", type=click.IntRange(0), help="GPUs per worker.")
@click.option("--cpu", metavar="QUANTITY", help="CPUs per worker, such as 4 or 500m.")
@click.option("--memory", metavar="QUANTITY", help="Memory per worker, such as 8Gi.")
@click.option("--launcher-cpu", metavar="QUANTITY", help="CPUs of the launcher.")
@click.option("--launcher-memory", metavar="QUANTITY", help="Memory of the launcher.")
@click.option(
    "--mpi", type=Mpi(),
    help="MPI to use.  [default: openmpi, or what the file asks for]",
)  # fmt: skip
@click.option("-e", "--env", type=Pair("variable"), multiple=True, help="Set a variable.")
@click.option("--mount", "mounts", type=Mount(), multiple=True, help="Show a directory at DST.")
@click.option(
    "--claim", "claims", type=Pair("claim"), multiple=True,
    help="Directory that stands for a PersistentVolumeClaim.",
)  # fmt: skip
@click.option(
    "--retries",
    type=click.IntRange(0),
    help="Attempts after the first.  [default: 0; of a file: 6]",
)
@click.option("--ttl", type=options.Span(), help="Delete the job so long after its end.")
@click.option("--suspended", is_flag=True, help="Create it, but let it wait for `resume`.")
@click.option(
    "--workdir", type=click.Path(exists=True, file_okay=False),
    help="Send this folder along: the job works in it, wherever it runs.",
)  # fmt: skip
@click.option("--as-is", is_flag=True, help="Do not put `mpirun -n RANKS` before the command.")
@check_first.option
@pod_options
@options.submission
@verbosity_options
def command(**given: Any) -> int:
    """Submit a job from a command or a file; it keeps running when this command ends.

    \b
    odh mpijob create train --workers 4 --gpu 1 --image IMG --command "python train.py"
    odh mpijob create train -w 4 -- python train.py --epochs 3
    odh mpijob create -f mpijob.yaml --queue team-a --time-limit 4h --follow

    A command that does not start ranks by itself runs as `mpirun -n WORKERS×SLOTS COMMAND`.
    Ctrl-C with --follow or --wait leaves the job running.
    """
    if given["namespace"].isdecimal():
        say(
            f"warning: -n is the namespace, here `{given['namespace']}`; the number of ranks is "
            "workers times slots: `-w 4 -s 2` starts 8"
        )
    file = _file(given) if given["path"] else None
    jobs = _from_file(given, file) if file else [_from_words(given)]
    jobs = [_with_policies(with_pod_options(job, given), given) for job in jobs]
    if (given["follow"] or given["wait"]) and len(jobs) != 1:
        raise click.UsageError(f"--follow and --wait need one job; {given['path']} has {len(jobs)}")
    after = submit.AfterSubmit(
        follow=given["follow"],
        wait=given["wait"],
        timeout=given["timeout"],
        form=given["form"],
        known=file.warnings if file else (),
    )
    if given["dry_run"]:
        return submit.shown(jobs, after)
    if context.on_cluster():
        _check_for_a_cluster(given)
        jobs = jobs if file else [_for_a_cluster(job) for job in jobs]
        others = job_files.attachments(file, given["namespace"])
        if given["check_first"]:
            cluster = context.cluster()
            submit.attach(cluster, others)
            _demand_checks(cluster, jobs, given["namespace"], filled=not file or given["workdir"])
            others = []
        if given["workdir"]:
            return submit.shipped(jobs, others, given["workdir"], after)
        jobs = jobs if file else [submit.adjusted(job) for job in jobs]
        return submit.to_the_cluster(jobs, others, after)
    settings = _settings(given, file)
    _check_claims(given, jobs)
    if given["workdir"]:
        settings = msgspec.structs.replace(settings, cwd=str(Path(given["workdir"]).resolve()))
    if not file and not given["as_is"]:
        _check_command(given, settings)
    if given["check_first"]:
        _demand_checks(context.connect(settings), jobs, given["namespace"])
    return submit.submitted(jobs, settings, after)


def _check_claims(given: dict[str, Any], jobs: list[MPIJob]) -> None:
    from mpi_trainer.local.execute.prepare import claim_names

    check_claims(given["claims"], {name for job in jobs for name in claim_names(job)})


def _demand_checks(
    backend: Backend, jobs: list[MPIJob], namespace: str, *, filled: bool = True
) -> None:
    from mpi_trainer.sdk.job.check import Target

    for job in jobs:
        sound, _ = job_files.validated(job)
        check_first.demand(backend, Target(sound, filled=bool(filled)), namespace)


def _check_command(given: dict[str, Any], settings: LocalSettings) -> None:
    from mpi_trainer.local.execute.preflight import check_command

    check_command(_command(given), settings)


def _command(given: dict[str, Any]) -> tuple[str, ...]:
    return split_command(given["line"]) if given["line"] is not None else given["words"]


def _from_words(given: dict[str, Any]) -> MPIJob:
    command = _command(given)
    if given["line"] is not None and given["words"]:
        raise click.UsageError("give the command once: with --command, or after `--`")
    if not command:
        raise click.UsageError(
            f"give a command, such as `{context.program_name()} mpijob create train "
            '--command "python train.py"`, or a job file with -f'
        )
    return NewJob(
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
        launcher_resources=ResourceRequirements(
            cpu=given["launcher_cpu"], memory=given["launcher_memory"]
        ),
        implementation=given["mpi"].implementation if given["mpi"] else OPEN_MPI,
        image=given["image"] or LOCAL_IMAGE,
    ).mpijob()


def _file(given: dict[str, Any]) -> JobFile:
    alien = [option for option in OF_COMMANDS if given[option]]
    if alien or given["words"]:
        what = "a command" if not alien or alien == ["line"] else f"--{alien[0].replace('_', '-')}"
        raise click.UsageError(
            f"{what} cannot be used with -f: change it in the file, or submit and "
            "change a copy with `clone`"
        )
    return job_files.read(given["path"])


def _from_file(given: dict[str, Any], file: JobFile) -> list[MPIJob]:
    for warning in file.warnings:
        say(f"warning: {line(warning)}")
    jobs = [_in_namespace(as_new(job), given["namespace"]) for job in file.jobs]
    if given["name"]:
        if len(jobs) != 1:
            raise click.UsageError(
                f"{given['path']} has {len(jobs)} jobs, so they keep their names"
            )
        meta = msgspec.structs.replace(jobs[0].metadata, name=given["name"])
        jobs = [msgspec.structs.replace(jobs[0], metadata=meta)]
    return jobs


def _for_a_cluster(job: MPIJob) -> MPIJob:
    """As the SDK sends it: the image where none is named, and lines with their ranks."""
    from mpi_trainer.sdk.backends.cluster.defaults import IMAGE, for_cluster

    return for_cluster(job, os.environ.get(IMAGE, ""), sys.executable)


def _check_for_a_cluster(given: dict[str, Any]) -> None:
    for option, why in OF_THIS_MACHINE.items():
        if given[option]:
            raise click.UsageError(why)
    if given["path"] and given["mpi"]:
        raise click.UsageError(MPI_OF_A_FILE)
    if not given["path"] and not given["image"] and not os.environ.get("MPI_TRAINER_IMAGE"):
        raise click.UsageError(
            "give --image, or set MPI_TRAINER_IMAGE: on a cluster every job runs in an image, "
            "which must have its program and MPI; `--backend local` runs it here without one"
        )


def _in_namespace(job: MPIJob, namespace: str) -> MPIJob:
    context.check_namespace(job.namespace)
    return job_files.in_namespace(job, namespace)


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


def _settings(given: dict[str, Any], file: JobFile | None) -> LocalSettings:
    from mpi_trainer.local.execute.settings import current_settings
    from mpi_trainer.local.pods.environment import Materials

    materials = Materials(
        {c.metadata.name: c.files for c in (file.config_maps if file else ())},
        {s.metadata.name: s.files for s in (file.secrets if file else ())},
    )
    return msgspec.structs.replace(
        current_settings(dict(given["claims"])),
        distribution=given["mpi"].name if given["mpi"] else None,
        materials=materials,
    )
