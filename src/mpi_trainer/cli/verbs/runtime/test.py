"""`odh runtime test`: whether a runtime, or a job in a file, works, before anybody relies on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from mpi_trainer.api.kinds.annotations import LOCAL_MPI
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime, serves
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.cli import context, job_files
from mpi_trainer.cli.context import run_async
from mpi_trainer.cli.main import FAILED
from mpi_trainer.cli.output import check_report, formats
from mpi_trainer.cli.output.verbosity import say, verbosity_options
from mpi_trainer.cli.parameters import Mpi
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.cli.verbs.runtime.describe import find
from mpi_trainer.sdk.backends.backend import Backend
from mpi_trainer.sdk.job.check import TIMEOUT, Target, check

replace = msgspec.structs.replace
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


@click.command("test")
@click.argument("name", metavar="NAME|FILE")
@options.namespace
@click.option("--mpi", type=Mpi(), help="MPI to use on this machine.  [default: the runtime's]")
@click.option("--lint-only", is_flag=True, help="Only read it; run nothing.")
@click.option(
    "--timeout", type=options.Span(), default=TIMEOUT, show_default=False,
    help="Give the smoke run up after this long.  [default: 5m]",
)  # fmt: skip
@options.data_output
@verbosity_options
def command(**given: Any) -> int:
    """Test a runtime, or the job in a file, before it is used.

    It is read for what would keep it from working. Then a small job of two pods with one rank each
    runs in the same image with the same settings: host names, SSH, MPI versions, the start of
    ranks, an allreduce, latency and bandwidth. The job is removed afterwards, also by Ctrl-C.

    Ends with 0 where all is well, 1 where something is wrong, 2 where there is nothing to test.

    \b
    odh runtime test mpi-openmpi-cpu
    odh runtime test mpijob.yaml --timeout 10m
    odh runtime test runtime.yaml --lint-only
    """
    name, namespace = given["name"], given["namespace"]
    file = job_files.objects(name) if _is_file(name) else None
    if file is None:
        runtime = find(name, namespace)
        target = Target(runtime, runtime)
    else:
        target = _target(name, file, namespace)
        namespace = target.value.metadata.namespace or namespace
    run = not given["lint_only"]
    backend = _backend(given, file, target, run=run)
    if run and not target.unrun():
        say("running a job of two pods; Ctrl-C removes it")
    work = check(backend, target, namespace, timeout=given["timeout"], smoke_run=run)
    report = run_async(work)
    if given["form"].structured:
        click.echo(formats.rendered(check_report.data(report), given["form"]))
    else:
        click.echo(check_report.page(report))
    return 0 if report.passed else FAILED


def _is_file(name: str) -> bool:
    return name == "-" or "/" in name or Path(name).suffix in SUFFIXES


def _target(path: str, file: JobFile, namespace: str) -> Target:
    jobs: tuple[MPIJob | TrainJob, ...] = (*file.jobs, *file.train_jobs)
    if len(jobs) > 1 or (not jobs and len(file.runtimes) != 1):
        what = f"{len(jobs)} jobs" if jobs else f"{len(file.runtimes)} runtimes"
        raise click.UsageError(f"{path} holds {what}; give a file with one job or one runtime")
    found: tuple[MPIJob | TrainJob | Runtime, ...] = (*jobs, *file.runtimes)
    value = found[0]
    context.check_namespace(value.metadata.namespace)
    if not isinstance(value, TrainJob):
        return Target(value, None if jobs else file.runtimes[0], brought=not jobs)
    own = next((one for one in file.runtimes if serves(one, value)), None)
    if own is not None:
        return Target(value, own, brought=True)
    return Target(value, find(value.spec.runtime_ref.name, namespace))


def _backend(given: dict[str, Any], file: JobFile | None, target: Target, *, run: bool) -> Backend:
    if context.on_cluster():
        if given["mpi"]:
            raise click.UsageError("--mpi is for this machine; on a cluster the image has its own")
        if run and file and (file.config_maps or file.secrets):
            raise click.UsageError(
                f"{given['name']} holds ConfigMaps or Secrets, which a test does not create; "
                "create them first and give a file without them, or use --lint-only"
            )
        return context.cluster()
    from mpi_trainer.cli.verbs.mpi import ensure_installed
    from mpi_trainer.local.execute.settings import current_settings
    from mpi_trainer.local.mpi.distributions import named
    from mpi_trainer.local.pods.environment import Materials

    notes = target.runtime.metadata.annotations if target.runtime else {}
    build = given["mpi"].name if given["mpi"] else notes.get(LOCAL_MPI)
    if run and build and (found := named(build)):
        ensure_installed(found)
    materials = Materials(
        {c.metadata.name: c.files for c in (file.config_maps if file else ())},
        {s.metadata.name: s.files for s in (file.secrets if file else ())},
    )
    return context.connect(replace(current_settings(), distribution=build, materials=materials))
