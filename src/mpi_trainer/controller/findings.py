"""Why an attempt failed, found when it ends: from its pods, the agent's summary and its log's end.

Whoever asks later gets what was found then, since pods and logs go with an attempt. What programs
wrote is shown only after `redact` has seen it. Danger: of a log only the end is read here, which is
bounded; `explain` reads all of it where nothing certain was found.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mpi_trainer.api.kinds.pod_status import DetailedContainerStatus, DetailedPodStatus
from mpi_trainer.controller import redact
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.observed_pods import launcher_end
from mpi_trainer.decide.history import Attempt
from mpi_trainer.diagnose import cause, evidence
from mpi_trainer.diagnose.finding import Facts, Findings
from mpi_trainer.diagnose.log_reader import LogReader

replace = msgspec.structs.replace


def attempt_facts(
    attempt: Attempt, launcher: Pod | None, pods: Iterable[Pod], workers: int, main: str = ""
) -> Facts:
    """`pods` are those of the attempt, `main` is the container that runs the job, "" the first."""
    known = Facts(
        reason=attempt.reason,
        message=attempt.message,
        pods=tuple(_evidence(pod) for pod in pods),
        blamed_rank=attempt.rank,
        blamed_host="" if attempt.host == attempt.pod else attempt.host,
    )
    if launcher is None or launcher.status.phase != "Failed":
        return known
    end, summary = launcher_end(launcher, workers, main)
    hosts = tuple((rank, host.pod) for host in summary.hosts for rank in host.ranks)
    return replace(known, exit_code=end.code, signal=end.signal, summary=summary, hosts=hosts)


def found_in(
    lines: Iterable[str], facts: Facts, environment: Iterable[tuple[str, str]]
) -> Findings:
    """From printable lines and everything else that is known. Milliseconds for a long log."""
    reader = LogReader(facts.hosts)
    for line in lines:
        reader.read_line(line)
    return cause.concluded(reader, _redacted(facts, tuple(environment)))


def without_words(found: Findings) -> Findings:
    """Where nothing that a program wrote may be kept."""
    return tuple(replace(one, line="", followed=()) for one in found)


def _redacted(facts: Facts, environment: tuple[tuple[str, str], ...]) -> Facts:
    """What programs wrote, and was not in the log that was redacted. Danger: a finding cuts lines,
    and half of a secret is not recognised."""
    summary = facts.summary
    raised = tuple(
        replace(one, what=redact.printable(one.what, environment)) for one in summary.raised
    )
    message = redact.printable(facts.message, environment)
    return replace(facts, message=message, summary=replace(summary, raised=raised))


def _evidence(pod: Pod) -> evidence.Pod:
    status = pod.status
    return evidence.Pod(
        metadata=evidence.Meta(name=pod.metadata.name),
        status=DetailedPodStatus(
            phase=status.phase,
            reason=status.reason,
            conditions=status.conditions,
            container_statuses=tuple(
                DetailedContainerStatus(name=one.name, state=one.state)
                for one in (*status.init_container_statuses, *status.container_statuses)
            ),
        ),
    )
