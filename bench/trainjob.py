"""Our controller and the Go trainer on one API server, in one run: from TrainJobs to JobSets.

    python -m bench.trainjob [--rounds N] [--scenes 1x8,1x64,1x256,100x4]

Method: a control plane of its own without nodes and without JobSet's controller, so that nothing
but the contestants works; every round takes each in turn. A scene `JxN` is J MPI TrainJobs of N
nodes, posted 16 at a time. Once all have their JobSets this client says that those are complete.

- Times count from just before the first post to the watch event by which the last JobSet was
  there (`jobsets`), and from the first word of completion to the last TrainJob (`complete`).
- Requests: the contestant's own in the audit log, until it was quiet for 2 s. CPU is its user and
  system time over the same span, memory its largest resident size.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from bench import cost
from bench.contestants import CLIENT, admit
from bench.mpijob_report import Columns, Sample, report
from bench.scene import connection
from tools.cluster import hosttrainer
from tools.cluster.build import build
from tools.cluster.client import Client, wait_until
from tools.cluster.components import JOBSET
from tools.cluster.down import down
from tools.cluster.errors import ClusterError
from tools.cluster.report import environment
from tools.cluster.spec import Spec
from tools.cluster.up import up

NAMESPACE: Final = "bench"
TRAINJOBS: Final = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{NAMESPACE}/trainjobs"
RUNTIMES: Final = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{NAMESPACE}/trainingruntimes"
JOBSETS: Final = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NAMESPACE}/jobsets"
RESULTS: Final = Path(__file__).parent / "results" / "trainjob.json"
SCENES: Final = "1x8,1x64,1x256,100x4"
USERS: Final = {"go": "bench-go-trainer", "ours": "bench-ours-trainer"}
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_IN_FLIGHT: Final = 16
_QUIET: Final = 2.0
_LONGEST: Final = 300.0
_COLUMNS: Final[Columns] = {
    "JobSets s": lambda s: s.times.get("jobsets"),
    "Complete s": lambda s: s.times.get("complete"),
    "requests": lambda s: float(s.requests),
    "refused": lambda s: float(sum(s.refused.values())),
    "CPU s": lambda s: s.cpu.get("self"),
    "peak MiB": lambda s: s.peak_mib,
    "API server CPU s": lambda s: s.cpu.get("apiserver"),
}


def runtime() -> dict[str, Any]:
    def replicated(name: str, labels: dict[str, str]) -> dict[str, Any]:
        pod = {"spec": {"containers": [{"name": "node", "image": "mpi"}]}}
        job = {"metadata": {"labels": labels}, "spec": {"template": pod}}
        return {"name": name, "replicas": 1, "template": job}

    trainer = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    jobs = [replicated("node", {}), replicated("launcher", trainer)]
    policy = {"numNodes": 1, "mpi": {"sshAuthMountPath": "/home/mpiuser/.ssh"}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "mpi"},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": jobs}}},
    }


def train_job(name: str, nodes: int) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "mpi", "kind": "TrainingRuntime"},
            "trainer": {"numNodes": nodes, "command": ["mpirun", "hostname"]},
        },
    }


class Stage:
    """This client's view of a running control plane."""

    def __init__(self, spec: Spec, session: aiohttp.ClientSession) -> None:
        self.spec, self.session = spec, session

    async def listed(self, path: str) -> list[dict[str, Any]]:
        async with self.session.get(path) as answer:
            items: list[dict[str, Any]] = (await answer.json())["items"]
            return items

    async def each(self, method: str, calls: list[tuple[str, Any]]) -> None:
        limit = asyncio.Semaphore(_IN_FLIGHT)
        headers = _MERGE if method == "PATCH" else {"Content-Type": "application/json"}

        async def one(path: str, body: Any) -> None:
            data = msgspec.json.encode(body)
            async with (
                limit,
                self.session.request(method, path, data=data, headers=headers) as answer,
            ):
                if answer.status >= 300:
                    raise ClusterError(f"{answer.status} {(await answer.text())[:300]}")
                await answer.read()

        await asyncio.gather(*(one(*call) for call in calls))

    async def until(self, path: str, count: int, good: Any) -> float:
        """When the last of so many objects was good, by a watch."""
        found: set[str] = set()
        deadline = time.monotonic() + _LONGEST
        query = {"watch": "1", "timeoutSeconds": str(int(_LONGEST))}
        unlimited = aiohttp.ClientTimeout(total=_LONGEST)
        async with self.session.get(path, params=query, timeout=unlimited) as answer:
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    seen = msgspec.json.decode(line)
                    if seen["type"] != "DELETED" and good(seen["object"]):
                        found.add(seen["object"]["metadata"]["name"])
                if len(found) >= count:
                    return time.monotonic()
                if time.monotonic() > deadline:
                    break
        raise TimeoutError(f"{len(found)} of {count} at {path}")

    async def clear(self) -> None:
        await self.each("DELETE", [(TRAINJOBS, {"propagationPolicy": "Background"})])
        while await self.listed(JOBSETS) or await self.listed(TRAINJOBS):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        await asyncio.sleep(_QUIET)


def _complete(job: dict[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", [])
    return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)


async def play(stage: Stage, who: str, pid: int, jobs: int, nodes: int) -> Sample:
    """One scene from its first post until the contestant is quiet."""
    requests = cost.Requests(stage.spec.state / "log" / "audit.log", USERS[who])
    apiserver = int((stage.spec.state / "pid" / "apiserver").read_text().split()[0])
    before = {"self": cost.cpu_seconds(pid), "apiserver": cost.cpu_seconds(apiserver)}
    cost.reset_peak(pid)
    watch = asyncio.create_task(stage.until(JOBSETS, jobs, lambda _: True))
    begun = time.monotonic()
    names = [f"b{i}" for i in range(jobs)]
    await stage.each("POST", [(TRAINJOBS, train_job(name, nodes)) for name in names])
    there = await watch
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    done = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted",
            "message": "jobset completed successfully", "lastTransitionTime": now}  # fmt: skip
    status = {"status": {"conditions": [done]}}
    told = time.monotonic()
    watch = asyncio.create_task(stage.until(TRAINJOBS, jobs, _complete))
    await stage.each("PATCH", [(f"{JOBSETS}/{name}/status", status) for name in names])
    complete = await watch
    while time.monotonic() - max(requests.last, complete) < _QUIET:
        await asyncio.sleep(0.1)
        requests.read()
    after = {"self": cost.cpu_seconds(pid), "apiserver": cost.cpu_seconds(apiserver)}
    sample = Sample(
        contestant=who,
        scene=f"{jobs}x{nodes}",
        times={"jobsets": round(there - begun, 3), "complete": round(complete - told, 3)},
        cpu={name: round(after[name] - before[name], 2) for name in after},
        peak_mib=cost.peak_mib(pid),
        requests=requests.total(),
        by_verb=dict(sorted(requests.counts.items())),
        refused=dict(requests.refused),
    )
    requests.close()
    await stage.clear()
    return sample


@contextmanager
def running(spec: Spec, who: str) -> Iterator[int]:
    """The contestant's process for as long as the block runs; its pid."""
    config = spec.state / f"{USERS[who]}.kubeconfig"
    with tempfile.TemporaryDirectory() as scratch, (Path(scratch) / "log").open("wb") as log:
        env = dict(os.environ)
        if who == "go":
            start = hosttrainer.prepared(spec, config, Path(scratch) / "trainer")
            argv, env = list(start.argv), env | start.env
        else:
            module = "mpi_trainer.controller"
            argv = [sys.executable, "-m", module, f"--kubeconfig={config}", "--health-port=0"]
            argv += [f"--namespaces={NAMESPACE}", "--leader-elect=false", "--beside-upstream"]
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process.pid
            if process.poll() is not None:
                raise ClusterError(f"{who} ended: {(Path(scratch) / 'log').read_text()[-2000:]}")
        finally:
            process.terminate()
            process.wait(30)


async def perform(spec: Spec, rounds: int, scenes: str) -> list[Sample]:
    samples: list[Sample] = []
    async with connection(spec, CLIENT) as session:
        stage = Stage(spec, session)
        await stage.each("POST", [(RUNTIMES, runtime())])
        for _ in range(rounds):
            for who in USERS:
                with running(spec, who) as pid:
                    await play(stage, who, pid, 1, 1)
                    for scene in scenes.split(","):
                        jobs, _, nodes = scene.partition("x")
                        samples.append(await play(stage, who, pid, int(jobs), int(nodes)))
                        print(samples[-1], file=sys.stderr)
    return samples


@contextmanager
def control_plane() -> Iterator[Spec]:
    """A cluster that only this benchmark uses."""
    wanted = Spec(name="bench-train", profile="api", audit=True, audit_users=tuple(USERS.values()))
    down(wanted.name)
    spec = up(wanted)
    try:
        admit(spec, [CLIENT, *USERS.values()])
        sets = build([JOBSET])["jobset"].source / "config/components/crd/bases"
        own = Path(__file__).parents[1] / "manifests/crds"
        for what in (["-k", str(own)], ["-f", str(sets)]):
            kubectl = ["kubectl", "apply", "--server-side", *what]
            subprocess.run(kubectl, env=environment(spec), check=True, capture_output=True)
        client = Client(spec)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        client.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace)
        for path in (TRAINJOBS, JOBSETS, RUNTIMES):
            wait_until(f"{path} can be listed", lambda path=path: _listed(client, path), 60)  # type: ignore[misc]
        yield spec
    finally:
        down(spec.name)


def _listed(client: Client, path: str) -> bool:
    try:
        return bool(client.get(path))
    except ClusterError:  # a new kind's storage takes a moment
        return False


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scenes", default=SCENES)
    options.add_argument("--results", type=Path, default=RESULTS)
    given = options.parse_args()
    load = os.getloadavg()[0]
    with control_plane() as spec:
        samples = asyncio.run(perform(spec, given.rounds, given.scenes))
    report(samples, load, given.results, _COLUMNS)


if __name__ == "__main__":
    main()
