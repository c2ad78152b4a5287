"""What the REST API and its live streams cost on a cluster, and beside the naive way.

    python -m bench.server [creates] [pages] [lists] [streams] [--jobs N,N] [--pages N]
                           [--streams N] [--rounds N]

Method: an API server without nodes and controllers, and the server as a process of its own; both,
and the callers, share this machine. Requests that reach the API server are those for jobs
that it counts itself, with the watches that are open; reviews of logins and access, and what is
asked about a namespace before a job is made, are counted apart. CPU is that of each server's
process, in seconds: it says more than the clock where others use the machine too. Parts that are
not named keep their figures of an earlier run.

- `creates`: 100 callers at once submit one job each; seconds of each to its answer.
- `pages`: so many live lists open at once, and then one job that changes; requests of all of them
  beside those of one page, and the seconds until the last reader has the change. `lists` is what
  each page asks for after that, as the dashboard does.
- `lists`: the first 100 of so many jobs, with facets of all, again and again, from one caller; and
  the page after them.
  Beside it the naive way straight to the API server: a list of 100 names without order or facets,
  and a request for each of those jobs, 16 at once.
- `streams`: `bench.server_streams`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

from bench.interfaces import MANIFEST, NAMESPACE, named, prepared
from bench.interfaces import server as api_server
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.server.serve import LOOPBACK
from tools.cluster.spec import Spec

RESULTS: Final = Path(__file__).parents[1] / "bench/results/server.json"
PARTS: Final = ("creates", "pages", "lists", "streams")
CREATES: Final = 100
SHOWN: Final = 100
EACH: Final = 40
"""streams of one caller"""
AT_ONCE: Final = 16
PAUSE: Final = 0.25
_JOBS_API: Final = f"/apis/kubeflow.org/v2beta1/namespaces/{NAMESPACE}/mpijobs"
_NAMES: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_KINDS: Final = "mpijobs|trainjobs|pytorchjobs|tfjobs"
_ENDED: Final = re.compile(
    rf'apiserver_request_total\{{[^}}]*resource="(?:{_KINDS})"[^}}]*\}} (\S+)'
)
_REVIEWS: Final = re.compile(
    r'apiserver_request_total\{[^}]*resource="selfsubject(?:access)?reviews"[^}]*\} (\S+)'
)
_DEMANDS: Final = re.compile(
    r'apiserver_request_total\{[^}]*resource="(?:namespaces|resourcequotas|limitranges)"'
    r'[^}]*verb="(?:GET|LIST)"[^}]*\} (\S+)'
)
_OPEN: Final = re.compile(
    rf'apiserver_longrunning_requests\{{[^}}]*resource="(?:{_KINDS})"[^}}]*\}} (\S+)'
)
Figures = dict[str, Any]


def main() -> None:
    given = _options()
    parts = given.parts or PARTS
    found: Figures = json.loads(RESULTS.read_text()) if given.parts and RESULTS.exists() else {}
    found |= {"commit": _commit(), "machine": _machine()}
    if set(parts) - {"streams"}:
        found |= _on_cluster(parts, given)
    if "streams" in parts:
        words = [sys.executable, "-m", "bench.server_streams", str(given.streams)]
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        found["streams"] = json.loads(done.stdout)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    options.add_argument("--jobs", default="100,1000,5000")
    options.add_argument("--pages", type=int, default=200)
    options.add_argument("--streams", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=20)
    given = options.parse_args()
    if wrong := set(given.parts) - set(PARTS):
        options.error(f"no such part: {', '.join(sorted(wrong))}")
    return given


def _commit() -> str:
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {sys.version.split()[0]}"


def _on_cluster(parts: Sequence[str], given: argparse.Namespace) -> Figures:
    sizes = sorted(int(one) for one in given.jobs.split(","))
    with api_server("bench-server") as spec, tempfile.TemporaryDirectory() as folder:
        env = prepared(spec, Path(folder), min(sizes[0], SHOWN))
        port = free_port()
        words = ["-m", "mpi_trainer.server", "--kubeconfig", env["KUBECONFIG"]]
        with process([*words, "--port", str(port)], port, env) as pid:
            return asyncio.run(Cluster(spec, env, port, pid).measured(parts, sizes, given))


def load() -> float:
    """Who runs on the machine, on the average of a minute."""
    return round(os.getloadavg()[0], 1)


def quantile(seconds: Sequence[float], share: float) -> float:
    ordered = sorted(seconds)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)


class Cluster:
    """The API server, and ours in front of it."""

    def __init__(self, spec: Spec, env: dict[str, str], port: int, pid: int) -> None:
        self._spec = spec
        self._pids = {"server": pid, "api_server": _api_server(spec)}
        self._env = env
        self._root = f"http://{LOOPBACK}:{port}"
        account = f"--serviceaccount={NAMESPACE}:bench"
        self._kubectl("create", "serviceaccount", "bench")
        rights = ("create", "rolebinding", "bench", "--clusterrole=cluster-admin", account)
        self._kubectl(*rights)

    def _kubectl(self, *words: str) -> str:
        return subprocess.run(
            ["kubectl", *words], env=self._env, stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()

    def token(self) -> str:
        return self._kubectl("create", "token", "bench")

    async def watches(self) -> int:
        text = await asyncio.to_thread(self._kubectl, "get", "--raw", "/metrics")
        return sum(int(float(one)) for one in _OPEN.findall(text))

    async def figures(self) -> dict[str, float]:
        """What both servers have spent so far, and what the API server was asked."""
        patterns = {"requests": (_ENDED, _OPEN), "reviews": (_REVIEWS,), "demands": (_DEMANDS,)}
        text = await asyncio.to_thread(self._kubectl, "get", "--raw", "/metrics")
        asked = {
            name: float(sum(int(float(n)) for one in which for n in one.findall(text)))
            for name, which in patterns.items()
        }
        return {**asked, **{f"{name}_cpu": _cpu(pid) for name, pid in self._pids.items()}}

    async def spent(self, before: Mapping[str, float], times: int = 1) -> Figures:
        """Since then, each time."""
        after = await self.figures()
        return {name: round((after[name] - before[name]) / times, 3) for name in before}

    async def measured(
        self, parts: Sequence[str], sizes: Sequence[int], given: argparse.Namespace
    ) -> Figures:
        found: Figures = {}
        login = {"Authorization": f"Bearer {self.token()}"}
        trust = ssl.create_default_context(cafile=str(self._spec.state / "pki" / "ca.crt"))
        async with AsyncExitStack() as stack:

            async def opened(root: str) -> aiohttp.ClientSession:
                connector = aiohttp.TCPConnector(limit=0, ssl=trust)
                made = aiohttp.ClientSession(root, headers=login, connector=connector)
                return await stack.enter_async_context(made)

            http, straight = await opened(self._root), await opened(self._spec.api_url)
            if "creates" in parts:
                found["creates"] = await self._creates(http)
            if "pages" in parts:
                found["pages"] = await self._pages(http, given.pages)
            if "lists" in parts:
                found["lists"] = [await self._lists(http, straight, n, given.rounds) for n in sizes]
        return found

    async def _creates(self, http: aiohttp.ClientSession) -> Figures:
        body = MANIFEST.replace("generateName: made-", "name: NAME")
        path = f"/api/v1/namespaces/{NAMESPACE}/mpijobs"
        await read(http, f"{path}?limit=1")  # a login's first connection is no submission's

        async def one(number: int) -> float:
            text = body.replace("NAME", f"created-{number}")
            began = time.perf_counter()
            kind = {"Content-Type": "application/yaml"}
            async with http.post(path, data=text, headers=kind) as answer:
                assert answer.status == 201, await answer.text()
            return time.perf_counter() - began

        before = await self.figures()
        seconds = await asyncio.gather(*map(one, range(CREATES)))
        spent = await self.spent(before)
        return {"at_once": CREATES, **_seconds(seconds, 0.99), **spent, "load": load()}

    async def _lists(
        self, http: aiohttp.ClientSession, straight: aiohttp.ClientSession, jobs: int, rounds: int
    ) -> Figures:
        path = f"/api/v1/namespaces/{NAMESPACE}/jobs?limit={SHOWN}"
        await self._fill(jobs - int((await read(http, path))["total"]), jobs)
        room = asyncio.Semaphore(AT_ONCE)

        async def ours() -> None:
            assert len((await read(http, path))["items"]) == min(SHOWN, jobs)

        async def further() -> None:
            assert (await read(http, following))["items"]

        async def one(name: str) -> None:
            async with room:
                await read(straight, f"{_JOBS_API}/{name}")

        async def naive() -> None:
            found = await read(straight, f"{_JOBS_API}?limit={SHOWN}", {"Accept": _NAMES})
            await asyncio.gather(*(one(each["metadata"]["name"]) for each in found["items"]))

        made: Figures = {"jobs": int((await read(http, path))["total"])}
        works: Figures = {"ours": ours, "naive": naive}
        if token := (await read(http, path))["continue"]:
            following = f"{path}&continue={token}"
            works = {"further": further, **works}
        for name, work in works.items():
            made[name] = await self._cost(work, rounds)
        async with AsyncExitStack() as stack:
            stream = await stack.enter_async_context(_for_streams(self._root))
            live = f"/api/v1/live/jobs?namespace={NAMESPACE}"
            opened = stream.get(live, headers={"Authorization": http.headers["Authorization"]})
            await heard_of(await stack.enter_async_context(opened), b"event: snapshot")
            made["beside a stream"] = await self._cost(ours, rounds)
        return {**made, "rounds": rounds, "load": load()}

    async def _cost(self, work: Callable[[], Awaitable[None]], rounds: int) -> Figures:
        before = await self.figures()
        seconds = await _timed(work, rounds)
        return {**_seconds(seconds, 0.95), **await self.spent(before, rounds + 1)}

    async def _fill(self, missing: int, place: int) -> None:
        backend, room = connect(kubeconfig=self._env["KUBECONFIG"]), asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with room:
                await backend.create(named(f"filled-{place}-{number}"))

        await asyncio.gather(*map(one, range(missing)))

    async def _pages(self, http: aiohttp.ClientSession, pages: int) -> Figures:
        there = await read(http, f"/api/v1/namespaces/{NAMESPACE}/jobs?limit=1")
        made: Figures = {"jobs": int(there["total"])}
        watches = await self.watches()
        for number in (1, pages):
            made[f"{number} open"] = await self._opened(number)
            # A reader who left is missed at the next sign of life, and the next one would share.
            async with asyncio.timeout(60):
                while await self.watches() > watches:  # noqa: ASYNC110 - another process's
                    await asyncio.sleep(1)
        return {**made, "load": load()}

    async def _opened(self, number: int) -> Figures:
        """Each `EACH` pages are of another login, which no one has used before."""
        logins = [self.token() for _ in range(0, number, EACH)]
        room, heard = asyncio.Semaphore(AT_ONCE), asyncio.Queue[float]()
        path = f"/api/v1/live/jobs?namespace={NAMESPACE}"
        before = await self.figures()
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(_for_streams(self._root))

            async def page(place: int) -> aiohttp.ClientResponse:
                login = {"Authorization": f"Bearer {logins[place // EACH]}"}
                async with room:
                    answer = await stack.enter_async_context(http.get(path, headers=login))
                    assert answer.status == 200, await answer.text()
                    await heard_of(answer, b"event: snapshot")
                return answer

            async def told(answer: aiohttp.ClientResponse) -> None:
                await heard_of(answer, b"event: job")
                heard.put_nowait(time.perf_counter())

            began = time.perf_counter()
            answers = await asyncio.gather(*map(page, range(number)))
            opened = time.perf_counter() - began
            spent = await self.spent(before)
            readers = [asyncio.create_task(told(answer)) for answer in answers]
            words = ("label", "mpijob", "job-0000", "--overwrite", f"pages={number}")
            await asyncio.to_thread(self._kubectl, *words)
            times = [await heard.get() for _ in range(number)]
            await asyncio.gather(*readers)
            before = await self.figures()
            lists = f"{self._root}/api/v1/namespaces/{NAMESPACE}/jobs?limit={SHOWN}"

            async def listed(place: int) -> None:
                login = {"Authorization": f"Bearer {logins[place // EACH]}"}
                async with room, http.get(lists, headers=login) as answer:
                    assert answer.status == 200, await answer.text()

            await asyncio.gather(*map(listed, range(number)))
            after = await self.spent(before)
        spread = max(times) - min(times)
        return {
            "logins": len(logins),
            **spent,
            "lists": after,
            "opened_seconds": round(opened, 2),
            "first_to_last_told_seconds": round(spread, 3),
        }


def _api_server(spec: Spec) -> int:
    """The number of its process."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            program, *words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if program.endswith(b"/kube-apiserver") and f"{spec.state}/".encode() in b" ".join(words):
            return int(folder.name)
    raise SystemExit("bench: no process of the API server was found")


def _cpu(pid: int) -> float:
    """Seconds, of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _for_streams(root: str) -> aiohttp.ClientSession:
    connector, forever = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=None)
    return aiohttp.ClientSession(root, connector=connector, timeout=forever)


async def heard_of(answer: aiohttp.ClientResponse, words: bytes) -> None:
    """Reads until these words have come."""
    last = b""
    async for chunk in answer.content.iter_any():
        if words in last + chunk:
            return
        last = chunk[-len(words) :]
    raise AssertionError(f"the stream ended before {words!r}")


async def read(
    http: aiohttp.ClientSession, path: str, headers: Mapping[str, str] | None = None
) -> Any:
    async with http.get(path, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return json.loads(await answer.read())


def _seconds(seconds: Sequence[float], share: float) -> Figures:
    return {"p50": quantile(seconds, 0.5), f"p{share * 100:.0f}": quantile(seconds, share)}


async def _timed(work: Callable[[], Awaitable[None]], rounds: int) -> list[float]:
    await work()
    found = []
    for _ in range(rounds):
        await asyncio.sleep(PAUSE)
        began = time.perf_counter()
        await work()
        found.append(time.perf_counter() - began)
    return found


@contextmanager
def process(words: list[str], port: int, env: Mapping[str, str]) -> Iterator[int]:
    """A program that listens; its number."""
    with subprocess.Popen([sys.executable, *words], env=env, stderr=subprocess.DEVNULL) as made:
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection((LOOPBACK, port), 1).close()
                    break
                except OSError:
                    if made.poll() is not None or time.monotonic() > until:
                        raise SystemExit("bench: the server does not listen") from None
                    time.sleep(0.1)  # a look; the loop has a deadline
            yield made.pid
        finally:
            made.terminate()


def free_port() -> int:
    with socket.socket() as made:
        made.bind((LOOPBACK, 0))
        return int(made.getsockname()[1])


if __name__ == "__main__":
    main()
