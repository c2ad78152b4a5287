"""The launcher's last words, read back: what became of every rank. Written by `summary.sh`. Pure.

Facts only: what they mean is `diagnose.agent_facts`'s to say. Pods of a job that began with an
older agent have the first form, in which the agent itself named reason and cause.

Tolerant: a text that is not the agent's gives an empty Summary, a line that is not understood is
passed over, and lines may be missing at the end (`cut`), because a termination message is short.
Whoever runs in the launcher can write it (S-2): what is read takes no more room than its text, and
a summary of more ranks than the job can have is told as unreadable.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from mpi_trainer.api import bounds

MARK = "mpi-agent "
COMMAND = "Command"
FACTS = "2"
"""the version of the form that tells facts alone"""


class BadRank(msgspec.Struct, frozen=True):
    """A rank that ended badly; exactly one of `status` and `signal` is set."""

    rank: int
    pod: str
    status: int | None = None
    signal: int | None = None
    pid: int = 0
    oom: bool = False
    at: int | None = None
    """when, in 1/100 s of a clock that all of them share"""
    orphan: bool = False
    """whether its MPI daemon was gone before"""


class Raised(msgspec.Struct, frozen=True):
    """What a rank's Python program said when it failed."""

    rank: int
    pod: str
    where: str
    what: str


class Cause(msgspec.Struct, frozen=True):
    """Whose fault a failure was, where that is known."""

    reason: str
    rank: int | None = None
    pod: str = ""


class Proof(msgspec.Struct, frozen=True):
    """What the agent ended the job for, and its fields; see verdict.sh."""

    what: str
    rank: int | None = None
    pod: str = ""
    source: str = ""
    host: int | None = None
    seconds: int = 0
    living: int = 0
    started: int = 0
    size: int = 0


class HostSaid(msgspec.Struct, frozen=True):
    """A host whose control channel is down, or broke, and what ssh said of it."""

    pod: str
    why: str = ""
    up: bool = False


class FailedDaemon(msgspec.Struct, frozen=True):
    """An MPI daemon that ended with a code of its own, or that of a signal."""

    pod: str
    status: int


class Aborted(msgspec.Struct, frozen=True):
    """A rank that said that it ends all ranks."""

    rank: int
    pod: str
    code: int


class EndedWell(msgspec.Struct, frozen=True):
    """The first rank that ended with 0, and how many did."""

    rank: int
    pod: str
    at: int
    count: int


class AgentFacts(msgspec.Struct, frozen=True):
    """What the second form tells beside what both do. `waiting` of `workers` did not answer, `by`
    and `world` say which launcher started the ranks, `stopped` that somebody stopped the command,
    `orphans` is the first pod whose ranks had lost their MPI daemon, and of a start that is not
    complete `absent` are workers without a rank."""

    proof: Proof | None = None
    stopped: bool = False
    waiting: int = 0
    workers: int = 0
    dropped: tuple[HostSaid, ...] = ()
    daemons: tuple[FailedDaemon, ...] = ()
    down: tuple[HostSaid, ...] = ()
    by: str = ""
    world: str = ""
    well: EndedWell | None = None
    aborted: tuple[Aborted, ...] = ()
    orphans: str = ""
    absent: tuple[str, ...] = ()


class Ranks(msgspec.Struct, frozen=True):
    """Ranks in order, as runs from a first to a last one that do not touch each other."""

    runs: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.runs)

    def __iter__(self) -> Iterator[int]:
        return itertools.chain.from_iterable(range(low, high + 1) for low, high in self.runs)

    def __contains__(self, rank: int) -> bool:
        return any(first <= rank <= last for first, last in self.runs)

    def __str__(self) -> str:
        """`0-3,8`."""
        return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in self.runs)


class OnHost(msgspec.Struct, frozen=True):
    """Ranks of one pod; peak memory in bytes and kills for memory where the machine tells."""

    pod: str
    ranks: Ranks
    peak: int | None = None
    oom: int | None = None


class Summary(msgspec.Struct, frozen=True):
    """`reason` is `Command` where the command ended by itself, else why the agent ended it. It,
    `text` and `cause` are what is concluded from `facts`, or what an older agent has said.

    The world told of is the one that failed, else the last of `runs`. `bad` starts with the rank
    that failed first. `lost` ranks vanished, `open` ones were never seen to end, `foreign` ones
    used another MPI than the one that started them.
    """

    level: str = ""
    reason: str = ""
    code: int | None = None
    text: str = ""
    cause: Cause | None = None
    down: tuple[str, ...] = ()
    size: int = 0
    started: int = 0
    ended: int = 0
    runs: int = 0
    bad: tuple[BadRank, ...] = ()
    raised: tuple[Raised, ...] = ()
    lost: tuple[OnHost, ...] = ()
    open: tuple[OnHost, ...] = ()
    foreign: tuple[OnHost, ...] = ()
    hosts: tuple[OnHost, ...] = ()
    cut: bool = False
    facts: AgentFacts | None = None

    def __bool__(self) -> bool:
        """Whether the agent has said anything."""
        return bool(self.level)

    @property
    def verdict(self) -> str:
        """The agent's own reason for ending the job; empty where it did not."""
        return "" if self.reason == COMMAND else self.reason


def most_ranks(pods: int) -> int:
    """How many ranks the launcher of a job of so many pods can tell of."""
    return min((pods + 1) * bounds.RANKS_PER_POD, bounds.RANKS)


def parse(text: str, most: int = bounds.RANKS) -> Summary:
    """What the launcher says of at most so many ranks."""
    lines = _lines(text)
    if not lines:
        return Summary()
    found: dict[str, list[str]] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        found.setdefault(kind, []).append(rest)
    facts = _facts(found) if _first(found, MARK.strip()) == FACTS else None
    reason, code, _ = _words(_first(found, "ended"), 3)
    world = dict(_pairs(_first(found, "world")))
    said = Summary(
        level=_first(found, "level") or "unknown",
        reason=reason if facts is None else "",
        code=_number(code),
        text=_first(found, "text") if facts is None else "",
        cause=_cause(_first(found, "cause")) if facts is None else None,
        down=tuple(line.partition(" ")[0] for line in found.get("down", ())),
        size=_number(world.get("size")) or 0,
        started=_number(world.get("started")) or 0,
        ended=_number(world.get("ended")) or 0,
        runs=_number(world.get("runs")) or 0,
        bad=tuple(b for line in found.get("bad", ()) if (b := _bad(line)) is not None),
        raised=tuple(r for line in found.get("raised", ()) if (r := _raised(line)) is not None),
        lost=_ranks_of(found.get("lost", [])),
        open=_ranks_of(found.get("open", [])),
        foreign=_ranks_of(found.get("foreign", [])),
        hosts=tuple(h for line in found.get("host", ()) if (h := _host(line)) is not None),
        cut="more" in found,
        facts=facts,
    )
    told = max(_count(group) for group in (said.lost, said.open, said.foreign, said.hosts))
    return said if told <= most else _unreadable(said, told, most)


def without_words(text: str) -> str:
    """Without what programs said; nothing of a text that is no agent's."""
    return "\n".join(map(_without_words, _lines(text)))


def _lines(text: str) -> list[str]:
    """Those of the agent; none of a text that is no agent's."""
    text = text[: bounds.SUMMARY]
    start = text.find(MARK)
    ours = start == 0 or (start > 0 and text[start - 1] == "\n")
    return text[start:].splitlines() if ours else []


def _without_words(line: str) -> str:
    kind, number, pod, _ = _words(line, 4)
    return f"{kind} {number} {pod} - an exception" if kind == "raised" else line


def ranks(text: str) -> Ranks:
    """`0-3,7` as five ranks; none where it is no such list."""
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = _number(first), _number(last or first)
        if low is None or high is None or not low <= high:
            return Ranks()
        found.append((low, high))
    return Ranks(tuple(_joined(sorted(found))))


def _joined(runs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Runs in order, those that touch or overlap as one."""
    begun, ended = runs[0]
    for low, high in runs[1:]:
        if low > ended + 1:
            yield begun, ended
            begun, ended = low, high
        ended = max(ended, high)
    yield begun, ended


def _count(groups: tuple[OnHost, ...]) -> int:
    return sum(len(group.ranks) for group in groups)


def _unreadable(said: Summary, told: int, most: int) -> Summary:
    text = (
        f"the launcher's summary cannot be read: it tells of {told} ranks, and at most {most} "
        "are read for a job of this size; something in the launcher has written it"
    )
    return Summary(level=said.level, reason=said.reason or COMMAND, code=said.code, text=text)


def _facts(found: dict[str, list[str]]) -> AgentFacts:
    what, _, rest = _words(_first(found, "ended"), 3)
    fields, world = dict(_pairs(rest)), dict(_pairs(_first(found, "world")))
    waiting, workers = _words(_first(found, "waits"), 2)
    return AgentFacts(
        proof=None if what == "command" else _proof(what, fields),
        stopped="stopped" in fields,
        waiting=_number(waiting) or 0,
        workers=_number(workers) or 0,
        dropped=tuple(_dropped(line) for line in found.get("dropped", ())),
        daemons=tuple(d for line in found.get("daemon", ()) if (d := _daemon(line)) is not None),
        down=tuple(_down(line) for line in found.get("down", ())),
        by=world.get("by", ""),
        world=world.get("name", ""),
        well=_well(_first(found, "well")),
        aborted=tuple(a for line in found.get("aborted", ()) if (a := _aborted(line)) is not None),
        orphans=_first(found, "orphans"),
        absent=tuple(found.get("absent", ())),
    )


def _proof(what: str, fields: dict[str, str]) -> Proof:
    return Proof(
        what,
        rank=_number(fields.get("rank")),
        pod=fields.get("pod", ""),
        source=fields.get("from", ""),
        host=_number(fields.get("host")),
        seconds=_number(fields.get("seconds")) or 0,
        living=_number(fields.get("living")) or 0,
        started=_number(fields.get("started")) or 0,
        size=_number(fields.get("size")) or 0,
    )


def _down(line: str) -> HostSaid:
    pod, why = _words(line, 2)
    return HostSaid(pod, why)


def _dropped(line: str) -> HostSaid:
    pod, up, why = _words(line, 3)
    return HostSaid(pod, why, up=up == "up")


def _daemon(line: str) -> FailedDaemon | None:
    pod, text = _words(line, 2)
    status = _number(text)
    return None if status is None else FailedDaemon(pod, status)


def _well(line: str) -> EndedWell | None:
    number, pod, rest = _words(line, 3)
    rank, fields = _number(number), dict(_pairs(rest))
    if rank is None:
        return None
    return EndedWell(rank, pod, _number(fields.get("at")) or 0, _number(fields.get("count")) or 1)


def _aborted(line: str) -> Aborted | None:
    number, pod, text = _words(line, 3)
    rank, code = _number(number), _number(text)
    return None if rank is None or code is None else Aborted(rank, pod, code)


def _cause(line: str) -> Cause | None:
    reason, number, pod = _words(line, 3)
    return Cause(reason, _number(number), "" if pod == "-" else pod) if reason else None


def _bad(line: str) -> BadRank | None:
    number, pod, rest = _words(line, 3)
    rank, fields = _number(number), dict(_pairs(rest))
    if rank is None or not pod:
        return None
    return BadRank(
        rank=rank,
        pod=pod,
        status=_number(fields.get("status")),
        signal=_number(fields.get("signal")),
        pid=_number(fields.get("pid")) or 0,
        oom=bool(_number(fields.get("oom"))),
        at=_number(fields.get("at")),
        orphan=bool(_number(fields.get("orphan"))),
    )


def _raised(line: str) -> Raised | None:
    number, pod, where, what = _words(line, 4)
    rank = _number(number)
    return None if rank is None else Raised(rank, pod, "" if where == "-" else where, what)


def _host(line: str) -> OnHost | None:
    pod, listed, rest = _words(line, 3)
    fields = dict(_pairs(rest))
    there = ranks(listed)
    if not there:
        return None
    return OnHost(pod, there, _number(fields.get("peak")), _number(fields.get("oom")))


def _ranks_of(lines: list[str]) -> tuple[OnHost, ...]:
    pairs = (_words(line, 2) for line in lines)
    return tuple(OnHost(pod, ranks(listed)) for listed, pod in pairs if ranks(listed))


def _first(found: dict[str, list[str]], kind: str) -> str:
    return next(iter(found.get(kind, ())), "")


def _words(line: str, count: int) -> list[str]:
    """The first words of a line, the last with all that follows, empty ones where it is short."""
    words = line.split(" ", count - 1)
    return words + [""] * (count - len(words))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for word in text.split():
        name, equals, value = word.partition("=")
        if equals:
            yield name, value


def _number(text: str | None) -> int | None:
    # Longer ones are no count of anything here, and could take long to read.
    short = text and len(text) <= 18 and text.isascii() and text.isdecimal()
    return int(text) if text and short else None
