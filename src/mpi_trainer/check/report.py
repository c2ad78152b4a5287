"""What a check found: from the lines that a smoke run printed to steps and numbers. Pure.

The lines come out of an image that others made, so they are read as hostile text: few, short, and
none is trusted to be there. A step that no line speaks of was not tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from mpi_trainer.diagnose.finding import Finding

HOSTS: Final = 2
"""pods that run a rank in a smoke run"""
MARK: Final = "mpi-trainer-check "
_LONGEST: Final = 400
_MOST: Final = 64

Outcome = Literal["ok", "failed", "not tried"]
NAMES, SSH, VERSIONS, START = "host names", "SSH", "MPI versions", "start of ranks"
ALLREDUCE, LATENCY, BANDWIDTH = "allreduce", "latency", "bandwidth"
MEASURED: Final = (ALLREDUCE, LATENCY, BANDWIDTH)


class CheckStep(msgspec.Struct, frozen=True):
    """One thing that a smoke run tried. outcome: `ok`, `failed` or `not tried`."""

    name: str
    outcome: Outcome
    text: str = ""


class CheckReport(msgspec.Struct, frozen=True):
    """What a check of a job or a runtime found.

    errors and warnings: what reading shows, a line each with the field and what to do. steps: what
    the smoke run tried, empty where there was none; `unrun` says why. nodes: those that the two
    pods were on. latency is in seconds, bandwidth in bytes per second, one way between the two;
    None where they were not measured. findings: why the smoke run failed.
    """

    name: str
    kind: str
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    steps: tuple[CheckStep, ...] = ()
    unrun: str = ""
    problem: str = ""
    nodes: tuple[str, ...] = ()
    latency: float | None = None
    bandwidth: float | None = None
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong; warnings are not."""
        failed = any(step.outcome == "failed" for step in self.steps)
        return not (self.errors or self.problem or failed)

    @property
    def summary(self) -> str:
        """One sentence."""
        what = f"{self.kind} {self.name}"
        if self.errors:
            return f"{what} cannot work as it is written"
        if self.passed:
            return f"{what} works" if self.steps else f"{what}: nothing wrong was found"
        first = next((one.name for one in self.steps if one.outcome == "failed"), "")
        return f"the smoke run of {what} failed" + (f": {first}" if first else "")


class Measured(msgspec.Struct, frozen=True):
    """What the lines of a smoke run say."""

    steps: tuple[CheckStep, ...]
    latency: float | None
    bandwidth: float | None
    root: bool = False
    """whether root had to be allowed, which no job of the user has done yet"""


class _Facts:
    """The words of the lines, by their first one."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._found: dict[str, list[list[str]]] = {}
        for line in lines:
            _, mark, rest = line[:_LONGEST].partition(MARK)
            words = rest.split()
            if mark and words:
                kept = self._found.setdefault(words[0], [])
                if len(kept) < _MOST:
                    kept.append(words[1:])

    def all(self, name: str) -> list[list[str]]:
        return self._found.get(name, [])

    def word(self, name: str) -> str:
        """The first word of the last line of that name."""
        found = self.all(name)
        return found[-1][0] if found and found[-1] else ""

    def text(self, name: str) -> str:
        found = self.all(name)
        return " ".join(found[-1]) if found else ""

    def number(self, name: str) -> float | None:
        try:
            number = float(self.word(name))
        except ValueError:
            return None
        return number if math.isfinite(number) and number > 0 else None


def measured(lines: Iterable[str], *, ended: bool) -> Measured:
    """`ended`: the job has come to its end, well or not, so that what is missing failed."""
    facts = _Facts(lines)
    latency, bandwidth = facts.number(LATENCY), facts.number(BANDWIDTH)
    steps = [_names(facts), _ssh(facts), _versions(facts), _start(facts)]
    steps += _numbers(facts, latency, bandwidth)
    if not ended:
        # Whatever it was at when time was over did not come to its end.
        late = next((n for n, one in enumerate(steps) if one.outcome == "not tried"), len(steps))
        steps[late : late + 1] = [
            CheckStep(one.name, "failed", "not done in time") for one in steps[late : late + 1]
        ]
    return Measured(tuple(steps), latency, bandwidth, bool(facts.all("root")))


def _names(facts: _Facts) -> CheckStep:
    found = facts.all("name")
    if not found:
        return CheckStep(NAMES, "not tried", _unsaid(facts, "the image has no getent"))
    unknown = [words[0] for words in found if len(words) > 1 and words[1] == "-"]
    if unknown:
        return CheckStep(NAMES, "failed", f"DNS does not know {', '.join(unknown)}")
    return CheckStep(NAMES, "ok", f"DNS knows {_count(len(found), 'host')}")


def _ssh(facts: _Facts) -> CheckStep:
    found = [words for words in facts.all("ssh") if len(words) > 1]
    if not found:
        return CheckStep(SSH, "not tried", _unsaid(facts, "no other host, or no ssh in the image"))
    bad = [f"{words[0]} (exit code {words[1]})" for words in found if words[1] != "0"]
    if bad:
        return CheckStep(SSH, "failed", f"no connection to {', '.join(bad)}")
    return CheckStep(SSH, "ok", f"{_count(len(found), 'host')} can be reached")


def _versions(facts: _Facts) -> CheckStep:
    """Of the libraries that the ranks have loaded, else of mpirun on each host."""
    pairs = [(words[1], " ".join(words[2:])) for words in facts.all("library") if len(words) > 2]
    if len(pairs) < HOSTS:
        pairs = [(words[0], " ".join(words[1:])) for words in facts.all("mpirun") if words]
        missing = [host for host, version in pairs if version == "-"]
        if missing:
            return CheckStep(VERSIONS, "failed", f"{missing[0]} has no mpirun on its PATH")
        pairs = [(host, version) for host, version in pairs if version]
    if len(pairs) < HOSTS:
        return CheckStep(VERSIONS, "not tried", _unsaid(facts, "not every host tells its version"))
    if len({version for _, version in pairs}) > 1:
        text = "; ".join(f"{host} has {version}" for host, version in dict(pairs).items())
        return CheckStep(VERSIONS, "failed", text)
    return CheckStep(VERSIONS, "ok", f"{pairs[0][1]} on all hosts")


def _start(facts: _Facts) -> CheckStep:
    code = facts.word("start")
    if not code:
        return CheckStep(START, "not tried")
    if code != "0":
        return CheckStep(START, "failed", f"mpirun ended with exit code {code}")
    hosts = list(dict.fromkeys(words[1] for words in facts.all("rank") if len(words) > 1))
    if len(hosts) < HOSTS:
        where = f" on {hosts[0]}" if hosts else ""
        return CheckStep(START, "failed", f"both ranks ran{where}: the hostfile was not used")
    return CheckStep(START, "ok", f"one rank each on {' and '.join(hosts)}")


def _numbers(facts: _Facts, latency: float | None, bandwidth: float | None) -> list[CheckStep]:
    why = facts.text("unmeasured")
    if why or not facts.word("measure"):
        return [CheckStep(name, "not tried", why) for name in MEASURED]
    text = ""
    if facts.word("size"):
        text = f"MPI has {facts.word('size')} rank in place of {HOSTS}: mpi4py has another MPI"
    elif facts.word(ALLREDUCE) == "wrong":
        text = "the sum of both ranks is wrong"
    elif facts.word("measure") != "0":
        text = f"mpirun ended with exit code {facts.word('measure')}"
    right: Outcome = "ok" if facts.word(ALLREDUCE) == "right" and not text else "failed"
    return [
        CheckStep(ALLREDUCE, right, text or "the sum of both ranks is right"),
        _number(LATENCY, latency, f"{(latency or 0) * 1e6:.1f} µs for 8 bytes one way"),
        _number(BANDWIDTH, bandwidth, f"{(bandwidth or 0) / 1e9:.2f} GB/s for 4 MiB one way"),
    ]


def _number(name: str, number: float | None, text: str) -> CheckStep:
    return CheckStep(name, "ok", text) if number else CheckStep(name, "not tried")


def _unsaid(facts: _Facts, why: str) -> str:
    """Why there is no line of a step, where later ones show that it was passed by."""
    return why if facts.word("start") else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


def words(report: CheckReport) -> list[str]:
    """The report as lines for a person."""
    lines = [f"error: {text}" for text in report.errors]
    lines += [f"warning: {text}" for text in report.warnings]
    width = max((len(step.name) for step in report.steps), default=0)
    for step in report.steps:
        lines.append(f"{step.outcome:<9}  {step.name:<{width}}  {step.text}".rstrip())
    lines += [f"note: {text}" for text in _notes(report)]
    if report.problem:
        lines.append(f"error: {report.problem}")
    return [*lines, report.summary]


def _notes(report: CheckReport) -> Sequence[str]:
    if report.unrun:
        return (f"no smoke run: {report.unrun}",)
    if len(set(report.nodes)) == 1 and len(report.nodes) > 1:
        where = report.nodes[0]
        return (f"both ran on node {where}: nothing between two nodes was tried",)
    return ()
