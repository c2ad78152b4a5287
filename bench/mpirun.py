"""One mpirun in fresh pods of this machine, as a job runs it or with nothing of ours in its way.

Both kinds find their workers' sshd already up and their SSH already set up. Seconds count from the
launcher's first word to the end of its pod, so with the agent they hold all that it adds: opening
its channels, the shims, the ranks' records and the summary.
"""

from __future__ import annotations

import os
import select
import time
import traceback

import msgspec

from mpi_trainer.layout.agent import paths
from mpi_trainer.local.execute.key_pairs import KeyPairProcess
from mpi_trainer.local.execute.plan import JobKeys, Planner, PodLocation
from mpi_trainer.local.execute.prepare import LocalRun, prepare
from mpi_trainer.local.execute.settings import current_settings
from mpi_trainer.local.mpi.distributions import named
from mpi_trainer.local.pods import isolation, sshd
from mpi_trainer.local.pods.pod import PodPlan, RunningPod
from mpi_trainer.local.pods.sandbox import Sandbox
from mpi_trainer.sdk.job.new import NewJob

_OURS = ("MPI_TRAINER_TAG", "OMPI_MCA_orte_fork_agent", "PRTE_MCA_odls_base_exec_agent")
_OURS_TOO = ("MPI_TRAINER_RANK_WRAPPER", "I_MPI_GTOOL")
_SECONDS = 300.0


class Ran(msgspec.Struct, frozen=True):
    seconds: float
    output: str


def mpirun(build: str, workers: int, command: tuple[str, ...], *, agent: bool) -> Ran:
    """`mpirun -n WORKERS COMMAND`, one rank a worker. Forks, since pods need a supervisor."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            os.write(writer, msgspec.json.encode(_in_pods(build, workers, command, agent)))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    os.waitpid(child, 0)
    return msgspec.json.decode(data, type=Ran)


def _in_pods(build: str, workers: int, command: tuple[str, ...], agent: bool) -> Ran:
    distribution = named(build)
    assert distribution is not None
    words = ("mpirun", "-n", str(workers), *command)
    new = NewJob("bench", words, workers=workers, implementation=distribution.implementation)
    local = prepare(new.mpijob(), msgspec.structs.replace(current_settings(), distribution=build))
    host = Sandbox.enter(isolation.probe(), "bench", ())
    try:
        planner = _planner(local, host)
        for worker in host.start(tuple(planner.pod(w) for w in local.layout.workers)):
            _until_listening(worker)
        plan = planner.pod(local.layout.launcher)
        (running,) = host.start((_timed(plan) if agent else _timed(_bare(plan, words)),))
        output, errors = _to_the_end(running)
        ended = time.time()
        assert running.wait().code == 0, errors
        began, _, rest = output.partition("\n")
        return Ran(ended - float(began), rest)
    finally:
        host.close()


def _planner(local: LocalRun, host: Sandbox) -> Planner:
    own, hosts = KeyPairProcess(2).pairs()
    locations = {
        pod.name: PodLocation(host.address(i), sshd.PORT, host.paths(pod.name))
        for i, pod in enumerate(local.layout.pods)
    }
    return Planner(local.layout, local.run_plan().machine, locations, JobKeys(own, hosts))


def _timed(plan: PodPlan) -> PodPlan:
    """The time is told after SSH is set up: on a cluster that is done before the launcher."""
    first = f'{paths.PREPARE} launcher; date +%s.%N; exec "$@"'
    return msgspec.structs.replace(plan, argv=("/bin/sh", "-c", first, "sh", *plan.argv))


def _bare(plan: PodPlan, words: tuple[str, ...]) -> PodPlan:
    """The launcher's plan without the agent: mpirun itself, and MPI's own settings."""
    env = {k: v for k, v in plan.env if not k.startswith((*_OURS, *_OURS_TOO))}
    return msgspec.structs.replace(plan, argv=words, env=tuple(env.items()))


def _until_listening(worker: RunningPod) -> None:
    os.set_blocking(worker.stderr, True)
    said = b""
    while b"Server listening on " not in said:
        said += os.read(worker.stderr, 4096)


def _to_the_end(pod: RunningPod) -> tuple[str, str]:
    """What the pod says until it is gone."""
    told = {pod.stdout: b"", pod.stderr: b""}
    deadline = time.monotonic() + _SECONDS
    left = set(told)
    while left:
        ready, _, _ = select.select(left, (), (), deadline - time.monotonic())
        assert ready, told
        for descriptor in ready:
            data = os.read(descriptor, 65536)
            told[descriptor] += data
            if not data:
                left.discard(descriptor)
    return told[pod.stdout].decode(), told[pod.stderr].decode()
