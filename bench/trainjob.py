"""Our controller and the Go trainer with JobSet on one API server with fake nodes, in one run.

    python -m bench.trainjob [--rounds N] [--scenes 1x8,1x64,1x256,100x4] [--contestants ...]

How long a single job takes to its JobSet differs more between two minutes of a small machine than
between contestants: `bench.trainjob_turns` measures that.

Method: a control plane of its own with KWOK nodes and the real JobSet, its webhooks included, as a
process of this machine; every round takes each contestant in turn. A scene `JxN` is J MPI TrainJobs
of N nodes, the launcher one of them, posted 16 at a time. Admission is nobody's: the contestants'
own webhooks are not called.

- Times count from just before the first post to the watch event, received here, by which the last
  JobSet was there (`JobSets`), the last pod of all nodes but the launchers (`pods`), and the last
  TrainJob complete. Launchers end 3 s after they run, and JobSet starts them when nodes are ready.
- Requests: the contestant's own in the audit log, JobSet's left out, until it was quiet for 4 s
  after the last job. CPU is its user and system time over the same span, memory its largest
  resident size.
- etcd: what the finished jobs have left there when JobSet has cleaned up, its objects included;
  events, and scripts that all jobs share, are not in it. Status writes are the contestant's own
  to TrainJobs.

Contestants have ordinary service accounts with the rights of their manifests. `go-default` has the
limits that its manifests set, `go-raised` such as do not hold it. `ours` puts the agent into every
pod, with an init container that the fake nodes must play too; `ours-agent-off` makes the pods that
the Go trainer makes, so that the two controllers alone are compared. Of the Go trainer there are
two kinds: see `called`. Absolute times hold for the machine and its load; compare inside one run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from bench import cost
from bench.accounts import OURS, Account
from bench.accounts import admit as give_rights
from bench.contestants import CLIENT, admit
from bench.mpijob_report import Columns, Sample, report
from bench.scene import LONGEST, NAMESPACE, PODS, Scene, Seen, Size, connection
from bench.stored import grown, settled, stored
from mpi_trainer.api.kinds.annotations import AGENT, bound
from tools.cluster import hostjobset, hosttrainer, processes
from tools.cluster.client import Client, wait_until
from tools.cluster.down import down
from tools.cluster.errors import ClusterError
from tools.cluster.report import environment
from tools.cluster.spec import Spec
from tools.cluster.up import up

_TRAINER: Final = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{NAMESPACE}"
TRAINJOBS: Final = f"{_TRAINER}/trainjobs"
RUNTIMES: Final = f"{_TRAINER}/trainingruntimes"
JOBSETS: Final = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NAMESPACE}/jobsets"
RESULTS: Final = Path(__file__).parent / "results" / "trainjob.json"
SCENES: Final = "1x8,1x64,1x256,100x4"
CONTESTANTS: Final = {
    "go-default": hosttrainer.PUBLISHED,
    "go-raised": hosttrainer.RAISED,
    "ours": None,
    "ours-agent-off": None,
}
WISHES: Final = {"ours-agent-off": {AGENT: "off", bound("wait"): "0"}}
_JOBSET: Final = "bench-jobset"
_QUIET: Final = 4.0
"""longer than a contestant may put a write off"""
_COLUMNS: Final[Columns] = {
    "JobSets s": lambda s: s.times.get("JobSet"),
    "pods s": lambda s: s.times.get("pod"),
    "pods run s": lambda s: s.times.get("pod running"),
    "Complete s": lambda s: s.times.get("Complete"),
    "requests": lambda s: float(s.requests),
    "refused": lambda s: float(sum(s.refused.values())),
    "CPU s": lambda s: s.cpu.get("self"),
    "peak MiB": lambda s: s.peak_mib,
    "API server CPU s": lambda s: s.cpu.get("apiserver"),
    "JobSet CPU s": lambda s: s.cpu.get("jobset"),
    "status writes/job": lambda s: s.status_writes,
    "etcd KiB/job": lambda s: s.left,
}


def _node(pod: Seen) -> list[str]:
    if pod.metadata.labels.get("jobset.sigs.k8s.io/replicatedjob-name") != "node":
        return []
    return ["pod", "pod running"] if pod.status.phase == "Running" else ["pod"]


WATCHED: Final = {
    TRAINJOBS: lambda job: job.conditions,
    JOBSETS: lambda _: ["JobSet"],
    PODS: _node,
}


def expected(size: Size, state: str) -> int:
    """How many objects get to a state; a launcher is a node without a pod of `node`."""
    return size.jobs * (size.width - 1) if state.startswith("pod") else size.jobs


def runtime() -> dict[str, Any]:
    def replicated(name: str, labels: dict[str, str], **more: Any) -> dict[str, Any]:
        wants = {"requests": {"cpu": "1"}}
        container = {"name": "node", "image": "mpi", "resources": wants}
        job = {"metadata": {"labels": labels}, "spec": {"template": _pod(container)}}
        return {"name": name, "replicas": 1, "template": job, **more}

    step = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    after = [{"name": "node", "status": "Ready"}]
    mpi = {"sshAuthMountPath": "/home/mpiuser/.ssh", "runLauncherAsNode": True}
    template = {
        "network": {"publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
        "replicatedJobs": [
            replicated("node", {}),
            replicated("launcher", step, dependsOn=after),
        ],
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "mpi"},
        "spec": {"mlPolicy": {"numNodes": 1, "mpi": mpi}, "template": {"spec": template}},
    }


def _pod(container: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [container]}}


def train_job(name: str, nodes: int, wishes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "annotations": dict(wishes)},
        "spec": {
            "runtimeRef": {"name": "mpi", "kind": "TrainingRuntime"},
            "trainer": {"numNodes": nodes, "command": ["mpirun", "hostname"]},
        },
    }


def _account(who: str) -> Account:
    name = f"bench-{who}-trainer"
    if CONTESTANTS[who] is None:
        return Account(name, OURS)
    return Account(name, (hosttrainer.source() / "manifests/base/rbac/role.yaml",))


def called(who: str, warm: Sample) -> str:
    """The contestant, and of the Go trainer which kind: whether this process writes a job's JobSet
    before its Secret or after it.

    It keeps its parts in a map, and asks them in the order in which Go happened to give them when
    the process began; for as long as it lives its jobs are all made in that order.
    """
    if CONTESTANTS[who] is None:
        return who
    written = list(warm.by_verb)
    first = written.index("patch jobsets") < written.index("patch secrets")
    return f"{who}, JobSet {'first' if first else 'last'}"


async def play(spec: Spec, scene: Scene, who: str, pid: int, size: Size) -> Sample:
    """One scene from its first post until the contestant is quiet."""
    scene.forget()
    requests = cost.Requests(spec.state / "log" / "audit.log", _account(who).user)
    bare = stored(spec, NAMESPACE)
    parts = processes.recorded(spec.state)
    pids = {"self": pid, "apiserver": parts["apiserver"], "jobset": parts[_JOBSET]}
    before = {name: cost.cpu_seconds(each) for name, each in pids.items()}
    cost.reset_peak(pid)
    wishes = WISHES.get(who, {})
    jobs = [train_job(f"b{i}", size.width, wishes) for i in range(size.jobs)]
    begun = time.monotonic()
    await scene.post(TRAINJOBS, jobs)

    def over() -> bool:
        requests.read()
        if not processes.start_time(pid):
            raise ClusterError(f"{who} ended by itself in {size}")
        ended = scene.times("Complete")
        return len(ended) >= size.jobs and time.monotonic() - max(requests.last, *ended) > _QUIET

    await scene.until(over, LONGEST)
    reached = {s: scene.times(s) for s in ("JobSet", "pod", "pod running", "Complete")}
    sample = Sample(
        contestant=who,
        scene=str(size),
        times={
            state: round(times[expected(size, state) - 1] - begun, 3)
            for state, times in reached.items()
            if len(times) >= expected(size, state)
        },
        cpu={name: round(cost.cpu_seconds(each) - before[name], 2) for name, each in pids.items()},
        peak_mib=cost.peak_mib(pid),
        requests=requests.total(),
        by_verb=dict(requests.counts),
        refused=dict(requests.refused),
        jobs=size.jobs,
        stored=grown(settled(spec, NAMESPACE), bare),
    )
    requests.close()
    await scene.clear(TRAINJOBS)
    return sample


@contextmanager
def running(spec: Spec, who: str, name: str = "") -> Iterator[int]:
    """The contestant's process for as long as the block runs; its pid. `name` is the process's."""
    name = name or who
    config, limits = _account(who).kubeconfig(spec), CONTESTANTS[who]
    with tempfile.TemporaryDirectory() as scratch:
        env: dict[str, str] = {}
        if limits is not None:
            start = hosttrainer.prepared(spec, config, Path(scratch) / "trainer", limits)
            argv, env = list(start.argv), start.env
        else:
            module = "mpi_trainer.controller"
            argv = [sys.executable, "-m", module, f"--kubeconfig={config}", "--health-port=0"]
            argv += [f"--namespaces={NAMESPACE}", "--leader-elect=false", "--beside-upstream"]
        pid = processes.start(spec.state, name, argv, environment=env)
        cost.prefer(pid)
        try:
            yield pid
        finally:
            processes.end([pid], grace_seconds=10)
            (spec.state / "pid" / name).unlink()


async def perform(spec: Spec, options: argparse.Namespace) -> list[Sample]:
    """All rounds."""
    samples: list[Sample] = []
    async with connection(spec, CLIENT) as session:
        scene = Scene(session, WATCHED)
        await scene.post(RUNTIMES, [runtime()])
        for pid in (os.getpid(), *processes.recorded(spec.state).values()):
            cost.prefer(pid)
        with scene.watching():
            for _ in range(options.rounds):
                for who in options.contestants.split(","):
                    with running(spec, who) as pid:
                        warm = await play(spec, scene, who, pid, Size(1, 2))
                        for text in options.scenes.split(","):
                            sample = await play(spec, scene, who, pid, Size.parse(text))
                            samples.append(replace(sample, contestant=called(who, warm)))
                            print(samples[-1], file=sys.stderr)
    return samples


@contextmanager
def control_plane() -> Iterator[Spec]:
    """A cluster of fake nodes that only this benchmark uses, with JobSet."""
    accounts = [_account(who) for who in CONTESTANTS]
    users = tuple(each.user for each in accounts)
    wanted = Spec(name="bench-train", profile="kwok", audit=True, audit_users=users)
    down(wanted.name)
    spec = up(wanted)
    try:
        admit(spec, [CLIENT, _JOBSET])
        give_rights(spec, accounts)
        with tempfile.TemporaryDirectory() as scratch:
            _serve(spec, Path(scratch))
            yield spec
    finally:
        down(spec.name)


def _serve(spec: Spec, scratch: Path) -> None:
    """Definitions, the namespace, JobSet and its webhooks."""
    jobset = hostjobset.prepared(spec, spec.state / f"{_JOBSET}.kubeconfig", scratch / "jobset")
    own = Path(__file__).parents[1] / "manifests/crds"
    kubectl = ["kubectl", "apply", "--server-side", "-k", str(own)]
    subprocess.run(kubectl, env=environment(spec), check=True, capture_output=True)
    client = Client(spec)
    for definition in jobset.definitions:
        kind = "apiextensions.k8s.io/v1/customresourcedefinitions"
        client.apply(_path(kind, definition), definition)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    client.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace)
    for path in (TRAINJOBS, JOBSETS, RUNTIMES):
        wait_until(f"{path} can be listed", lambda path=path: _listed(client, path), 60)  # type: ignore[misc]
    processes.start(spec.state, _JOBSET, jobset.argv, environment=jobset.env)
    wait_until("JobSet listens", lambda: _listens(jobset.port), 60)
    for hooks in jobset.webhooks:
        plural = f"{hooks['kind'].lower()}s"
        client.apply(_path(f"admissionregistration.k8s.io/v1/{plural}", hooks), hooks)


def _path(collection: str, obj: dict[str, Any]) -> str:
    return f"/apis/{collection}/{obj['metadata']['name']}"


def _listed(client: Client, path: str) -> bool:
    try:
        return bool(client.get(path))
    except ClusterError:  # a new kind's storage takes a moment
        return False


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scenes", default=SCENES)
    options.add_argument("--contestants", default=",".join(CONTESTANTS))
    options.add_argument("--out", type=Path, default=RESULTS)
    given = options.parse_args()
    load = os.getloadavg()[0]
    with control_plane() as spec:
        samples = asyncio.run(perform(spec, given))
    report(samples, load, given.out, _COLUMNS)


if __name__ == "__main__":
    main()
