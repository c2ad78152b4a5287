"""`odh mpijob exec`: a command in a job's pod, with this terminal."""

from __future__ import annotations

from collections.abc import Mapping

import click

from mpi_trainer.api.kinds.mpijob import KIND
from mpi_trainer.cli.context import connect, run_async
from mpi_trainer.cli.output.verbosity import verbosity_options
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.sdk.backends.backend import Backend, JobDetails, Key
from mpi_trainer.sdk.errors import JobError


@click.command("exec")
@options.name
@options.namespace
@click.option("--rank", type=click.IntRange(0), help="The pod where this rank runs.")
@click.option("--worker", type=click.IntRange(0), help="This worker's pod.")
@click.option("--launcher", is_flag=True, help="The launcher's pod.  [default]")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND...")
@verbosity_options
def command(
    *,
    name: str,
    namespace: str,
    rank: int | None,
    worker: int | None,
    launcher: bool,
    words: tuple[str, ...],
) -> int:
    """Run a command beside a rank, in the job's directory; its exit code is ours.

    \b
    odh mpijob exec train --rank 1 -- hostname
    odh mpijob exec train --worker 0 -- bash
    """
    if sum((rank is not None, worker is not None, launcher)) > 1:
        raise click.UsageError("--rank, --worker and --launcher exclude each other; give one")
    key = Key(namespace, name)
    backend = connect()
    return run_async(_run(backend, key, rank, worker, words))


async def _run(
    backend: Backend, key: Key, rank: int | None, worker: int | None, words: tuple[str, ...]
) -> int:
    if rank is None:
        pod = pod_of(await backend.details(key), worker)
    else:
        pod = pod_of_rank(key, rank, await backend.rank_pods(key))
    return await backend.run_in(key, pod, words)


def pod_of_rank(key: Key, rank: int, places: Mapping[int, str]) -> str:
    if rank not in places:
        known = f", but ranks 0 to {max(places)}" if places else ": no rank runs now"
        raise JobError(f"job {key.name} has no rank {rank}{known}")
    return places[rank]


def pod_of(details: JobDetails, worker: int | None) -> str:
    """The worker's, or the launcher's; kinds that may have none are entered at their first node."""
    workers = {pod.index: pod.name for pod in details.pods if pod.role == "worker"}
    launcher = next((pod.name for pod in details.pods if pod.role == "launcher"), "")
    if worker is None and not launcher and details.job.kind != KIND:
        worker = 0
    found = launcher if worker is None else workers.get(worker)
    if found:
        return found
    what = "launcher" if worker is None else f"worker {worker}"
    running = ", ".join(pod.name for pod in details.pods) or "none"
    raise JobError(f"job {details.job.name} has no {what} now", f"Pods that run: {running}.")
