"""`odh trainjob create`: a TrainJob from a file, submitted; on this machine with its runtime."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from mpi_trainer.api.errors import line
from mpi_trainer.api.kinds.trainjob import TrainJob, to_wire
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.cli import context, job_files
from mpi_trainer.cli.context import run_async
from mpi_trainer.cli.output.verbosity import detail, say, verbosity_options
from mpi_trainer.cli.parameters import Mpi, Pair, check_claims
from mpi_trainer.cli.verbs.mpi import ensure_installed
from mpi_trainer.cli.verbs.mpijob import check_first, options, submit
from mpi_trainer.cli.verbs.mpijob.pod_options import add_to_metadata, job_options
from mpi_trainer.local.execute.prepare import prepare_train
from mpi_trainer.local.execute.settings import current_settings
from mpi_trainer.local.pods.environment import Materials
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.job.check import Target
from mpi_trainer.sdk.job.copies import as_new

replace = msgspec.structs.replace


@click.command("create")
@click.option("-f", "--file", "path", required=True, metavar="FILE", help="Its file; `-`: stdin.")
@click.option("--runtime", metavar="FILE", help="Its runtime.  [default: by its name]")
@options.namespace
@click.option("--mpi", type=Mpi(), help="MPI to use.  [default: the runtime's]")
@click.option(
    "--claim", "claims", type=Pair("claim"), multiple=True,
    help="Directory that stands for a PersistentVolumeClaim.",
)  # fmt: skip
@click.option("--suspended", is_flag=True, help="Create it, but let it wait for `resume`.")
@check_first.option
@job_options
@options.submission
@verbosity_options
def command(**given: Any) -> int:
    """Submit a TrainJob from a file; it keeps running when this command ends.

    \b
    odh trainjob create -f trainjob.yaml --follow
    odh trainjob create -f trainjob.yaml --runtime runtime.yaml
    """
    file = job_files.objects(given["path"])
    for warning in file.warnings:
        say(f"warning: {line(warning)}")
    if len(file.train_jobs) != 1:
        raise click.UsageError(f"{given['path']} holds {len(file.train_jobs)} TrainJobs; give one")
    context.check_namespace(file.train_jobs[0].namespace)
    job = _wanted(file.train_jobs[0], given)
    after = submit.AfterSubmit(given["follow"], given["wait"], given["timeout"], given["form"])
    if given["dry_run"]:
        return submit.manifests([to_wire(job)], given["form"])
    if context.on_cluster():
        _check_for_a_cluster(given, file)
        others = job_files.attachments(file, given["namespace"])
        if given["check_first"]:
            cluster = context.cluster()
            submit.attach(cluster, others)
            runtime = run_async(cluster.runtime(job.spec.runtime_ref, job.namespace))
            check_first.demand(cluster, Target(job, runtime), job.namespace)
            others = []
        return submit.train_to_the_cluster(job, others, after)
    runtime = job_files.runtime_for(job, file, given["runtime"])
    settings = replace(
        current_settings(dict(given["claims"])),
        distribution=given["mpi"].name if given["mpi"] else None,
        materials=Materials(
            {c.metadata.name: c.files for c in file.config_maps},
            {s.metadata.name: s.files for s in file.secrets},
        ),
    )
    local = prepare_train(job, runtime, settings)
    check_claims(given["claims"], local.claims)
    for note in local.notes:
        detail(note)
    ensure_installed(local.distribution)
    backend = LocalBackend(settings)
    if given["check_first"]:
        near = LocalBackend(replace(settings, distribution=local.distribution.name))
        check_first.demand(near, Target(job, runtime, brought=True), job.namespace)
    return submit.followed(backend, run_async(backend.create_trainjob(job, runtime)), after)


def _check_for_a_cluster(given: dict[str, Any], file: JobFile) -> None:
    """A cluster has runtimes, MPIs and claims of its own; what would not be sent is refused."""
    if given["runtime"] or file.runtimes:
        raise click.UsageError(
            "a cluster has its own runtimes: make yours there with `kubectl apply`, or name one "
            f"that `{context.program_name()} runtime list` shows"
        )
    if given["mpi"] or given["claims"]:
        raise click.UsageError(
            "--mpi and --claim are for jobs of this machine; on a cluster the runtime has the MPI, "
            "and claims are the namespace's own"
        )
    if file.jobs:
        raise click.UsageError(
            f"{given['path']} holds MPIJobs too; submit them with "
            f"`{context.program_name()} mpijob create`"
        )


def _wanted(job: TrainJob, given: dict[str, Any]) -> TrainJob:
    wire = to_wire(as_new(job))
    wire["metadata"]["namespace"] = job.namespace or given["namespace"]
    add_to_metadata(wire["metadata"], given)
    if given["time_limit"] is not None:
        wire["spec"]["activeDeadlineSeconds"] = options.whole_seconds(given["time_limit"])
    if given["suspended"]:
        wire["spec"]["suspend"] = True
    return decode(TrainJob, wire).value
