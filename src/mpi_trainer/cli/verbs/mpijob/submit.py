"""Jobs that are ready go out: shown, or submitted and then followed or waited for.

What is submitted has been validated here, so a mistake costs no trip to anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from mpi_trainer.api.errors import FieldError, line
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.cli import context, job_files
from mpi_trainer.cli.context import cluster, connect, run_async
from mpi_trainer.cli.output import formats, formatting
from mpi_trainer.cli.output.formats import Format
from mpi_trainer.cli.output.verbosity import detail, say

if TYPE_CHECKING:
    from mpi_trainer.api.kinds.trainjob import TrainJob
    from mpi_trainer.local.execute.settings import LocalSettings
    from mpi_trainer.sdk.backends.backend import Backend, JobView, Key
    from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend


RESOURCE_OPTIONS = "--cpu, --memory, --launcher-cpu and --launcher-memory"


class AfterSubmit(msgspec.Struct, frozen=True):
    """What happens after the submission; `known` are warnings that the user has read."""

    follow: bool = False
    wait: bool = False
    timeout: float | None = None
    form: Format = Format()
    known: tuple[FieldError, ...] = ()


def checked(job: MPIJob, after: AfterSubmit) -> MPIJob:
    """The job with defaults; raises InvalidJob with everything that is wrong with it."""
    sound, warnings = job_files.validated(job)
    known = {str(warning) for warning in after.known}
    for warning in warnings:
        if str(warning) not in known:
            say(f"warning: {line(warning)}")
    return sound


def shown(jobs: list[MPIJob], after: AfterSubmit) -> int:
    """The manifests as they would be submitted, and nothing else happens."""
    return manifests([to_wire(checked(job, after)) for job in jobs], after.form)


def manifests(wires: list[dict[str, Any]], form: Format) -> int:
    if form.kind == "name":
        click.echo(
            "\n".join(formatting.full_name(wire["metadata"].get("name", "")) for wire in wires)
        )
    elif form.kind in ("", "yaml"):
        click.echo("\n---\n".join(formats.rendered(wire, Format("yaml")) for wire in wires))
    else:
        click.echo(formats.rendered(_document(wires), form))
    return 0


def adjusted(job: MPIJob) -> MPIJob:
    """A job from a few words, with what its namespace demands of every container."""
    found = run_async(cluster(single=True).adjusted(job))
    for note in found.notes:
        say(f"{note}; choose with {RESOURCE_OPTIONS}")
    return found.job


def to_the_cluster(jobs: list[MPIJob], others: list[dict[str, Any]], after: AfterSubmit) -> int:
    """One request for each object; only following a job needs more of a client."""
    backend = cluster(single=True)
    jobs = [checked(job, after) for job in jobs]
    attach(backend, others)
    for text in dict.fromkeys(text for job in jobs for text in run_async(backend.missing(job))):
        say(f"warning: {text}")
    # The name is the server's where the job has only the beginning of one.
    stored = _sent(jobs, lambda job: run_async(backend.submit(job)), after)
    return _afterwards(connect, stored, after)


def shipped(
    jobs: list[MPIJob], others: list[dict[str, Any]], workdir: str, after: AfterSubmit
) -> int:
    """Jobs with a folder of this machine, which travels with each of them."""
    backend = cluster()
    jobs = [checked(job, after) for job in jobs]
    attach(backend, others)
    stored = _sent(jobs, lambda job: run_async(backend.create(job, workdir)), after)
    return _afterwards(lambda: backend, stored, after)


def copied(job: MPIJob, original: Key, after: AfterSubmit) -> int:
    """A copy of a job, where that is."""
    backend = connect()
    return followed(backend, run_async(backend.copy(checked(job, after), original)), after)


def train_to_the_cluster(job: TrainJob, others: list[dict[str, Any]], after: AfterSubmit) -> int:
    """A TrainJob; its runtime is the cluster's."""
    backend = cluster(single=True)
    attach(backend, others)
    stored = run_async(backend.create_trainjob(job))
    _print_stored([stored], after)
    return _afterwards(connect, stored, after)


def attach(backend: ClusterBackend, others: list[dict[str, Any]]) -> None:
    """Makes what the jobs of a file mount, where it is not there yet."""
    for each in others:
        made = run_async(backend.attach(each))
        name = f"{each['kind'].lower()}/{each['metadata']['name']}"
        say(f"{name} created" if made else f"{name} exists already and is used as it is")


def submitted(jobs: list[MPIJob], settings: LocalSettings, after: AfterSubmit) -> int:
    """The jobs as jobs of this machine."""
    from mpi_trainer.api.validation.worker_limits import mpijob_warnings
    from mpi_trainer.cli.verbs.mpi import ensure_installed
    from mpi_trainer.local.execute.preflight import check_resources
    from mpi_trainer.local.execute.prepare import prepare

    backend = connect(settings)
    jobs = [checked(job, after) for job in jobs]
    for job in jobs:
        local = prepare(job, settings)
        for note in local.notes:
            detail(note)
        for note in (*map(line, mpijob_warnings(local.job)), *check_resources(local.job)):
            say(f"warning: {note}")
        ensure_installed(local.distribution)
    stored = _sent(jobs, lambda job: run_async(backend.create(job)), after)
    return _afterwards(lambda: backend, stored, after)


def followed(backend: Backend, stored: JobView, after: AfterSubmit) -> int:
    """A job that has been submitted: printed, and followed where that was asked for."""
    _print_stored([stored], after)
    return _afterwards(lambda: backend, stored, after)


def _sent(jobs: list[MPIJob], send: Callable[[MPIJob], JobView], after: AfterSubmit) -> JobView:
    """The last one as stored. Whatever was stored is printed, also where a later one is refused;
    as data they are one document."""
    whole = after.form.structured
    stored: list[JobView] = []
    try:
        for job in jobs:
            stored.append(send(job))
            if not whole:
                _print_stored(stored[-1:], after)
    finally:
        if whole and stored:
            _print_stored(stored, after)
    return stored[-1]


def _afterwards(backend: Callable[[], Backend], stored: JobView, after: AfterSubmit) -> int:
    """Follows or waits, where that was asked for."""
    if not (after.follow or after.wait):
        return 0
    from mpi_trainer.cli.verbs.mpijob import following

    key = stored.key
    try:
        return run_async(_to_the_end(backend(), key, after))
    except KeyboardInterrupt:
        return following.left(key, "logs --follow")


async def _to_the_end(backend: Backend, key: Key, after: AfterSubmit) -> int:
    from mpi_trainer.cli.verbs.mpijob import following
    from mpi_trainer.cli.verbs.mpijob.logs import Printer, followed
    from mpi_trainer.sdk.backends.backend import LogQuery

    async def work() -> int:
        if after.follow:
            return await followed(backend, key, LogQuery(follow=True), Printer())
        async for job in following.watched(backend, key):
            detail(f"{job.name} is {job.state}: {job.message}")
        return await following.verdict(backend, key)

    return await following.within(after.timeout, work, key, "Finished")


def _print_stored(jobs: list[JobView], after: AfterSubmit) -> None:
    """What was asked for, or else receipts; then what to do next."""
    if after.form.structured:
        click.echo(formats.rendered(_document([dict(job.manifest) for job in jobs]), after.form))
    for job in jobs:
        if after.form.kind == "name":
            click.echo(formatting.full_name(job.name))
        elif not after.form.structured:
            click.echo(_receipt(job), err=after.follow)
        if not (after.follow or after.wait):
            say(_next_step(job))


def _receipt(job: JobView) -> str:
    """AC-1: the job's id and when it was submitted."""
    created = formatting.moment(job.times.created)
    return f"{formatting.full_name(job.name)} created at {created}, id {job.uid}"


def _next_step(job: JobView) -> str:
    return f"follow it with `{context.command_line('logs --follow', job.name, job.namespace)}`"


def _document(wires: list[dict[str, Any]]) -> dict[str, Any]:
    return wires[0] if len(wires) == 1 else {"kind": "List", "items": wires}
