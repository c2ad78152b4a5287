"""The controller dies at every write of a job's life, and the job does not notice (CTL-3, CTL-11).

Each case is one life with one death: the real process is killed with SIGKILL around one write, and
another is started. Whatever the moment: the job ends as it would have, no pod or launcher is made
twice for the same attempt, no attempt is lost or spent, nothing is left behind.
"""

from __future__ import annotations

import itertools
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from mpi_trainer.decide.observed import Record
from tests.api.admin import JOBS, Admin, Object, Refusal
from tests.api.crashing import MOMENTS, CrashingProxy, Moment
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import served, submit
from tests.api.running import Controller, job
from tests.cluster import eventually
from tools.cluster.spec import Spec

__all__ = ["served"]

RECORD = "mpi-trainer.opendatahub.io/record"
ATTEMPT = "mpi-trainer.opendatahub.io/attempt"
AT_ONCE = int(os.environ.get("MPI_TRAINER_CRASHES_AT_ONCE", "3"))
# A prime, so that what is left takes turns in writes and moments alike.
EVERY = 1 if os.environ.get("CRASHES") == "all" else 11
PATIENCE = 240.0


class Life(NamedTuple):
    """What happens to a job from outside, and how often each child may be made for it."""

    name: str
    job: Object
    codes: dict[str, int]
    """attempt -> exit code of its launcher; 0 where it is not named"""
    launchers: int = 1
    workers: int = 1
    suspends: bool = False
    deleted: bool = False


SIMPLE = Life("simple", job(2, cleanPodPolicy="All"), {})
RETRIED = Life("retried", job(2, cleanPodPolicy="Running", backoffLimit=2), {"1": 1}, launchers=2)
SUSPENDED = Life(
    "suspended", job(1, cleanPodPolicy="All"), {}, launchers=2, workers=2, suspends=True
)
FAILED = Life("failed", job(1, cleanPodPolicy="All", backoffLimit=0), {"1": 3})
REMOVED = Life(
    "removed", job(1, cleanPodPolicy="None", ttlSecondsAfterFinished=0), {}, deleted=True
)
LIVES = (SIMPLE, RETRIED, SUSPENDED, FAILED, REMOVED)


class Ending:
    """Ends launchers after they have run for a moment; what a program does in an attempt.

    A real one waits for its workers, so it does not end while there is none: a controller that is
    long in coming back finds it still there.
    """

    def __init__(self, admin: Admin, life: Life) -> None:
        self._admin = admin
        self._life = life
        self._seen: Counter[str] = Counter()
        self.go = threading.Event()
        if not life.suspends:
            self.go.set()

    def __call__(self, pod: Object) -> int | None:
        if not is_launcher(pod) or not self.go.is_set():
            return None
        self._seen[pod["metadata"]["uid"]] += 1
        if self._seen[pod["metadata"]["uid"]] < 4 or not self._admin.pods("worker"):
            return None
        return self._life.codes.get(pod["metadata"]["annotations"][ATTEMPT], 0)


class Witness:
    """Watches the job itself, since a removed one cannot be asked."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self.last: Object = {}

    def look(self) -> Object | None:
        found = self._admin.get(f"{JOBS}/mpijobs/pi")
        self.last = found or self.last
        return found

    def holds(self, kind: str) -> bool:
        conditions = self.last.get("status", {}).get("conditions", [])
        return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def live(spec: Spec, folder: Path, life: Life, death: tuple[int, Moment] | None) -> int:
    """One life with at most one death; how many writes it took."""
    name = f"crash-{secrets.token_hex(4)}"
    admin = Admin(spec, name)
    admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        eventually("account", lambda: admin.get("api/v1/serviceaccounts/default") is not None)
        return _live(admin, folder, life, death)
    finally:
        for pod in admin.pods():
            path = f"api/v1/pods/{pod['metadata']['name']}"
            try:
                admin.patch(path, {"metadata": {"finalizers": None}})
            except Refusal as refusal:
                assert refusal.code == 404, refusal  # it is gone
            admin.delete(path, grace=0)
        admin.call("DELETE", f"/api/v1/namespaces/{name}")
        admin.close()


def _live(admin: Admin, folder: Path, life: Life, death: tuple[int, Moment] | None) -> int:
    ending, running = Ending(admin, life), Runner()
    with (
        CrashingProxy(admin.spec, running.kill) as proxy,
        Kubelet(admin) as kubelet,
    ):
        kubelet.finish = ending
        proxy.target = death
        config = proxy.kubeconfig(folder)
        with Controller.alone(config, admin.namespace, wait=False) as one:
            running.controller = one
            submit(admin, life.job)
            _play(admin, life, ending, running)
            _check(admin, life, proxy, running)
        assert kubelet.faults == []
    return len(proxy.writes)


class Runner:
    """Kills the controller once, and brings it back."""

    def __init__(self) -> None:
        self.controller: Controller | None = None
        self.deaths = 0
        self._lock = threading.Lock()

    def kill(self) -> None:
        with self._lock:
            assert self.controller is not None
            self.controller.kill()
            self.deaths += 1

    def revive(self) -> None:
        with self._lock:
            if self.controller is not None and self.controller.process is None:
                self.controller.start()


def _play(admin: Admin, life: Life, ending: Ending, running: Runner) -> None:
    """Until the job has ended and all is cleared away."""
    witness, deadline = Witness(admin), time.monotonic() + PATIENCE
    scenes = iter(_scenes(admin, life, ending))
    scene = next(scenes, None)
    while True:
        running.revive()
        found = witness.look()
        if scene is not None and scene():
            scene = next(scenes, None)
        done = found is None if life.deleted else _over(witness) and _cleared(admin, life)
        if scene is None and done:
            break
        if time.monotonic() > deadline:
            pods = [(p["metadata"]["name"], p["status"].get("phase")) for p in admin.pods()]
            raise AssertionError(f"stuck: {witness.last.get('status')} {pods}")
        time.sleep(0.2)  # a look; the loop has a deadline
    if not life.deleted:
        wanted = "Failed" if life.codes.get("1") and life.launchers == 1 else "Succeeded"
        assert witness.holds(wanted), witness.last["status"]


def _scenes(admin: Admin, life: Life, ending: Ending) -> list[Callable[[], bool]]:
    """What somebody does to the job, one after the other, each once it is possible."""
    if not life.suspends:
        return []

    def suspend() -> bool:
        up = [p for p in admin.pods() if p["status"].get("phase") == "Running"]
        if len(up) < 2:
            return False
        admin.change(suspend=True)
        return True

    def resume() -> bool:
        if admin.pods() or not admin.holds("Suspended"):
            return False
        ending.go.set()
        admin.change(suspend=False)
        return True

    return [suspend, resume]


def _over(witness: Witness) -> bool:
    return witness.holds("Succeeded") or witness.holds("Failed")


def _cleared(admin: Admin, life: Life) -> bool:
    """The key and the pods that go are gone, and no pod is held any more."""
    if admin.get("api/v1/secrets/pi-ssh") is not None:
        return False
    policy = life.job["spec"]["runPolicy"]["cleanPodPolicy"]
    pods = admin.pods() if policy == "All" else admin.pods("worker")
    ours = "mpi-trainer.opendatahub.io/evidence"
    held = [p for p in admin.pods() if ours in p["metadata"].get("finalizers", ())]
    return not pods and not held


def _check(admin: Admin, life: Life, proxy: CrashingProxy, running: Runner) -> None:
    """Nothing was made twice, and no attempt was spent that was not a failure."""
    shown = "\n".join(map(str, proxy.writes))
    launchers = [w.uid for w in proxy.made("jobs")]
    assert len(set(launchers)) == len(launchers) == life.launchers, shown
    workers = Counter(w.name for w in proxy.made("pods"))
    assert workers and max(workers.values()) <= life.workers, shown
    for kind in ("services", "configmaps", "secrets"):
        # The agent's scripts are the namespace's, not the job's.
        made = [w for w in proxy.made(kind) if w.name.startswith("pi")]
        assert len(made) == 1, f"{kind}: {shown}"
    if life.deleted:
        return
    annotations = admin.job()["metadata"].get("annotations", {})
    record = msgspec.json.decode(annotations.get(RECORD, "{}"), type=Record)
    assert [f.attempt for f in record.failures] == [int(a) for a in life.codes], shown
    statuses = [w for w in proxy.writes if w.path.endswith("/status") and w.code == 200]
    if life is SIMPLE and not running.deaths:
        assert len(statuses) <= 4, shown


@pytest.mark.timeout(1500, func_only=True)
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_no_death_at_any_write_costs_the_job_anything(
    served: Spec, tmp_path: Path, life: Life
) -> None:
    """CTL-3: before the write, after it was carried out, and after its answer.

    At all of them with `CRASHES=all`; else at every eleventh.
    """
    writes = live(served, tmp_path, life, None)
    deaths = list(itertools.product(range(writes), MOMENTS))[::EVERY]
    failures = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        lives = {pool.submit(live, served, tmp_path, life, death): death for death in deaths}
        for future, death in lives.items():
            error = future.exception()
            if error is not None:
                failures.append(f"death at {death}: {error}")
    assert not failures, f"{len(failures)} of {len(deaths)}:\n" + "\n".join(failures[:5])
