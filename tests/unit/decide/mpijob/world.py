"""A modelled world in which decisions are carried out, step by step, and faults happen.

Starting is create-only by name, stopping is by uid, pods go only when reaped: as on a cluster.
Storing fails where what was observed is no longer what is stored. Whoever stops between two
steps has crashed; the next pass starts from what is in the world and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import End, Observed, ObservedPod, ObservedRank, Record
from tests.unit.decide.mpijob.jobs import T0, replace

EVERY_STEP = 1_000
Step = Callable[[], None]


class World:
    def __init__(self, job: MPIJob) -> None:
        self.job = job
        self.record = Record()
        self.pods: dict[str, ObservedPod] = {}
        self.ranks: list[ObservedRank] = []
        self.has_key = False
        self.deleted = False
        self.now: datetime = T0
        self.launches: Counter[int] = Counter()
        self.events: list[str] = []
        self._uids = 0

    def observed(self) -> Observed:
        pods = tuple(self.pods.values())
        return Observed(pods, tuple(self.ranks), self.record, self.has_key)

    @property
    def finished(self) -> bool:
        return c.finished(self.job.status.conditions)

    def reconcile(self, crash_after: int = EVERY_STEP) -> MPIJobDecision:
        observed = self.observed()
        decision = decide(self.job, observed, self.now)
        self.carry_out(decision, observed, self.job, crash_after)
        return decision

    def carry_out(
        self, step: MPIJobDecision, observed: Observed, job: MPIJob, crash_after: int
    ) -> None:
        if self.deleted or job != self.job or observed.record != self.record:
            return  # a conflict: nothing is stored, so nothing is done
        for number, act in enumerate(self._steps(step, observed)):
            if number >= crash_after:
                return
            act()

    def _steps(self, step: MPIJobDecision, observed: Observed) -> Iterator[Step]:
        uids = {p.name: p.uid for p in observed.pods}
        yield lambda: self._store_record(step.record)
        yield lambda: self._store_status(step)
        if step.needs_key:
            yield lambda: setattr(self, "has_key", True)
        for name in step.stop:
            yield lambda n=name: self._stop(n, uids[n])  # type: ignore[misc]
        for name in step.free:
            yield lambda n=name: self.change(n, attempt=step.record.attempt)  # type: ignore[misc]
        for index in step.start_workers:
            yield lambda i=index: self._start("worker", i)  # type: ignore[misc]
        if step.start_launcher:
            yield lambda: self._start("launcher", 0)
        if step.delete_job:
            yield lambda: setattr(self, "deleted", True)
        yield lambda: self.events.extend(e.reason for e in step.events)

    def _store_record(self, record: Record) -> None:
        assert record.attempt - self.record.attempt in (0, 1)
        self.record = record

    def _store_status(self, step: MPIJobDecision) -> None:
        self.job = replace(self.job, status=step.status)

    def _stop(self, name: str, uid: str) -> None:
        if name in self.pods and self.pods[name].uid == uid:
            self.change(name, terminating=True)

    def _start(self, role: str, index: int) -> None:
        name = f"pi-worker-{index}" if role == "worker" else "pi-launcher"
        if name in self.pods:
            return
        self._uids += 1
        self.pods[name] = ObservedPod(
            name=name,
            role="worker" if role == "worker" else "launcher",
            uid=f"u{self._uids}",
            phase="Pending",
            index=index,
            attempt=self.record.attempt,
            scheduled=False,
        )
        self.launches[self.record.attempt] += role == "launcher"

    def change(self, name: str, **fields: object) -> None:
        if name in self.pods:
            self.pods[name] = replace(self.pods[name], **fields)

    def run(self, name: str) -> None:
        """A pending pod is placed and becomes ready; a launcher starts a rank."""
        pod = self.pods.get(name)
        if pod is None or pod.phase != "Pending" or pod.terminating:
            return
        self.change(name, phase="Running", ready=True, scheduled=True)
        if pod.role == "launcher":
            pid = int(pod.uid[1:])
            self.ranks.append(ObservedRank(0, 1, "pi-worker-0", attempt=pod.attempt, pid=pid))

    def end(self, name: str, code: int) -> None:
        pod = self.pods.get(name)
        if pod is None or pod.phase != "Running":
            return
        self.change(name, phase="Failed" if code else "Succeeded", ready=False, end=End(code=code))
        if pod.role == "launcher" and not pod.terminating:
            mine = int(pod.uid[1:])
            self.ranks = [
                replace(r, end=End(code=code)) if r.pid == mine else r for r in self.ranks
            ]

    def reap(self) -> None:
        self.pods = {n: p for n, p in self.pods.items() if not p.terminating}

    def tick(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def settle(self) -> MPIJobDecision:
        """Reconciles, at one moment, until nothing is left to do; stopped pods go at once."""
        for _ in range(16):
            self.reap()
            before = (self.job, self.record)
            decision = self.reconcile()
            if self.deleted or (before == (self.job, self.record) and not decision.acts):
                return decision
        raise AssertionError(f"no fixed point: {decision}")
