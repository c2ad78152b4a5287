"""Our controller and the Go mpi-operator on one API server with fake nodes, in one run.

    python -m bench.mpijob [--rounds N] [--scenes 1x8,100x4] [--contestants go-raised,ours]
    python -m bench.mpijob --rounds 1 --idle 0 --scenes 500x2,1x2000

Method: a control plane of its own with KWOK nodes; every round takes each contestant in turn, so
that all of them meet the same noise. A scene `JxW` is J MPIJobs of W workers, posted 16 at a time.

- Times count from just before the first post to the watch event, received here, by which the
  last of all objects got there. Launchers end 3 s after they run, and a Job controller adds a
  second: no `succeeded` can be sooner than that.
- Requests: the contestant's own in the audit log, leases left out, until it was quiet for 2 s
  after the last job succeeded. CPU is its user and system time over the same span, memory its
  largest resident size. `floor` is this client posting bare pods itself, 16 at a time.
- etcd: what the finished jobs have left there, read from etcd itself; events, and scripts that all
  jobs share, are not in it. Status writes are the contestant's own to MPIJobs.
- Idle: CPU over 30 s with a thousand finished jobs of its own in the cluster, with all that they
  have left, and nothing to do.

Contestants have ordinary service accounts with the rights of their manifests. `ours` runs the
agent, as users get it; `ours-agent-off` makes objects like the Go operator's.

As root, the kernel's scheduler is told to prefer everything that is measured to the machine's
other work; start it in a session of its own (`setsid`) to have this client preferred alone.
The Go operator with its own flags is held by its rate limit, not by the machine: from 100 pods
on it is measured once. Absolute times hold for the machine and its load; compare inside one run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from bench import cost
from bench.accounts import admit as give_rights
from bench.contestants import CLIENT, CONTESTANTS, Contestant, admit, running
from bench.mpijob_report import RESULTS, Sample, report
from bench.scene import (
    JOBS,
    LONGEST,
    MPIJOBS,
    NAMESPACE,
    PODS,
    QUIET,
    Scene,
    Seen,
    Size,
    connection,
)
from bench.stored import grown, stored
from tools.cluster import processes
from tools.cluster.build import build
from tools.cluster.client import Client, wait_until
from tools.cluster.components import MPI_OPERATOR
from tools.cluster.down import down
from tools.cluster.errors import ClusterError
from tools.cluster.spec import Spec
from tools.cluster.up import up

SCENES: Final = "1x8,1x64,1x256,100x4"
_STATES: Final = {
    "workers_exist": "worker",
    "workers_running": "worker running",
    "launchers": "launcher",
    "created": "Created",
    "running": "Running",
    "succeeded": "Succeeded",
}
_IDLE_SECONDS: Final = 30.0


def _launcher(job: Seen) -> list[str]:
    return ["launcher"] if job.metadata.name.endswith("-launcher") else []


def _worker(pod: Seen) -> list[str]:
    if pod.metadata.labels.get("training.kubeflow.org/job-role") != "worker":
        return []
    return ["worker", "worker running"] if pod.status.phase == "Running" else ["worker"]


_WATCHED: Final = {PODS: _worker, JOBS: _launcher, MPIJOBS: lambda job: job.conditions}


def mpijob(name: str, workers: int, wishes: Mapping[str, str]) -> dict[str, Any]:
    """A plain job: everything that the API lets out is left out. Its workers have no command: the
    Go operator gives them sshd then, and ours the agent."""

    def pod(*command: str) -> dict[str, Any]:
        wants = {"requests": {"cpu": "1"}}
        container = {"name": "c", "image": "mpi", "resources": wants}
        given = {"command": list(command)} if command else {}
        return {"spec": {"containers": [container | given]}}

    replicas = {
        "Launcher": {"replicas": 1, "template": pod("mpirun", "hostname")},
        "Worker": {"replicas": workers, "template": pod()},
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": dict(wishes)},
        "spec": {"slotsPerWorker": 1, "mpiReplicaSpecs": replicas},
    }


def bare_pod(name: str) -> dict[str, Any]:
    """A worker without a controller."""
    job = mpijob("bare", 1, {})
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    labels = {"training.kubeflow.org/job-role": "worker"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        **template,
    }


class Stage:
    """A running control plane, with this client's view of it."""

    def __init__(self, spec: Spec, session: aiohttp.ClientSession) -> None:
        self.spec, self.session, self.scene = spec, session, Scene(session, _WATCHED)
        self.parts = processes.recorded(spec.state)
        for pid in (os.getpid(), *self.parts.values()):
            cost.prefer(pid)


async def play(stage: Stage, contestant: Contestant, pid: int, size: Size) -> Sample:
    """One scene from its first post until the contestant is quiet; its objects stay."""
    stage.scene.forget()
    requests = cost.Requests(stage.spec.state / "log" / "audit.log", contestant.account().user)
    bare = stored(stage.spec, NAMESPACE)
    pids = {"self": pid, **{name: stage.parts[name] for name in ("apiserver", "controllers")}}
    before = {name: cost.cpu_seconds(each) for name, each in pids.items()}
    cost.reset_peak(pid)
    begun = time.monotonic()
    jobs = [mpijob(f"b{i}", size.width, contestant.wishes) for i in range(size.jobs)]
    await stage.scene.post(MPIJOBS, jobs)

    def over() -> bool:
        requests.read()
        if not processes.start_time(pid):
            raise ClusterError(f"{contestant.name} ended by itself in {size}")
        ended = stage.scene.times("Succeeded")
        quiet = time.monotonic() - max(requests.last, *ended, begun) > QUIET
        return len(ended) >= size.jobs and quiet

    await stage.scene.until(over, LONGEST)
    sample = Sample(
        contestant=contestant.name,
        scene=str(size),
        times=milestones(stage.scene, size, begun),
        cpu={name: round(cost.cpu_seconds(each) - before[name], 2) for name, each in pids.items()},
        peak_mib=cost.peak_mib(pid),
        requests=requests.total(),
        by_verb=dict(sorted(requests.counts.items())),
        refused=dict(requests.refused),
        jobs=size.jobs,
        stored=grown(stored(stage.spec, NAMESPACE), bare),
    )
    requests.close()
    return sample


def milestones(scene: Scene, size: Size, begun: float) -> dict[str, float]:
    """When the last object got to each state; states that not all of them showed are left out."""
    found = {}
    for name, state in _STATES.items():
        times = scene.times(state)
        expected = size.all if state.startswith("worker") else size.jobs
        if len(times) >= expected:
            found[name] = round(times[expected - 1] - begun, 3)
    return found


async def floor(stage: Stage, size: Size) -> Sample:
    """The same number of pods, posted by this client and by nobody else."""
    scene = stage.scene
    scene.forget()
    begun = time.monotonic()
    await stage.scene.post(PODS, [bare_pod(f"bare-{i}") for i in range(size.all)])
    await stage.scene.until(lambda: len(scene.times("worker running")) >= size.all, LONGEST)
    sample = Sample(contestant="floor", scene=str(size), times=milestones(stage.scene, size, begun))
    await stage.scene.clear(MPIJOBS, PODS)
    return sample


async def idle(stage: Stage, contestant: Contestant, jobs: int) -> Sample:
    """Nothing to do, with many finished jobs of its own around: begun anew, as after a restart."""
    with running(stage.spec, contestant) as pid:
        await play(stage, contestant, pid, Size(jobs, 1))
    requests = cost.Requests(stage.spec.state / "log" / "audit.log", contestant.account().user)
    with running(stage.spec, contestant) as pid:
        await asyncio.sleep(5)

        def settled() -> bool:
            requests.read()
            return time.monotonic() - requests.last > QUIET

        await stage.scene.until(settled, LONGEST)
        peak, before, at = cost.peak_mib(pid), cost.cpu_seconds(pid), requests.total()
        known = requests.counts.copy()
        await asyncio.sleep(_IDLE_SECONDS)
        requests.read()
        used = round(cost.cpu_seconds(pid) - before, 2)
        return Sample(
            contestant=contestant.name,
            scene=f"idle beside {jobs}",
            cpu={"self": used},
            peak_mib=peak,
            requests=requests.total() - at,
            by_verb=dict(sorted((requests.counts - known).items())),
        )


async def perform(spec: Spec, options: argparse.Namespace) -> list[Sample]:
    """All rounds."""
    contestants = [CONTESTANTS[name] for name in options.contestants.split(",")]
    sizes = [Size.parse(text) for text in options.scenes.split(",") if text]
    samples: list[Sample] = []
    async with connection(spec, CLIENT) as session:
        stage = Stage(spec, session)
        with stage.scene.watching():
            for round_ in range(options.rounds):
                samples += [await floor(stage, size) for size in sizes]
                for contestant in contestants:
                    chosen = [s for s in sizes if not (round_ and contestant.once and s.all > 99)]
                    with running(spec, contestant) as pid:
                        await play(stage, contestant, pid, Size(1, 1))
                        for size in chosen:
                            await stage.scene.clear(MPIJOBS, PODS)
                            samples.append(await play(stage, contestant, pid, size))
                            print(f"round {round_ + 1}: {samples[-1]}", file=sys.stderr)
                        await stage.scene.clear(MPIJOBS, PODS)
            for contestant in contestants if options.idle else ():
                samples.append(await idle(stage, contestant, options.idle))
                await stage.scene.clear(MPIJOBS, PODS)
    return samples


@contextmanager
def control_plane(options: argparse.Namespace) -> Iterator[Spec]:
    """A cluster of fake nodes that only this benchmark uses."""
    accounts = [CONTESTANTS[name].account() for name in options.contestants.split(",")]
    users = tuple(each.user for each in accounts)
    wanted = Spec(name="bench", profile="kwok", audit=True, audit_users=users)
    down(wanted.name)
    spec = up(wanted)
    try:
        admit(spec, [CLIENT])
        give_rights(spec, accounts)
        client = Client(spec)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        client.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace)
        crd = _crd(build([MPI_OPERATOR])[MPI_OPERATOR.name].source)
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
        client.apply(path, crd)
        wait_until("MPIJobs can be listed", lambda: _listed(client), 30)
        yield spec
    finally:
        if not options.keep:
            down(spec.name)


def _listed(client: Client) -> bool:
    try:
        return bool(client.get(MPIJOBS))
    except ClusterError:  # a new kind's storage takes a moment
        return False


def _crd(source: Path) -> dict[str, Any]:
    text = (source / "manifests/base/kubeflow.org_mpijobs.yaml").read_text()
    crd: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return crd


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scenes", default=SCENES)
    options.add_argument("--contestants", default=",".join(CONTESTANTS))
    options.add_argument("--idle", type=int, default=1000, help="finished jobs; 0: not measured")
    options.add_argument("--keep", action="store_true", help="leave the control plane up")
    options.add_argument("--out", type=Path, default=RESULTS)
    chosen = options.parse_args()
    before = os.getloadavg()[0]
    with control_plane(chosen) as spec:
        samples = asyncio.run(perform(spec, chosen))
    report(samples, before, chosen.out)


if __name__ == "__main__":
    main()
