"""The process that holds a job which outlives its terminal: `python -m … DIRECTORY`.

It inherits the locked `alive.lock` and works for the job's directory: state is kept there before
it is acted upon, lines and events are appended, and SIGUSR1 means *read job.json again*. When it
is killed, the kernel ends the pods and frees the lock; the next client to look repairs the state.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.decide import finding_text, history
from mpi_trainer.decide.history import History
from mpi_trainer.decide.mpijob import replicas
from mpi_trainer.decide.observed import Observed
from mpi_trainer.diagnose.progress import Tracker
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.layout.hosts import launcher_name
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute import reports
from mpi_trainer.local.execute.initializers import fetch_all
from mpi_trainer.local.execute.prepare import prepare
from mpi_trainer.local.execute.run import pod_host
from mpi_trainer.local.execute.supervisor import Supervisor
from mpi_trainer.local.execute.supervisor_client import JobSnapshot, Orders
from mpi_trainer.local.jobs import jobdir, logfile, store
from mpi_trainer.local.jobs.jobdir import JobDir, JobState
from mpi_trainer.local.jobs.last_lines import LastLines
from mpi_trainer.local.mpi import distributions

replace = msgspec.structs.replace

PROGRESS_SECONDS = 1.0


class DirectoryClient:
    """Writes everything into the job's directory."""

    def __init__(self, folder: JobDir, wake: int) -> None:
        self._dir = folder
        self._wake = wake
        self._state = replace(folder.state(), supervisor=os.getpid())
        # From now on clients wake this process; what came earlier is in job.json, read after this.
        folder.write_state(self._state)
        self._log = logfile.LogWriter(folder.path)
        self._tracker = Tracker()
        self._progress_saved_at = 0.0
        self._last = LastLines(folder.path)
        self._failures: dict[str, str] = {}

    def fileno(self) -> int:
        return self._wake

    def orders(self) -> Orders:
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)
        try:
            job = self._dir.job()
        except (OSError, jobdir.Damaged):
            return Orders(stop=True, kill=True)  # the directory was taken away under our feet
        return Orders(stop=job.metadata.deletion_timestamp is not None, job=job)

    def admitted(self, *, wanted: bool) -> bool:
        if wanted and not self._state.admitted:
            self._state = store.admit(self._dir, self._state)
        elif not wanted and (self._state.admitted or self._state.queued is not None):
            # Out of the queue too, or whoever comes later would wait for a job that does not want.
            self._write(replace(self._state, admitted=False, queued=None, waits_for=""))
        return self._state.admitted

    def save(self, snapshot: JobSnapshot) -> None:
        attempts = self._last.history(self._state, snapshot, datetime.now(UTC))
        if snapshot.record.attempt != self._state.record.attempt:
            self._tracker = Tracker()
        self._write(
            replace(
                self._state,
                status=self._with_cause(snapshot, attempts),
                record=snapshot.record,
                attempts=attempts,
                pods=snapshot.pods,
                ranks=snapshot.ranks,
                progress=self._tracker.progress,
            )
        )

    def _with_cause(self, snapshot: JobSnapshot, attempts: History) -> MPIJobStatus:
        """The status with why the attempt failed. The events that tell the same come later, with
        the next report."""
        status, failures = snapshot.job.status, snapshot.record.failures
        if not failures:
            return status
        found = history.findings(attempts, failures[-1].attempt)
        told = finding_text.conditions_with_cause(status.conditions, found)
        self._failures = {
            old.message: new.message
            for old, new in zip(status.conditions, told, strict=True)
            if old.message != new.message
        }
        text = failures[-1].message
        self._failures[text] = finding_text.with_cause(text, found)
        return replace(status, conditions=told)

    def report(self, pending: Sequence[reports.Report]) -> None:
        now = time.time()
        lines = [t for t in pending if isinstance(t, Line)]
        first, attempt = self._log.number, self._state.record.attempt
        entries = [
            logfile.LogEntry(first + i, now, attempt, t.pod, t.stream, t.rank, t.text)
            for i, t in enumerate(lines)
        ]
        if entries:
            try:
                self._log.add(entries)
            except OSError:  # a full disk loses lines, not the job
                self._warn_once()
        when = datetime.fromtimestamp(now, UTC)
        for event in pending:
            if isinstance(event, reports.EventReport):
                text = self._failures.get(event.message, event.message)
                with suppress(OSError):
                    self._dir.add_event(jobdir.StoredEvent(when, event.weight, event.reason, text))
        self._last.add(lines)
        self._follow_progress(lines, now)

    def _warn_once(self) -> None:
        """Lines are lost. How many is saved with every snapshot, and known at the end."""
        if self._state.missing.lost:
            return
        text = f"Output of the job cannot be kept in {self._dir.path}: {self._log.missing.why}."
        with suppress(OSError):
            self._write(self._state)
            self._dir.add_event(
                jobdir.StoredEvent(datetime.now(UTC), "Warning", "OutputLost", text)
            )

    def _follow_progress(self, lines: Sequence[Line], now: float) -> None:
        for line in lines:
            if line.role == "launcher":
                self._tracker.see(now, line.text)
        if self._tracker.progress != self._state.progress:
            if time.monotonic() - self._progress_saved_at < PROGRESS_SECONDS:
                return
            self._progress_saved_at = time.monotonic()
            with suppress(OSError):
                self._write(replace(self._state, progress=self._tracker.progress))

    def closed(self) -> None:
        """Every pod is gone: those that ended by themselves are remembered, the others not."""
        ended = tuple(replace(p, pid=0) for p in self._state.pods if p.end)
        progress = self._tracker.progress
        counted = replicas.after_end(self._state.status.replica_statuses, Observed())
        found = _with_words(self._state.status.conditions, self._log.missing)
        status = replace(self._state.status, replica_statuses=counted, conditions=found)
        state = replace(self._state, status=status, pods=ended, progress=progress)
        self._write(replace(state, admitted=False, queued=None))
        if self._log.missing.lost:
            self._dir.give_up_reserve()
            with suppress(OSError):
                self._log.add([self._last_entry()])

    def _last_entry(self) -> logfile.LogEntry:
        """So that whoever reads the log to its end learns how much is missing there."""
        text = f"mpi-trainer: {self._log.missing.words()}"
        pod = launcher_name(self._dir.name)
        number, attempt = self._log.number, self._state.record.attempt
        return logfile.LogEntry(number, time.time(), attempt, pod, "stderr", None, text)

    def failed(self, problem: str) -> None:
        """The job could not be run, or not to its end; an end that is known stays what it is."""
        if not conditions.finished(self._state.status.conditions):
            self._write(store.failed(self._state, "LocalRunFailed", problem))

    def _write(self, state: JobState) -> None:
        state = replace(state, missing=self._log.missing)
        self._dir.write_state(state)
        self._state = state


def _with_words(found: conditions.Conditions, missing: logfile.Missing) -> conditions.Conditions:
    """The condition that a job has ended with says too what of its output is missing."""
    words, end = missing.words(), conditions.state(found)
    if not words or not conditions.finished(found):
        return found
    return tuple(
        replace(c, message=f"{c.message} {words[0].upper()}{words[1:]}.") if c.type == end else c
        for c in found
    )


def _nothing(progress: float) -> None:
    """Nobody watches an installation in the background."""


def _wake_up(folder: JobDir) -> int:
    """A descriptor that becomes readable with every SIGUSR1, and when files of the job vanish."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)

    def wake(number: int, frame: FrameType | None) -> None:
        with suppress(BlockingIOError):
            os.write(writer, b"!")

    signal.signal(signal.SIGUSR1, wake)
    # Whoever started us may have had them blocked or ignored, and exec hands that on.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with suppress(OSError):  # not every file system can tell; then the next write finds out
        watched = os.open(folder.path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.fcntl(watched, fcntl.F_SETSIG, signal.SIGUSR1)
        fcntl.fcntl(watched, fcntl.F_NOTIFY, fcntl.DN_DELETE | fcntl.DN_MULTISHOT)
    return reader


def supervise(folder: JobDir, job: MPIJob, desk: DirectoryClient) -> None:
    local = prepare(job, folder.settings())
    distributions.install(local.distribution, _nothing)
    plan = local.run_plan()
    if not fetch_all(plan.fetches, desk):
        desk.closed()
        return
    host = pod_host(plan)
    try:
        Supervisor(local.job, local.layout, plan.machine, host).run(desk)
    finally:
        host.close()
        desk.closed()


def main(path: str) -> int:
    folder = JobDir(Path(path))
    wake = _wake_up(folder)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    desk = DirectoryClient(folder, wake)
    try:
        supervise(folder, folder.job(), desk)
    except (LocalError, ValueError) as error:
        desk.failed(str(error))
        return 1
    except BaseException:
        desk.failed(f"this is a fault of mpi-trainer, not of the job:\n{traceback.format_exc()}")
        return 1
    return 0 if conditions.finished(folder.state().status.conditions) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
