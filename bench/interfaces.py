"""What the command line and the SDK cost on a cluster, beside kubectl, in one run.

    python -m bench.interfaces [--rounds N] [--jobs N] [--cluster NAME]

Method: an API server without nodes, so that nothing but the interfaces works. Every round takes
one sample of each command in turn, so that all meet the same noise; a ratio is that of the medians,
and of the best samples, which noise touches least. CPU is that of the command's own process.

- `create`: `odh mpijob create -f` against `kubectl create -f`, the same manifest.
- `list`: `odh mpijob list` of a thousand jobs against `kubectl get mpijobs`.
- `submissions`: a hundred at once by the SDK, from one process; the time of each to its answer.
- `waiting`: fifty clients, each with a connection of its own, that wait for a job that does not
  end; CPU of all of them over ten seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.job.new import NewJob
from tools.cluster.down import down
from tools.cluster.report import environment
from tools.cluster.spec import Spec, load
from tools.cluster.up import up, why_unhealthy

ODH = str(Path(sys.executable).with_name("odh"))
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench/results/interfaces.json"
NAMESPACE = "bench"
MANY = 100
WAITERS = 50
WAIT_SECONDS = 10.0
JOB = NewJob("bench", ("python", "train.py"), image="registry.example.com/train:1").mpijob()
MANIFEST = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {generateName: made-}
spec:
  slotsPerWorker: 1
  mpiReplicaSpecs:
    Launcher:
      template: {spec: {containers: [{name: mpi, image: "x:1", command: [mpirun, pi]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: mpi, image: "x:1"}]}}
"""

Sample = tuple[float, float]
"""seconds on the clock, seconds of CPU"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--jobs", type=int, default=1000)
    options.add_argument("--cluster", default="bench-interfaces")
    given = options.parse_args()
    load_before = os.getloadavg()[0]
    with server(given.cluster) as spec, tempfile.TemporaryDirectory() as folder:
        env = prepared(spec, Path(folder), given.jobs)
        samples = commands(env, Path(folder), given.rounds)
        submissions = asyncio.run(submitted(env["KUBECONFIG"]))
        waiting = asyncio.run(waited(env["KUBECONFIG"]))
    report(samples, submissions, waiting, given.jobs, load_before)


@contextmanager
def server(name: str) -> Iterator[Spec]:
    """An API server; one that was up before is left up."""
    before = load(name)
    was_up = before is not None and not why_unhealthy(before)
    spec = up(Spec(name=name, profile="api"))
    try:
        yield spec
    finally:
        if not was_up:
            down(name)


def prepared(spec: Spec, folder: Path, jobs: int) -> dict[str, str]:
    """A fresh namespace with so many jobs, and an environment whose kubeconfig leads there."""
    env = {k: v for k, v in environment(spec).items() if k != "PYTHONDONTWRITEBYTECODE"}
    config = json.loads(spec.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = NAMESPACE
    # YAML, as `kubectl config` and `oc login` write it.
    target = folder / "kubeconfig"
    target.touch(0o600)
    target.write_text(yaml.safe_dump(config))
    env["KUBECONFIG"] = str(target)
    for words in (
        ("apply", "-k", str(ROOT / "manifests/crds")),
        ("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=120s"),
        ("create", "namespace", NAMESPACE),
    ):
        subprocess.run(["kubectl", *words], env=env, check=True, stdout=subprocess.DEVNULL)
    # Not `kubectl wait`: it fails where a definition has no conditions yet.
    for _ in range(150):
        if not subprocess.run(
            ["kubectl", "get", "mpijobs"], env=env, capture_output=True
        ).returncode:
            break
        time.sleep(0.2)
    else:
        raise SystemExit("bench: the definition of MPIJob is not served after 30 s")
    asyncio.run(filled(str(target), jobs))
    (folder / "job.yaml").write_text(MANIFEST)
    return env


async def filled(kubeconfig: str, count: int) -> None:
    backend = connect(kubeconfig=kubeconfig)
    room = asyncio.Semaphore(16)

    async def one(number: int) -> None:
        async with room:
            await backend.create(named(f"job-{number:04}"))

    await asyncio.gather(*(one(number) for number in range(count)))


def named(name: str) -> Any:
    meta = msgspec.structs.replace(JOB.metadata, name=name, namespace=NAMESPACE)
    return msgspec.structs.replace(JOB, metadata=meta)


def commands(env: dict[str, str], folder: Path, rounds: int) -> dict[str, list[Sample]]:
    file = str(folder / "job.yaml")
    todo = {
        "kubectl create": ["kubectl", "create", "-f", file],
        "odh create": [ODH, "mpijob", "create", "-f", file],
        "kubectl get": ["kubectl", "get", "mpijobs"],
        "odh list": [ODH, "mpijob", "list"],
    }
    samples: dict[str, list[Sample]] = {name: [] for name in todo}
    for number in range(rounds + 1):
        for name, words in todo.items():
            taken = timed(words, env)
            if number:  # the first round warms caches up and does not count
                samples[name].append(taken)
        print(f"round {number} of {rounds}", file=sys.stderr)
    return samples


def timed(words: list[str], env: dict[str, str]) -> Sample:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, env=env, check=True, capture_output=True)
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, cpu


async def submitted(kubeconfig: str) -> list[float]:
    """Seconds of each of a hundred submissions that begin together."""
    backend = connect(kubeconfig=kubeconfig)
    await backend.list(NAMESPACE)  # the connection's own beginning is not a submission's

    async def one(number: int) -> float:
        began = time.perf_counter()
        await backend.create(named(f"many-{number:03}"))
        return time.perf_counter() - began

    return sorted(await asyncio.gather(*(one(number) for number in range(MANY))))


async def waited(kubeconfig: str) -> float:
    """CPU seconds a second of fifty clients that wait."""

    async def one(heard: asyncio.Event) -> None:
        async for _ in connect(kubeconfig=kubeconfig).watch(Key(NAMESPACE, "job-0000")):
            heard.set()

    begun = [asyncio.Event() for _ in range(WAITERS)]
    waiting = [asyncio.create_task(one(heard)) for heard in begun]
    await asyncio.gather(*(heard.wait() for heard in begun))
    await asyncio.sleep(1)  # what comes after the first answer is not waiting yet
    before = time.process_time()
    await asyncio.sleep(WAIT_SECONDS)
    spent = time.process_time() - before
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return spent / WAIT_SECONDS


def report(
    samples: dict[str, list[Sample]],
    submissions: list[float],
    waiting: float,
    jobs: int,
    load_before: float,
) -> None:
    rows = {name: _figures(taken) for name, taken in samples.items()}
    ratios = {
        f"{a} / {b}": {
            what: round(rows[a][what] / rows[b][what], 2)
            for what in ("median_ms", "best_ms", "cpu_ms")
        }
        for a, b in (("odh create", "kubectl create"), ("odh list", "kubectl get"))
    }
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    python = sys.version.split()[0]
    result = {
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, Python {python}, load {load_before:.1f} before",
        "rounds": len(samples["odh create"]),
        "jobs_listed": jobs,
        "commands": rows,
        "ratios": ratios,
        "submissions": {
            "at_once": MANY,
            "median_ms": round(statistics.median(submissions) * 1000),
            "p99_ms": round(submissions[int(MANY * 0.99) - 1] * 1000),
        },
        "waiting": {"clients": WAITERS, "cpu_percent_of_a_core": round(waiting * 100, 2)},
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def _figures(taken: list[Sample]) -> dict[str, float]:
    walls, cpus = [wall for wall, _ in taken], [cpu for _, cpu in taken]
    return {
        "median_ms": round(statistics.median(walls) * 1000),
        "best_ms": round(min(walls) * 1000),
        "cpu_ms": round(min(cpus) * 1000),
    }


if __name__ == "__main__":
    main()
