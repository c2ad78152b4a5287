"""Watching the pods of jobs, one event after the other: is any job ever placed in part?

A gang is whole once all its pods are bound to nodes. Until then none of them may run (`strict`),
and they may not stay bound for longer than PATIENCE. The order is the API server's own, that of its
watch, so nothing that ever was is missed.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import msgspec

from tests.cluster import Kubectl
from tools.cluster.report import environment

PATIENCE = 10.0
"""seconds from a gang's first bound pod to its last, or to none"""
JOB = "training.kubeflow.org/job-name"
ROLE = "training.kubeflow.org/job-role"

Object = dict[str, Any]


class Seen(msgspec.Struct, frozen=True):
    """One event of a watch of pods, in few words."""

    at: float
    job: str
    role: str
    pod: str
    bound: bool
    runs: bool
    gone: bool = False


class Gang(msgspec.Struct):
    """A job, as far as its pods were seen. `since`: when it was last placed in part."""

    bound: set[str] = msgspec.field(default_factory=set)
    since: float | None = None
    whole: bool = False
    wholes: int = 0


class Judge:
    """`members`: how many pods are a gang of each job; of these `roles` alone."""

    def __init__(self, members: int, roles: Iterable[str], *, strict: bool = True) -> None:
        self._members, self._roles, self._strict = members, frozenset(roles), strict
        self.gangs: dict[str, Gang] = {}
        self.faults: list[str] = []

    def see(self, event: Seen) -> None:
        if event.role not in self._roles:
            return
        gang = self.gangs.setdefault(event.job, Gang())
        if event.gone:
            gang.bound.discard(event.pod)
        elif event.bound:
            gang.bound.add(event.pod)
        count = len(gang.bound)
        if not count:
            self._late(event.job, gang, event.at)
            gang.since, gang.whole = None, False
        elif not gang.whole:
            gang.since = event.at if gang.since is None else gang.since
            self._late(event.job, gang, event.at)
            gang.whole = count == self._members
            gang.wholes += gang.whole
            if self._strict and event.runs and not gang.whole:
                had = f"{count} of {self._members}"
                self.faults.append(f"{event.job}: {event.pod} runs, and {had} pods have a node")

    def ended(self, now: float) -> list[str]:
        """Everything that was ever wrong."""
        for job, gang in self.gangs.items():
            if not gang.whole:
                self._late(job, gang, now)
        return self.faults

    def _late(self, job: str, gang: Gang, now: float) -> None:
        if gang.since is not None and not gang.whole and now - gang.since > PATIENCE:
            held = f"{len(gang.bound)} of {self._members}"
            self.faults.append(f"{job}: placed in part ({held}) for {now - gang.since:.1f} s")
            gang.since = now


class Watch:
    """Follows the pods of a namespace from when it is entered until it is left."""

    def __init__(self, kubectl: Kubectl, judge: Judge) -> None:
        self._kubectl, self.judge = kubectl, judge
        self.events = 0
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        path = f"/api/v1/namespaces/{self._kubectl.namespace}/pods"
        query = "watch=1&timeoutSeconds=7200"
        self._process = subprocess.Popen(
            ["kubectl", "get", "--raw", f"{path}?{query}"],
            env=environment(self._kubectl.spec),
            stdout=subprocess.PIPE,
            text=True,
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process is not None
        broken = self._process.poll() is not None
        self._process.terminate()
        self._process.wait(20)
        self._thread.join(20)
        assert self._process.stdout is not None
        self._process.stdout.close()
        assert kind is not None or not broken, "the watch ended before the test"

    def _follow(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if event := seen(json.loads(line), time.monotonic()):
                self.events += 1
                self.judge.see(event)


def seen(event: Object, now: float) -> Seen | None:
    """None where it is not about a pod of a job. A pod that has ended holds no place."""
    pod = event["object"]
    labels = pod["metadata"].get("labels") or {}
    if JOB not in labels:
        return None
    phase = pod["status"].get("phase")
    over = event["type"] == "DELETED" or phase in ("Succeeded", "Failed")
    name = pod["metadata"]["name"]
    bound = bool(pod["spec"].get("nodeName"))
    return Seen(now, labels[JOB], labels.get(ROLE, ""), name, bound, phase == "Running", over)
