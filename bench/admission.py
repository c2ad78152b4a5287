"""What admission costs: how long an answer takes, and how much memory the webhook needs.

    python -m bench.admission [--requests N]

Method: a real API server, one webhook process in front of it with the controller's rights, and one
client. Each thing is asked for one after the other over one connection that stays open, after a
few that do not count; p50 and p99 are of those waits, as the asker sees them.

- `static, refused` and `static, changed`: reviews sent to the webhook itself: a job that is wrong
  in three places, and an update of a sound job. Nothing is asked of the API server.
- `defaults`: what the mutating configuration asks.
- `whole`: a sound job of 64 workers, with quota, the user's rights and the pods of both roles asked
  of the API server.
- `create without` and `create with`: a dry-run create by the API server, before the
  configurations are there and after.
- Memory: resident size when the process is ready, and its peak after all that and 50 at once.

All programs are preferred to the machine's other work alike; the load beside them is told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from bench.cost import peak_mib, prefer
from bench.scene import connection
from tests.api.admission.cases import MAIN, POLICY, ROLES, job
from tests.api.admission.serving import install, serving
from tests.cluster import Kubectl, restricted
from tools.cluster.down import down
from tools.cluster.processes import recorded
from tools.cluster.spec import Spec
from tools.cluster.up import up

RESULTS = Path(__file__).parent / "results" / "admission.json"
PORT = 19463
NAMESPACE = "bench"
WARM_UP = 20
AT_ONCE = 50

Object = dict[str, Any]
Ask = Callable[[], Awaitable[None]]


def review(new: Object, old: Object | None = None) -> Object:
    request = {
        "uid": "1",
        "kind": {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"},
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": NAMESPACE,
        "name": new["metadata"]["name"],
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def reviews() -> dict[str, tuple[str, Object]]:
    """What the webhook itself is asked: a path and a review."""
    wrong = job(
        "wrong",
        (("spec", "slotsPerWorker"), 0),
        ((*POLICY, "cleanPodPolicy"), "running"),
        ((*MAIN, "imag"), "x"),
    )
    old, new = job("changed"), job("changed", ((*POLICY, "backoffLimit"), 2))
    sound = job("sound", ((*ROLES, "Worker", "replicas"), 64))
    return {
        "static, refused": ("/validate-mpijob", review(wrong)),
        "static, changed": ("/validate-mpijob", review(new, old)),
        "defaults": ("/mutate-mpijob", review(sound)),
        "whole": ("/validate-mpijob", review(sound)),
    }


async def waits(ask: Ask, requests: int) -> list[float]:
    """Seconds until each answer, one after the other."""
    taken = []
    for _ in range(requests + WARM_UP):
        began = time.perf_counter()
        await ask()
        taken.append(time.perf_counter() - began)
    return taken[WARM_UP:]


def asking(session: aiohttp.ClientSession, path: str, body: Object) -> Ask:
    async def ask() -> None:
        async with session.post(path, json=body) as answer:
            content = await answer.text()
            assert answer.status in (200, 201), content

    return ask


async def creating(spec: Spec, requests: int) -> list[float]:
    path = f"/apis/kubeflow.org/v2beta1/namespaces/{NAMESPACE}/mpijobs?dryRun=All"
    async with connection(spec, "admin") as session:
        return await waits(asking(session, path, job("sound")), requests)


async def asked(requests: int) -> dict[str, list[float]]:
    """The webhook's own answers, and at the end many at once for its memory."""
    trust = ssl.create_default_context()
    # Whom it speaks to is no question here, and its authority is hours old at most.
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=trust, limit=AT_ONCE)
    async with aiohttp.ClientSession(f"https://localhost:{PORT}", connector=connector) as session:
        taken = {
            name: await waits(asking(session, path, body), requests)
            for name, (path, body) in reviews().items()
        }
        path, body = reviews()["whole"]
        await asyncio.gather(*(asking(session, path, body)() for _ in range(AT_ONCE)))
    return taken


def measured(spec: Spec, requests: int, folder: Path) -> Object:
    kubectl = Kubectl(spec)
    install(kubectl)
    kubectl.apply(restricted(NAMESPACE))
    for pid in (os.getpid(), *recorded(spec.state).values()):
        prefer(pid)
    taken = {"create without": asyncio.run(creating(spec, requests))}
    with serving(spec, folder, PORT) as server:
        prefer(server.process.pid)
        ready = peak_mib(server.process.pid)
        taken |= asyncio.run(asked(requests))
        taken["create with"] = asyncio.run(creating(spec, requests))
        peak = peak_mib(server.process.pid)
    return {
        "milliseconds": {name: _figures(values) for name, values in taken.items()},
        "memory_mib": {"ready": ready, "peak": peak},
    }


def _figures(seconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return {name: round(cuts[n] * 1000, 2) for name, n in (("p50", 49), ("p99", 98))}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=500)
    given = options.parse_args()
    spec = up(Spec(name="bench-admission", profile="api"))
    try:
        with tempfile.TemporaryDirectory() as folder:
            figures = measured(spec, given.requests, Path(folder))
    finally:
        down(spec.name)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    result = {
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "requests": given.requests,
        **figures,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
