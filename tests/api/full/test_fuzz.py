"""Hostile objects and last words through the real controller and the real webhook (S-1 … S-15).

One namespace has admission, in another nothing keeps the objects from the controller, and in a
third ordinary people have ordinary jobs. `FUZZ=all` sends 20,000 objects and 5,000 last words,
which takes about half an hour on two busy cores; without it a few hundred are sent. FUZZ_OBJECTS,
FUZZ_MESSAGES and FUZZ_SEED choose otherwise.
"""

from __future__ import annotations

import functools
import os
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.api import trainjob_lab
from tests.api.accounts import with_token
from tests.api.admin import JOBS, Admin, Object, Refusal
from tests.api.admission.serving import (
    CONFIGURATION,
    NAMESPACE,
    Server,
    install,
    remove,
    serving,
)
from tests.api.full import hostile
from tests.api.kubelet import NODE, Kubelet, is_launcher
from tests.api.lab import submit, until
from tests.api.running import Controller, free_port, job
from tests.cluster import Kubectl, api_spec, eventually, shared_cluster
from tools.cluster.spec import Spec

ALL = os.environ.get("FUZZ") == "all"
OBJECTS = int(os.environ.get("FUZZ_OBJECTS", "20000" if ALL else "300"))
MESSAGES = int(os.environ.get("FUZZ_MESSAGES", "5000" if ALL else "100"))
SEED = int(os.environ.get("FUZZ_SEED", "22"))
BATCH = 250
WORDS_PER_JOB = 10
AT_ONCE = 6
UNGUARDED = "fuzz-unguarded"
KINDS = (
    f"{JOBS}/mpijobs",
    f"{trainjob_lab.TRAIN}/trainjobs",
    f"{trainjob_lab.TRAIN}/trainingruntimes",
)

# The same measure as the controller's own, of a loop that has nothing to do.
BARE_LOOP = """
import asyncio, sys
async def run():
    clock, worst = asyncio.get_running_loop().time, 0.0
    while True:
        asked = clock()
        await asyncio.sleep(0.1)
        if clock() - asked - 0.1 > worst:
            worst = clock() - asked - 0.1
            open(sys.argv[1], "w").write(str(worst))
asyncio.run(run())
"""


class Town(msgspec.Struct):
    """Three namespaces of one API server, and what serves them."""

    guarded: Admin
    direct: Admin
    quiet: Admin
    kubelets: dict[str, Kubelet]
    controller: Controller
    webhook: Server
    lag: float = 0.0

    def measure(self) -> None:
        """The metric is the worst of the last minute; asked for more often than that."""
        assert self.controller.process is not None
        assert self.controller.process.poll() is None, "the controller has ended"
        assert self.webhook.process.poll() is None, "the webhook has ended"
        self.lag = max(self.lag, self.controller.metric("event_loop_lag_seconds"))


@pytest.fixture(scope="module")
def api_server() -> Iterator[Spec]:
    for spec in shared_cluster(replace(api_spec("test-fuzz"), oldest=False)):
        trainjob_lab.install(Kubectl(spec))
        install(Kubectl(spec))
        Kubectl(spec).apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        yield spec


@pytest.fixture
def town(api_server: Spec, tmp_path: Path) -> Iterator[Town]:
    places = [_namespace(api_server, name) for name in ("guarded", "direct", "quiet")]
    every = ",".join(one.namespace for one in places)
    flags = (f"--namespaces={every}", "--leader-elect=false", "--beside-upstream")
    (tmp_path / "account").mkdir()
    account = with_token(Kubectl(api_server, NAMESPACE), "mpi-trainer").kubeconfig(
        tmp_path / "account"
    )
    try:
        with (
            serving(api_server, tmp_path, free_port()) as webhook,
            Controller(account, *flags) as controller,
            Kubelet(places[0], tick=1.0) as first,
            Kubelet(places[1], tick=1.0) as second,
            Kubelet(places[2]) as third,
        ):
            _unguard(Kubectl(api_server))
            third.finish = lambda pod: 0 if is_launcher(pod) else None
            kubelets = {"guarded": first, "direct": second, "quiet": third}
            guarded, direct, quiet = places
            yield Town(guarded, direct, quiet, kubelets, controller, webhook)
            print((tmp_path / f"webhook-{webhook.port}.log").read_text()[-2000:])
    finally:
        remove(Kubectl(api_server))
        for one in places:
            one.attempt("DELETE", f"/api/v1/namespaces/{one.namespace}")
            one.close()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Path]:
    """The worst lag, so far, of a loop that only waits."""
    told = tmp_path / "bare"
    told.write_text("0")
    process = subprocess.Popen([sys.executable, "-c", BARE_LOOP, str(told)])
    yield told
    process.kill()
    process.wait()


@pytest.mark.timeout(7200, func_only=True)
def test_hostile_objects_and_words_stop_nobody(town: Town, bare: Path) -> None:
    """No restart, no fault of ours, no loop that is late, and no job of others touched."""
    answers: Counter[str] = Counter()
    began = time.monotonic()
    for first in range(0, OBJECTS, BATCH):
        submit(town.quiet, job(1, f"quiet-{first}"))
        answers += _send(town, range(first, min(first + BATCH, OBJECTS)))
        town.measure()
        until(town.quiet, "Succeeded", f"quiet-{first}", 90)
        _clear(town)
    objects_took = time.monotonic() - began
    ended = _last_words(town)
    submit(town.quiet, job(1, "quiet-last"))
    until(town.quiet, "Succeeded", "quiet-last", 180)
    town.measure()
    idle = float(bare.read_text())
    took = time.monotonic() - began
    print(f"\n{OBJECTS} objects in {objects_took:.0f} s, {MESSAGES} words by {took:.0f} s")
    print(f"answers {dict(answers)}, ends {dict(ended)}")
    print(f"loop late by {town.lag:.3f} s at worst, a bare one by {idle:.3f} s")
    assert not [code for code in answers if code.startswith("500") or "webhook" in code], answers
    # The API server's own validation of such an object may run out of its time.
    late = sum(count for code, count in answers.items() if code.startswith("5"))
    assert late <= 1 + OBJECTS // 500, answers
    assert answers["201"] and answers["422"], "some are taken, some refused"
    _no_fault(town)
    quiet = {one["metadata"]["name"] for one in town.quiet.every(f"{JOBS}/mpijobs")}
    assert all(town.quiet.holds("Succeeded", name) for name in quiet)
    assert town.lag <= 4 * idle + 0.25, "the loop was late"


def _send(town: Town, numbers: range) -> Counter[str]:
    """Each to one of two namespaces; the codes of the answers, with the webhook's own faults."""

    def one(number: int) -> str:
        path, body = hostile.thing(number, SEED)
        place = town.guarded if number % 2 else town.direct
        # Ignored: a warning for each unknown field is more headers than a client reads.
        code, answer = place.attempt("POST", f"{path}?fieldValidation=Ignore", body)
        return f"{code} {answer[:300]!r}" if code >= 500 else str(code)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return Counter(pool.map(one, numbers))


def _clear(town: Town) -> None:
    for place in (town.guarded, town.direct):
        for path in KINDS:
            place.attempt("DELETE", path)
        # The runtimes that jobs may name.
        for made in (trainjob_lab.mpi_runtime(), trainjob_lab.runtime("torch", {"torch": {}})):
            place.attempt("POST", KINDS[2], msgspec.json.encode(made))


def _last_words(town: Town) -> Counter[str]:
    ends: Counter[str] = Counter()
    for first in range(0, MESSAGES, BATCH):
        numbers = range(first, min(first + BATCH, MESSAGES), WORDS_PER_JOB)
        names = {f"words-{number}": number for number in numbers}
        for name in names:
            submit(town.direct, job(0, name, backoffLimit=0, cleanPodPolicy="None"))
        running = functools.partial(_launchers, town, names)
        eventually("launchers run", lambda: len(running()) == len(names), 300)  # noqa: B023
        for name, pod in running().items():
            for number in range(names[name], min(names[name] + WORDS_PER_JOB, MESSAGES)):
                _say(town.kubelets["direct"], pod, hostile.words(number, SEED), names[name] % 3)
            town.measure()
        for name in names:
            eventually(f"{name} ends", functools.partial(_has_ended, town.direct, name), 180)
            ends[_end(town.direct, name)] += 1
        _clear(town)
    return ends


def _launchers(town: Town, names: dict[str, int]) -> dict[str, Object]:
    label = "training.kubeflow.org/job-name"
    pods = {p["metadata"]["labels"][label]: p for p in town.direct.pods("launcher")}
    return {n: p for n, p in pods.items() if n in names and p["status"].get("phase") == "Running"}


def _say(kubelet: Kubelet, pod: Object, said: str, code: int) -> None:
    try:
        kubelet.exit(pod, code, message=said)
    except Refusal as refusal:
        assert refusal.code in (404, 409, 422), refusal


def _has_ended(admin: Admin, name: str) -> bool:
    return bool(_end(admin, name))


def _end(admin: Admin, name: str) -> str:
    return next((kind for kind in ("Succeeded", "Failed") if admin.holds(kind, name)), "")


def _no_fault(town: Town) -> None:
    for loop in ("mpijob", "trainjob"):
        panics = f'controller_runtime_reconcile_panics_total{{controller="{loop}"}}'
        assert town.controller.metric(panics) == 0, town.controller.log()[-5000:]
    faults = [line for line in town.webhook.metrics().splitlines() if "panics_total" in line]
    assert all(line.endswith(" 0.0") for line in faults if not line.startswith("#")), faults


def _namespace(spec: Spec, role: str) -> Admin:
    one = Admin(spec, f"fuzz-{role}-{secrets.token_hex(3)}")
    labels = {UNGUARDED: "yes"} if role == "direct" else {}
    one.call("POST", "/api/v1/namespaces", {"metadata": {"name": one.namespace, "labels": labels}})
    eventually("account", lambda: one.get("api/v1/serviceaccounts/default") is not None)
    return one


def _unguard(kubectl: Kubectl) -> None:
    """Admission passes over the namespace where the controller is to meet everything itself."""
    rule = {"key": UNGUARDED, "operator": "DoesNotExist"}
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        hooks = kubectl.get(kind, CONFIGURATION)["webhooks"]
        steps = [
            {
                "op": "add",
                "path": f"/webhooks/{number}/namespaceSelector",
                "value": {"matchExpressions": [rule]},
            }
            for number in range(len(hooks))
        ]
        body = msgspec.json.encode(steps).decode()
        kubectl("patch", kind, CONFIGURATION, "--type=json", "-p", body)
