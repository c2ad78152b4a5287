"""The process that holds one job: observe, decide, apply, until the job has ended.

It owns the pods: when it ends, by whatever signal, the kernel ends them. Its client saves what was
decided before it is applied, gets reports, and may order a stop. Nothing depends on a message being
seen in time: every reconciliation starts from what exists.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from mpi_trainer.api.kinds import conditions, pod_status
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide import agent_summary, reasons
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import (
    UNRECORDED,
    End,
    Observed,
    ObservedPod,
    ObservedRank,
    Record,
)
from mpi_trainer.diagnose import agent_facts, suspicion
from mpi_trainer.diagnose.rank_lines import Line, RankLines
from mpi_trainer.layout.agent import launcher_log, summary
from mpi_trainer.layout.agent.quiet import QuietReader
from mpi_trainer.layout.model import Layout, PodLayout
from mpi_trainer.local.execute import ranks, reports
from mpi_trainer.local.execute.key_pairs import KeyPairProcess
from mpi_trainer.local.execute.plan import SUMMARY, JobKeys, Machine, Planner, PodLocation
from mpi_trainer.local.execute.supervisor_client import JobSnapshot, SupervisorClient
from mpi_trainer.local.jobs.jobdir import PodState
from mpi_trainer.local.pods import sshd
from mpi_trainer.local.pods.pod import PodHost, PodPlan, RunningPod

replace = msgspec.structs.replace

ADMISSION_SECONDS = 0.5
TERMINATE_AGAIN_SECONDS = 1.0
CAUSE_SECONDS = 0.3


class HeldPod:
    """A pod that was started, and its state since."""

    def __init__(self, layout: PodLayout, running: RunningPod, attempt: int) -> None:
        self.layout = layout
        self.running = running
        self.attempt = attempt
        self.ready = layout.role == "launcher" or not layout.keys
        self.terminating = False
        self.end: End | None = None
        self.last_words = ""

    def observed(self) -> ObservedPod:
        return ObservedPod(
            name=self.layout.name,
            role=self.layout.role,
            uid=str(self.running.pid),
            phase=self._phase(),
            index=self.layout.index,
            attempt=self.attempt,
            ready=self.ready and self.end is None,
            terminating=self.terminating,
            end=self.end,
        )

    def _phase(self) -> pod_status.Phase:
        if self.end is None:
            return pod_status.RUNNING
        return pod_status.SUCCEEDED if self.end.well else pod_status.FAILED


class Supervisor:
    """Runs one job on one host of pods, for one client."""

    def __init__(
        self, job: MPIJob, layout: Layout, machine: Machine, host: PodHost, stdin: int | None = None
    ) -> None:
        """`stdin`: a descriptor that the launcher reads; without one it reads nothing."""
        self._job = job
        self._layout = layout
        self._machine = machine
        self._host = host
        self._stdin = stdin
        self._key_process = KeyPairProcess(2)
        self._record = Record()
        self._planner: Planner | None = None
        self._held: dict[str, HeldPod] = {}
        self._launcher_waits: int | None = None  # the attempt whose launcher waits for workers
        self._ranks: tuple[ObservedRank, ...] = ()
        self._memory_kills: dict[str, int | None] = {}
        self._summary = summary.Summary()
        self._log = launcher_log.CauseReader()
        self._quiet = QuietReader()
        self._selector = selectors.DefaultSelector()
        self._pending: list[reports.Report] = []
        self._unsaved = True  # pods have changed since the last snapshot was saved
        self._stopping_since: float | None = None
        self._terminate_again_at = 0.0
        self._killed = False
        self._reconcile_at: float | None = 0.0

    def run(self, client: SupervisorClient) -> None:
        """Until the job has ended or was stopped; the last report is `JobEnded`."""
        started = time.monotonic()
        self._client = client
        self._watch(client.fileno(), self._take_orders)
        for line in self._host.not_applied:
            self._pending.append(reports.Note(line))
        while True:
            if self._stopping_since is not None:
                if self._stopped():
                    break
            elif self._reconcile_at is not None and time.monotonic() >= self._reconcile_at:
                self._reconcile()
                if conditions.finished(self._job.status.conditions):
                    break
            self._send()
            self._wait()
        self._drain()
        self._pending.append(self._outcome(time.monotonic() - started))
        self._send()

    # --- observe, decide, apply ----------------------------------------------------------------

    def _reconcile(self) -> None:
        self._send()  # what was printed belongs to the attempt, and before the end, that it led to
        suspended = bool(self._job.spec.run_policy.suspend)
        if not self._client.admitted(wanted=not suspended or bool(self._held)) and not suspended:
            self._reconcile_at = time.monotonic() + ADMISSION_SECONDS
            return
        decision = decide(self._job, self._observed(), datetime.now(UTC))
        self._save(decision)
        wait = decision.requeue_after
        self._reconcile_at = (
            None if wait is None else time.monotonic() + wait / timedelta(seconds=1)
        )
        if decision.acts:
            self._reconcile_at = 0.0
        self._apply(decision)

    def _observed(self) -> Observed:
        pods = self._pods()
        if self._launcher_waits is not None:
            name, attempt = self._layout.launcher.name, self._launcher_waits
            pods.append(ObservedPod(name, "launcher", "", pod_status.PENDING, attempt=attempt))
        return Observed(
            pods=tuple(pods),
            ranks=self._ranks,
            record=self._record,
            has_key=self._planner is not None,
            every_pod_works=self._without_mpi,
            suspicion=suspicion.text(self._quiet.quiet),
        )

    @property
    def _without_mpi(self) -> bool:
        return self._layout.agent == "off"

    def _pods(self) -> list[ObservedPod]:
        return [held.observed() for held in self._held.values()]

    def _save(self, decision: MPIJobDecision) -> None:
        """Saved first; only then may it be acted upon."""
        before = conditions.state(self._job.status.conditions)
        changed = (decision.record, decision.status) != (self._record, self._job.status)
        self._record = decision.record
        self._job = replace(self._job, status=decision.status)
        if changed or decision.acts or self._unsaved:
            self._unsaved = decision.acts
            self._client.save(
                JobSnapshot(self._job, self._record, self._pod_states(), self._rank_rows())
            )
        self._pending += [reports.EventReport(e.type, e.reason, e.message) for e in decision.events]
        now = decision.status.conditions
        current = conditions.find(now, conditions.state(now))
        if current is not None and current.type != before:
            self._pending.append(
                reports.StateChanged(current.type, current.reason, current.message)
            )

    def _pod_states(self) -> tuple[PodState, ...]:
        addresses = self._addresses()
        return tuple(
            PodState(
                name=pod.name,
                role=pod.role,
                index=pod.index,
                phase=pod.phase,
                ready=pod.ready,
                address=addresses.get(pod.name, ""),
                pid=int(pod.uid or 0),
                end=pod.end.text() if pod.end else "",
                attempt=pod.attempt,
                exit_code=pod.end.code if pod.end else None,
                signal=pod.end.signal if pod.end else None,
                reason=pod.end.reason if pod.end else "",
            )
            for pod in self._observed().pods
        )

    def _rank_rows(self) -> tuple[reports.RankRow, ...]:
        """Of every rank of the world, those that never began too."""
        addresses = self._addresses()
        seen = {r.rank: self._rank_row(r, addresses.get(r.pod, "")) for r in self._ranks}
        size = min(max((r.size for r in self._ranks), default=0), self._layout.ranks)
        missing = {
            rank: reports.RankRow(rank, "", "", "not started")
            for rank in range(size)
            if rank not in seen
        }
        return tuple(row for _, row in sorted({**seen, **missing}.items()))

    def _rank_row(self, rank: ObservedRank, address: str) -> reports.RankRow:
        words, end = self._end_of(rank), rank.end or End()
        values = end.code, end.signal, end.reason, self._memory_kills.get(rank.pod)
        return reports.RankRow(rank.rank, rank.pod, address, words, *values)

    def _end_of(self, rank: ObservedRank) -> str:
        """Who ended all ranks is killed with them, and known by its words: where mpirun printed
        them, or where the agent kept them. Ranks that lose another say the same later."""
        if rank.end is not None:
            return "0" if rank.end.well else rank.end.text()
        logged, facts = self._log.cause, self._summary.facts
        kept = facts.aborted if facts is not None and len(facts.aborted) == 1 else ()
        aborted = logged if isinstance(logged, launcher_log.Abort) else next(iter(kept), None)
        if aborted is not None and aborted.rank == rank.rank:
            return f"MPI_Abort({aborted.code})"
        return UNRECORDED

    def _addresses(self) -> dict[str, str]:
        return {p.name: self._host.address(i) for i, p in enumerate(self._layout.pods)}

    def _apply(self, decision: MPIJobDecision) -> None:
        if decision.needs_key:
            self._make_keys()
        for name in (*decision.stop, *decision.free):
            self._remove(name)
        if decision.start_workers:
            self._start([self._layout.workers[i] for i in decision.start_workers])
        if decision.start_launcher:
            self._launcher_waits = self._record.attempt
        if self._launcher_waits is not None and self._workers_answer():
            self._launcher_waits = None
            self._ranks = ()
            self._summary = summary.Summary()
            self._log = launcher_log.CauseReader()
            self._quiet = QuietReader()
            for held in self._held.values():
                ranks.clear(held.running.share)
            self._start([self._layout.launcher])

    def _workers_answer(self) -> bool:
        """Without MPI a worker may have done its part before the launcher starts."""
        workers = [pod for pod in self._pods() if pod.role == "worker" and not pod.terminating]
        done = [w for w in workers if self._without_mpi and w.phase == pod_status.SUCCEEDED]
        return sum(1 for w in workers if w.ready or w in done) == len(self._layout.workers)

    def _make_keys(self) -> None:
        locations = {
            pod.name: PodLocation(
                self._host.address(i), self._host.port, self._host.paths(pod.name)
            )
            for i, pod in enumerate(self._layout.pods)
        }
        self._planner = Planner(
            self._layout, self._machine, locations, JobKeys(*self._key_process.pairs())
        )

    def _start(self, pods: list[PodLayout]) -> None:
        plans = tuple(self._plan(pod) for pod in pods)
        for pod, running in zip(pods, self._host.start(plans), strict=True):
            ranks.clear(running.share)
            held = HeldPod(pod, running, self._record.attempt)
            self._held[pod.name] = held
            self._listen(held)
        self._unsaved = True
        self._reconcile_at = 0.0

    def _plan(self, pod: PodLayout) -> PodPlan:
        assert self._planner is not None, "decide asks for a key before any pod"
        plan = self._planner.pod(pod)
        return replace(plan, stdin=self._stdin) if pod.role == "launcher" else plan

    def _remove(self, name: str) -> None:
        """Ends a pod for good; its going away is observed by the next reconciliation."""
        if name == self._layout.launcher.name:
            self._launcher_waits = None
        held = self._held.get(name)
        if held is None:
            return
        if held.end is not None:
            self._forget(held)
        else:
            held.terminating = True
            held.running.kill()

    def _forget(self, held: HeldPod) -> None:
        del self._held[held.layout.name]
        for descriptor in (held.running.stdout, held.running.stderr):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        held.running.release()

    # --- what the pods do --------------------------------------------------------------------

    def _listen(self, held: HeldPod) -> None:
        for name, descriptor in (
            ("stdout", held.running.stdout),
            ("stderr", held.running.stderr),
        ):
            role = "launcher" if self._without_mpi else held.layout.role
            stream = RankLines(held.layout.name, role, name)  # type: ignore[arg-type]
            self._watch(descriptor, self._reader(held, stream, descriptor))
        self._watch(held.running.pidfd, lambda: self._pod_ended(held))

    def _reader(self, held: HeldPod, stream: RankLines, descriptor: int) -> Callable[[], None]:
        def read() -> None:
            try:
                data = os.read(descriptor, 65536)
            except BlockingIOError:
                return
            if data:
                self._read_lines(held, stream.feed(data), data)
                self._read_events(held, stream.events)
            else:
                self._selector.unregister(descriptor)
                self._read_lines(held, stream.close(), b"")

        return read

    def _read_lines(self, held: HeldPod, lines: list[Line], data: bytes) -> None:
        if self._without_mpi:
            node = self._layout.pods.index(held.layout)
            lines = [replace(line, rank=node) for line in lines]
        self._pending += lines
        if held.layout.role == "launcher":
            for line in lines:
                self._log.read_line(line.text)
            return
        if not held.ready and sshd.LISTENING in data:
            held.ready = True
            self._reconcile_at = 0.0
        for line in lines:
            if not sshd.is_chatter(line.text):
                held.last_words = line.text

    def _read_events(self, held: HeldPod, events: list[str]) -> None:
        """Of the agent: whether the job seems to be stuck."""
        if held.layout.role != "launcher":
            return
        changed = [self._quiet.read_line(event) for event in events]
        if any(changed):
            self._reconcile_at = 0.0

    def _pod_ended(self, held: HeldPod) -> None:
        for descriptor in (held.running.stdout, held.running.stderr):
            self._read_to_end(descriptor)
        self._selector.unregister(held.running.pidfd)
        status = held.running.wait()
        reason = pod_status.OOM_KILLED if held.running.oom_kills() else ""
        words = held.last_words if held.layout.role == "worker" else ""
        self._unsaved = True
        held.end = End(status.code, status.signal, reason, words)
        self._reconcile_at = 0.0
        if held.layout.role == "launcher":
            said = agent_facts.read(_text(f"{held.running.share}/{SUMMARY}"))
            said = agent_summary.with_logged_cause(said, self._log.cause)
            held.end = agent_summary.launcher_end(held.end, said)
            self._summary = said
            if not held.end.well or said.cause is not None:
                # It may have noticed the end of a worker before that worker was gone completely.
                self._reconcile_at = time.monotonic() + CAUSE_SECONDS
            self._ranks = self._read_ranks(held.attempt, said)
        if held.terminating:
            self._forget(held)

    def _read_ranks(self, attempt: int, said: summary.Summary) -> tuple[ObservedRank, ...]:
        """As their records say, which tell more than a summary has room for."""
        shares = {name: h.running.share for name, h in self._held.items()}
        self._memory_kills = {name: h.running.oom_kills() for name, h in self._held.items()}
        out_of_memory = {name for name, killed in self._memory_kills.items() if killed}
        foreign = {rank for group in said.foreign for rank in group.ranks}
        seen = ranks.with_oom_reason(ranks.read(shares, attempt), out_of_memory)
        return tuple(replace(r, foreign=r.rank in foreign) for r in seen)

    def _read_to_end(self, descriptor: int) -> None:
        while (key := self._selector.get_map().get(descriptor)) and _readable(descriptor):
            key.data()

    # --- orders and reports --------------------------------------------------------------------

    def _take_orders(self) -> None:
        orders = self._client.orders()
        if orders.job is not None:
            self._job = replace(orders.job, status=self._job.status)
            self._reconcile_at = 0.0
        self._killed = self._killed or orders.kill
        if orders.stop and self._stopping_since is None:
            self._stopping_since = time.monotonic()

    def _stopped(self) -> bool:
        launcher = self._held.get(self._layout.launcher.name)
        if self._killed or launcher is None or launcher.end is not None:
            return True
        grace = self._layout.launcher.template.view.spec.termination_grace_period_seconds
        now, deadline = time.monotonic(), (self._stopping_since or 0.0) + grace
        if now >= self._terminate_again_at:
            # An mpirun that is just starting its daemons can lose the first one.
            launcher.running.terminate()
            self._terminate_again_at = now + TERMINATE_AGAIN_SECONDS
        self._reconcile_at = min(deadline, self._terminate_again_at)
        return now >= deadline

    def _send(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            self._client.report(pending)

    def _outcome(self, seconds: float) -> reports.JobEnded:
        status = self._job.status
        state = conditions.state(status.conditions)
        last = conditions.find(status.conditions, state)
        return reports.JobEnded(
            state=state,
            reason=last.reason if last else "",
            message=last.message if last else "",
            ranks=self._rank_rows(),
            seconds=seconds,
            stopped=self._stopping_since is not None,
            cause=self._cause() if state == conditions.FAILED else None,
        )

    def _cause(self) -> reports.FailureCause | None:
        """What the agent found, unless the failure is not the launcher's to tell of."""
        failure = self._record.failures[-1] if self._record.failures else None
        said = self._summary.cause
        launcher = self._layout.launcher.name
        of_ranks = (reasons.RANK_FAILED, reasons.RANKS_LOST)
        if said is not None and (
            failure is None or failure.pod == launcher or failure.reason in of_ranks
        ):
            out_of_memory = {
                r.rank for r in self._ranks if r.end and r.end.reason == pod_status.OOM_KILLED
            }
            # The pods cannot see their control groups here.
            killed = said.reason == "RankKilled" and said.rank in out_of_memory
            return reports.FailureCause(
                "OutOfMemory" if killed else said.reason, said.rank, said.pod
            )
        if failure is None:
            return None
        bad = [r.rank for r in self._ranks if r.end is not None and not r.end.well]
        rank = min(bad) if failure.reason == reasons.RANK_FAILED and bad else None
        return reports.FailureCause(
            failure.reason, rank, "" if failure.pod == launcher else failure.pod
        )

    # --- waiting -----------------------------------------------------------------------------

    def _watch(self, source: int, act: Callable[[], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, act)

    def _wait(self) -> None:
        timeout = None
        if self._reconcile_at is not None:
            timeout = max(self._reconcile_at - time.monotonic(), 0.0)
        for key, _ in self._selector.select(timeout):
            if key.fd in self._selector.get_map():
                key.data()

    def _drain(self) -> None:
        """What the launcher wrote before it ended and nobody has read yet."""
        for held in self._held.values():
            for descriptor in (held.running.stdout, held.running.stderr):
                self._read_to_end(descriptor)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _readable(descriptor: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))
