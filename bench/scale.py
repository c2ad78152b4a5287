"""An ordinary day of a large cluster: thousands of finished jobs, and one namespace's flood.

    python -m bench.scale [--load 20000,500,5000] [--flood 2000] [--contestants ours,go-raised]

A small run is `--load 2000,50,500 --flood 200`. Method: a control plane of its own with KWOK nodes;
`scale_load` fills it with finished MPIJobs, running MPIJobs and finished TrainJobs and all that
these leave behind. Every contestant in turn, each a process of its own with its own lease:

- `list`: how long this client takes to list, page by page and all kinds at once, what our
  controller lists; nothing is decoded.
- `first pods`: from the start of the process until both workers of a job that was made just before
  it are there. `settled`: until it uses less than a twentieth of a core.
- `loop lag`: the worst that the controller's own metric showed; `bare lag`: that of an asyncio loop
  that does nothing, beside it, over the same time.
- `leases lost`: changes of its lease's holder. `idle CPU`: over a minute after it has settled.
- The flood: one namespace posts its jobs, 16 at a time; meanwhile another makes one of two workers,
  several times. `one s` is from the moment at which the API server has the job to its last worker
  pod, `bare s` from the post of the same two pods by this client, at the same moment; medians, and
  their ratio.

`--keep` leaves the control plane up, and `--again` goes on with it: what is loaded is not loaded
again. The Go operator serves no TrainJobs, so it lists less.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import aiohttp
from msgspec.structs import replace

from bench import cost
from bench.accounts import HOME
from bench.accounts import admit as give_rights
from bench.contestants import CLIENT, CONTESTANTS, Contestant, admit, running
from bench.mpijob_report import Columns, Sample, report
from bench.scale_load import (
    BATCH,
    CORE,
    JOBSETS,
    MPIJOBS,
    TRAINJOBS,
    Api,
    Load,
    Object,
    fill,
    mpijob,
    template,
)
from bench.scene import Scene, Seen, connection
from mpi_trainer.api.kinds.labels import LABEL_TRAINJOB
from tools.cluster import hostjobset, processes
from tools.cluster.client import Client, wait_until
from tools.cluster.down import down
from tools.cluster.errors import ClusterError
from tools.cluster.ports import is_free
from tools.cluster.report import environment
from tools.cluster.spec import Spec
from tools.cluster.up import up

RESULTS: Final = Path(__file__).parent / "results" / "scale.json"
CLUSTER: Final = "bench-scale"
_PORT: Final = 18080
_NEW: Final = "scale-new"
_FLOOD: Final = "scale-flood"
_ONE: Final = "scale-one"
_BARE: Final = "scale-bare"
_IDLE_SECONDS: Final = 60.0
_SETTLED: Final = 0.05
_LONGEST: Final = 600.0
_PROBES: Final = 5
_COLUMNS: Final[Columns] = {
    "load s": lambda s: s.times.get("load"),
    "list s": lambda s: s.times.get("list"),
    "first pods s": lambda s: s.times.get("first pods"),
    "settled s": lambda s: s.times.get("settled"),
    "loop lag s": lambda s: s.times.get("lag"),
    "bare lag s": lambda s: s.times.get("bare lag"),
    "leases lost": lambda s: s.times.get("leases lost"),
    "idle CPU %": lambda s: s.times.get("idle"),
    "CPU s": lambda s: s.cpu.get("self"),
    "peak MiB": lambda s: s.peak_mib or None,
    "one s": lambda s: s.times.get("one"),
    "bare s": lambda s: s.times.get("bare"),
    "one by bare": lambda s: s.times.get("ratio"),
}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _pods(namespace: str) -> str:
    return f"{CORE}/namespaces/{namespace}/pods"


def _mpijobs(namespace: str) -> str:
    return f"{MPIJOBS}/namespaces/{namespace}/mpijobs"


def _worker(pod: Seen) -> list[str]:
    role = pod.metadata.labels.get("training.kubeflow.org/job-role")
    return [pod.metadata.name] if role == "worker" else []


class Stage:
    """A filled control plane, with this client's view of the jobs that are timed."""

    def __init__(self, spec: Spec, session: aiohttp.ClientSession) -> None:
        self.spec, self.session, self.api = spec, session, Api(session)
        self.scene = Scene(session, {_pods(place): _worker for place in (_NEW, _ONE, _BARE)})
        for pid in (os.getpid(), *processes.recorded(spec.state).values()):
            cost.prefer(pid)

    async def list_time(self) -> float:
        """What our controller lists at its start, all kinds at once."""
        ours = "training.kubeflow.org/operator-name=mpi-operator"
        ended = "status.phase!=Pending,status.phase!=Running"
        paths = (
            f"{MPIJOBS}/mpijobs",
            f"{CORE}/pods?labelSelector={ours}",
            f"{BATCH}/jobs?labelSelector={ours}",
            f"{TRAINJOBS}/trainjobs",
            f"{JOBSETS}/jobsets",
            f"{CORE}/pods?labelSelector={LABEL_TRAINJOB}&fieldSelector={ended}",
        )

        async def one(path: str) -> None:
            async for _ in self.api.pages(path):
                pass

        begun = time.monotonic()
        await asyncio.gather(*(one(path) for path in paths))
        return round(time.monotonic() - begun, 2)

    async def pods_there(self, namespace: str, job: str, seconds: float = _LONGEST) -> float:
        """When the last of a job's two workers was there, by this client's clock."""
        names = [f"{job}-worker-{index}" for index in range(2)]

        def there() -> bool:
            return all(self.scene.times(name) for name in names)

        await self.scene.until(there, seconds)
        return max(self.scene.times(name)[0] for name in names)

    async def remove(self, namespace: str) -> None:
        """Every MPIJob of a namespace, and its pods; bounded."""
        for path in (_mpijobs(namespace), _pods(namespace)):
            await self.api.delete(path)
        limit = time.monotonic() + _LONGEST
        while time.monotonic() < limit:
            left = await self.api.get(f"{_pods(namespace)}?limit=1")
            if not left["items"]:
                return
            await asyncio.sleep(1)
        raise TimeoutError(f"pods are left in {namespace}")


class Lag:
    """The worst lag that the controller showed, asked for every few seconds."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def watch(self) -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                with suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(f"http://127.0.0.1:{_PORT}/metrics") as answer:
                        text = await answer.text()
                    found = re.search(r"^event_loop_lag_seconds (\S+)", text, re.MULTILINE)
                    self.worst = max(self.worst, float(found[1]) if found else 0.0)
                await asyncio.sleep(5)


@asynccontextmanager
async def beside(ours: bool) -> AsyncIterator[dict[str, float]]:
    """Lags over the time of the block, in the mapping once it has ended."""
    lags: dict[str, float] = {}
    lag = Lag()
    watching = asyncio.create_task(lag.watch()) if ours else None
    bare = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.bareloop", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield lags
    finally:
        if watching is not None:
            watching.cancel()
            lags["lag"] = round(lag.worst, 3)
        told, _ = await bare.communicate(b"")
        lags["bare lag"] = round(float(told or 0), 3)


def _contestant(name: str) -> Contestant:
    known = CONTESTANTS[name]
    return replace(known, flags=(f"--health-port={_PORT}",)) if known.ours else known


def _since_start(pid: int) -> float:
    """Seconds since the process was started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


async def _settled(pid: int) -> None:
    limit = time.monotonic() + _LONGEST
    while time.monotonic() < limit:
        before = cost.cpu_seconds(pid)
        await asyncio.sleep(5)
        if cost.cpu_seconds(pid) - before < 5 * _SETTLED:
            return
    raise TimeoutError(f"not settled in {_LONGEST:.0f} s")


async def large_day(stage: Stage, contestant: Contestant, pid: int, load: Load) -> Sample:
    """From the start of the process, with a new job waiting for it, until a minute of rest."""
    times: dict[str, float] = {}
    async with beside(contestant.ours) as lags:
        born = time.monotonic() - _since_start(pid)
        times["first pods"] = round(await stage.pods_there(_NEW, "new") - born, 2)
        await _settled(pid)
        times["settled"] = round(time.monotonic() - born, 1)
        peak, busy = cost.peak_mib(pid), cost.cpu_seconds(pid)
        await asyncio.sleep(_IDLE_SECONDS)
        times["idle"] = round(100 * (cost.cpu_seconds(pid) - busy) / _IDLE_SECONDS, 2)
    lease = await _lease(stage)
    times["leases lost"] = float(lease.get("leaseTransitions") or 0)
    return Sample(
        contestant=contestant.name,
        scene=str(load),
        times={**times, **lags},
        cpu={"self": round(busy, 2)},
        peak_mib=peak,
    )


async def _lease(stage: Stage) -> Object:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases"
    found = await stage.api.get(path)
    specs: list[Object] = [item["spec"] for item in found["items"]]
    return specs[0] if specs else {}


async def flood(stage: Stage, contestant: Contestant, pid: int, jobs: int) -> Sample:
    """One namespace's flood, and what another gets meanwhile."""
    stage.scene.forget()
    flooding = asyncio.create_task(_post(stage, _FLOOD, jobs))
    pairs: list[tuple[float, float]] = []
    before = cost.cpu_seconds(pid)
    async with beside(contestant.ours) as lags:
        await asyncio.sleep(1)
        for number in range(_PROBES):
            pairs.append(await _probe(stage, f"probe{number}"))
            say(f"{contestant.name}, flood: one {pairs[-1][0]:.3f} s, bare {pairs[-1][1]:.3f} s")
            await asyncio.sleep(1)
        await flooding
    for namespace in (_FLOOD, _ONE, _BARE):
        await stage.remove(namespace)
    one, bare = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    return Sample(
        contestant=contestant.name,
        scene=f"flood of {jobs}",
        times={
            "one": round(one, 3),
            "bare": round(bare, 3),
            "ratio": round(statistics.median(a / b for a, b in pairs), 2),
            **lags,
        },
        cpu={"self": round(cost.cpu_seconds(pid) - before, 2)},
        peak_mib=cost.peak_mib(pid),
    )


async def _post(stage: Stage, namespace: str, jobs: int) -> None:
    limit = asyncio.Semaphore(16)

    async def one(number: int) -> None:
        async with limit:
            await stage.api.create(_mpijobs(namespace), mpijob(namespace, f"f{number}", 1))

    await asyncio.gather(*(one(number) for number in range(jobs)))


async def _probe(stage: Stage, name: str) -> tuple[float, float]:
    """Seconds from one job to its pods, and from the post of the same pods."""
    await stage.api.create(_mpijobs(_ONE), mpijob(_ONE, name))

    async def job() -> float:
        begun = time.monotonic()
        return await stage.pods_there(_ONE, name) - begun

    async def straight() -> float:
        begun = time.monotonic()
        pods = [_bare_pod(f"bare-{name}-worker-{index}") for index in range(2)]
        await asyncio.gather(*(stage.api.create(_pods(_BARE), pod) for pod in pods))
        return await stage.pods_there(_BARE, f"bare-{name}") - begun

    one, bare = await asyncio.gather(job(), straight())
    return one, bare


def _bare_pod(name: str) -> Object:
    labels = {"training.kubeflow.org/job-role": "worker"}
    pod = template("/usr/sbin/sshd", "-De")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, **pod}


async def perform(spec: Spec, options: argparse.Namespace) -> list[Sample]:
    """Fill, then every contestant in turn."""
    wanted, samples = Load.parse(options.load), []
    async with connection(spec, CLIENT) as session:
        stage = Stage(spec, session)
        seconds = await fill(stage.api, wanted, say)
        say(f"loaded in {seconds} s: {wanted}")
        samples.append(Sample(contestant="loader", scene=str(wanted), times={"load": seconds}))
        with stage.scene.watching():
            for name in options.contestants.split(","):
                contestant = _contestant(name)
                listed = await stage.list_time()
                say(f"listed in {listed} s")
                stage.scene.forget()
                await stage.api.create(_mpijobs(_NEW), mpijob(_NEW, "new"))
                with running(spec, contestant) as pid:
                    day = await large_day(stage, contestant, pid, wanted)
                    samples.append(replace(day, times={"list": listed, **day.times}))
                    say(f"{samples[-1]}")
                    await stage.remove(_NEW)
                    if options.flood:
                        samples.append(await flood(stage, contestant, pid, options.flood))
                        say(f"{samples[-1]}")
    return samples


@contextmanager
def control_plane(options: argparse.Namespace) -> Iterator[Spec]:
    """A cluster that only this benchmark uses, with JobSet's definition alone."""
    accounts = [CONTESTANTS[name].account() for name in options.contestants.split(",")]
    if not options.again:
        down(CLUSTER)
    spec = up(Spec(name=CLUSTER, profile="kwok" if options.nodes else "api"))
    try:
        admit(spec, [CLIENT])
        give_rights(spec, accounts)
        _serve(spec)
        yield spec
    finally:
        if not options.keep:
            down(spec.name)


def _serve(spec: Spec) -> None:
    own = Path(__file__).parents[1] / "manifests/crds"
    kubectl = ["kubectl", "apply", "--server-side", "--force-conflicts", "-k", str(own)]
    subprocess.run(kubectl, env=environment(spec), check=True, capture_output=True)
    client = Client(spec)
    with tempfile.TemporaryDirectory() as scratch:
        config = spec.state / f"{CLIENT}.kubeconfig"
        jobset = hostjobset.prepared(spec, config, Path(scratch) / "jobset")
        kind = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for definition in jobset.definitions:
            client.apply(f"{kind}/{definition['metadata']['name']}", definition)
    for name in (_NEW, _FLOOD, _ONE, _BARE):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        client.apply(f"{CORE}/namespaces/{name}", namespace)
    for path in (f"{MPIJOBS}/mpijobs", f"{TRAINJOBS}/trainjobs", f"{JOBSETS}/jobsets"):
        wait_until(f"{path} can be listed", lambda path=path: _listed(client, path), 60)  # type: ignore[misc]


def _listed(client: Client, path: str) -> bool:
    try:
        return bool(client.get(f"{path}?limit=1"))
    except ClusterError:  # a new kind's storage takes a moment
        return False


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument(
        "--load", default="20000,500,5000", help="finished, running MPIJobs, finished TrainJobs"
    )
    options.add_argument("--flood", type=int, default=2000, help="jobs; 0: not measured")
    options.add_argument("--contestants", default="ours,go-raised")
    options.add_argument(
        "--nodes",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="fake nodes and a scheduler, so that pods of the flood run",
    )
    options.add_argument("--keep", action="store_true", help="leave the control plane up")
    options.add_argument("--again", action="store_true", help="go on with one that was kept")
    options.add_argument("--out", type=Path, default=RESULTS)
    chosen = options.parse_args()
    # What was started is ended also where this run is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not is_free(_PORT, ""):
        raise SystemExit(f"port {_PORT} is taken; end what holds it")
    before = os.getloadavg()[0]
    with control_plane(chosen) as spec:
        samples = asyncio.run(perform(spec, chosen))
    report(samples, before, chosen.out, _COLUMNS)


if __name__ == "__main__":
    main()
