"""Reads a job's output once, line by line, and keeps the lines that show a cause.

Time is linear and memory bounded, whatever the text: a line is cut at `LONGEST`, the words of each
are compared with one word of every rule before any pattern is tried, and of each cause only the
first and last lines are kept. Pure but for its memory.
"""

from __future__ import annotations

import builtins
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from mpi_trainer.diagnose.finding import Hit
from mpi_trainer.diagnose.help_texts import RULE as DASHES
from mpi_trainer.diagnose.help_texts import HelpTexts
from mpi_trainer.diagnose.rank_hosts import RankHosts
from mpi_trainer.diagnose.rules import DETAILS, NOISE, RULES
from mpi_trainer.diagnose.rules.model import (
    EXCEPTION,
    EXITED,
    FOLLOWS,
    STARTUP,
    WARNED,
    Detail,
    Rule,
)
from mpi_trainer.layout.mpi import RANK_MARK

LONGEST: Final = 2000
KEPT: Final = 32
LAST_LINES: Final = 20

# What is no letter becomes a blank, so that the rest are words.
_LETTERS = "".join(chr(n) if chr(n).isalpha() else " " for n in range(128))
# Words of healthy logs, by which no line is worth a look.
_COMMON = frozenset(
    {"loss", "step", "epoch", "device", "data", "model", "tensor", "batch", "size", "time", "end"}
    | {"value", "values", "with", "from", "after", "code", "error", "failed", "found", "index"}
    | {"files", "file", "load", "read", "write", "open", "port", "ready", "token", "key", "not"}
    | {"of", "process", "request", "number", "there", "system", "output", "result", "weight"}
)
ESCAPES: Final = re.compile(
    r"\x1b\[[0-9;?]{0,16}[A-Za-z]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f]"
)
# Whose line it is: Open MPI's marks, with a host or without, torch's `[rank1]:`, torchrun's
# `[default1]:`, Hydra's `[1] `, Horovod's `[1]<stderr>:`; and the pods and times before them, of
# kubectl, log files, mpirun and horovodrun.
_OF_RANK = RANK_MARK.replace("<std", r"(?:\[[^\]\s]{1,300}\])?<std")
_MARK = re.compile(
    rf"(?:{_OF_RANK} ?|\[(?:rank|default)?(?P<torch>\d{{1,7}})\](?:<std(?:out|err)>)?:? ?|"
    r"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[-+]\d\d:?\d\d) ?(?:std(?:out|err) [FP] )?|"
    r"(?:[A-Z][a-z]{2} ){2}[ \d]\d [\d:]{8} \d{4} ?(?:<std(?:out|err)>: ?)?|"
    r"\[pod/[^\]\s]{1,400}\] ){1,3}"
)
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.<>]{0,200})(?:: (?P<what>\S.*)|:?$)")
# What logging libraries call less than an error; Google's and torch's have one letter for it.
_LEVEL = re.compile(
    r"(?:^|[\s\[|:])(?:DEBUG|INFO|NOTICE|WARN|WARNING)[\s\]|:]|^\[[WI](?:\d{4})? |"
    r": [WI] (?:tensorflow|external)/|<(?:debug|info|warn)> "
)
_BEGINNING = 160  # characters in which a level stands
_OF_TOOL = re.compile(
    r"(?:cat|chmod|chown|cp|curl|getent|groups|id|ls|mkdir|mv|nc|ncat|nslookup|ping|rm|telnet|touch|"
    r"wget): "
)
_SUFFIXES = ("Error", "Exception", "Interrupt", "Exit", "Failure", "Fault", "Timeout", "NotFound")
_LONGEST_RANK = 7  # digits
_BY_HYDRA = ("[mpiexec@", "[proxy:")
_WAITING = "mpi-agent: waiting for "
_TRACEBACK = "Traceback (most recent call last)"
_TRACEBACK_LINES = 400
_DETAIL_LINES = 40
# The last says no more than that there are others, which follow.
_FINISHED_QUIETLY = ("Warning", "Interrupt", "ExceptionGroup")
_IN_GROUP = re.compile(r"^ {2,40}\| ")


class _Compiled(msgspec.Struct, frozen=True):
    rule: Rule
    pattern: re.Pattern[str] | None


class Log(msgspec.Struct):
    """What is left of the output: `said` counts its lines, `quiet` those without a find. `told` is
    what mpirun itself has said first."""

    hits: list[Hit]
    hosts: RankHosts
    last: tuple[str, ...]
    said: int
    quiet: int
    told: str = ""


class LogReader:
    def __init__(self, hosts: tuple[tuple[int, str], ...] = ()) -> None:
        self._hosts = RankHosts(hosts)
        self._first: dict[str, list[Hit]] = {}
        self._later: dict[str, deque[Hit]] = {}
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._rest = ""
        self._number = 0
        self._said = 0
        self._quiet = 0
        self._tracebacks = 0
        self._traceback_end = 0
        self._frame = 0
        self._details_end = 0
        self._recent: deque[Hit] = deque(maxlen=4)
        self._help = HelpTexts()
        self._told = ""

    def feed(self, text: str) -> None:
        """Any piece of the output; a carriage return ends a line as a newline does."""
        if "\r" in text:
            text = text.replace("\r", "\n")
        lines = text.split("\n")
        lines[0] = self._rest + lines[0][:LONGEST]
        self._rest = lines.pop()[:LONGEST]
        for line in lines:
            self.read_line(line)

    def read(self, lines: Iterable[str]) -> Log:
        for line in lines:
            self.read_line(line)
        return self.close()

    def read_line(self, line: str, rank: int | None = None) -> None:
        """One line; `rank` where its writer is known."""
        self._number += 1
        if len(line) > LONGEST:
            line = line[:LONGEST]
        if line:
            self._said += 1
            self._last.append(line)
        self._read_help(line)
        words = line.translate(_LETTERS).split()
        if self._tracebacks and self._traceback_end < self._number:
            self._tracebacks = 0
        watched = self._tracebacks or self._number <= self._details_end
        if not watched and _ANCHORS.isdisjoint(words):
            self._quiet += 1
            return
        if not _RANK_WORDS.isdisjoint(words):
            self._hosts.read(line)
        line, rank = _unmarked(line, rank)
        if _TRACEBACK in line:
            self._tracebacks += 1
            self._traceback_end = self._number + _TRACEBACK_LINES
            return
        if self._tracebacks:
            line = _IN_GROUP.sub("", line)
        if self._tracebacks and line.startswith(("    ", '  File "')):
            self._frame = self._number
            return
        if not self._fill(line) and not self._find(line, words, rank) and not self._tracebacks:
            self._quiet += 1

    @property
    def awaited(self) -> str:
        """The agent's line about workers that it waits for, where nothing came after it. ssh ends
        its words with a carriage return, so the rest of the line may be another."""
        last = next((line for line in reversed(self._last) if not line.startswith(")")), "")
        return last if last.startswith(_WAITING) else ""

    def close(self) -> Log:
        if self._rest:
            rest, self._rest = self._rest, ""
            self.read_line(rest)
        hits = [hit for kept in self._first.values() for hit in kept]
        hits += [hit for kept in self._later.values() for hit in kept]
        hits.sort(key=lambda hit: hit.number)
        told = self._help.first or self._told
        return Log(hits, self._hosts, tuple(self._last), self._said, self._quiet, told)

    def _read_help(self, line: str) -> None:
        """What rules find in a text of mpirun that is no longer broken into lines."""
        if not self._help.open and not line.startswith(DASHES):
            return
        text = self._help.read(line)
        words = text.translate(_LETTERS).split()
        for one in _candidates(words):
            hit = _matched(one, text)
            if hit is not None and f"{hit.cause} {hit.weight}" not in self._first:
                self._keep(hit, None)

    def _find(self, line: str, words: list[str], rank: int | None) -> bool:
        """Keeps what rules find in the line; a plain exception only where no rule knows more."""
        found = False
        if not _NOISE_WORDS.isdisjoint(words) and any(text in line for text in NOISE):
            return True
        if line.startswith(_WAITING):
            return True  # until the last such line, which is in `awaited`, workers came late
        if not self._told and line.startswith(_BY_HYDRA):
            self._told = line
        for one in _candidates(words):
            hit = _matched(one, line)
            if hit is not None:
                hit.weight = min(hit.weight, _most(line, hit.weight))
                self._keep(hit, None if one.rule.of_others else rank)
                found = True
        after_frame = self._frame == self._number - 1
        raised = _raised(line, self._tracebacks, after_frame)
        if raised is not None:
            self._tracebacks = max(0, self._tracebacks - 1)
            if not found:
                self._keep(raised, rank)
            found = True
        return found

    def _fill(self, line: str) -> bool:
        """Gives the latest hit that lacks them the host, rank, signal or code of this line."""
        filled = known = False
        for hit in reversed(self._recent):
            if hit.number + _DETAIL_LINES < self._number:
                break
            for detail, pattern in _DETAILS.get(hit.cause, ()):
                found = pattern.search(line) if detail.needs in line else None
                if found is not None:
                    known = True
                    filled = _completed(hit, found, line) or filled
            if known:
                break
        return filled

    def _keep(self, hit: Hit, rank: int | None) -> None:
        hit.number, hit.quiet, hit.by_rank = self._number, self._quiet, rank is not None
        if hit.rank is None:
            hit.rank = rank
        first = self._first.setdefault(f"{hit.cause} {hit.weight}", [])
        if len(first) < KEPT:
            first.append(hit)
        else:
            self._later.setdefault(hit.cause, deque(maxlen=KEPT)).append(hit)
        if hit.cause in _DETAILS:
            self._recent.append(hit)
            self._details_end = self._number + _DETAIL_LINES


def _unmarked(line: str, rank: int | None) -> tuple[str, int | None]:
    """The line without marks and escapes, and whose it is."""
    if ESCAPES.search(line):
        line = ESCAPES.sub("", line)
    mark = _MARK.match(line)
    if mark is None:
        return line, rank
    number = mark["rank"] or mark["torch"]
    known = rank is not None or not number or len(number) > _LONGEST_RANK
    return line[mark.end() :], rank if known else int(number)


def _matched(one: _Compiled, line: str) -> Hit | None:
    rule = one.rule
    if rule.needs not in line or any(text in line for text in rule.unless):
        return None
    if one.pattern is None:
        return _hit(rule, line)
    found = one.pattern.search(line)
    if found is None:
        return None
    hit = _hit(rule, line)
    _completed(hit, found, "")
    return hit


def _hit(rule: Rule, line: str) -> Hit:
    success, instead = rule.despite_success, rule.instead
    return Hit(rule.cause, rule.weight, line, despite_success=success, instead=instead)


def _completed(hit: Hit, found: re.Match[str], line: str) -> bool:
    """Whether the groups of the match told anything new; `line` is then worth showing."""
    groups = found.groupdict()
    new = False
    if hit.host and groups.get("host") not in (None, hit.host):
        return False  # of somebody else
    if groups.get("host") and not hit.host:
        hit.host, new = groups["host"].rstrip("."), True
    for name in ("rank", "signal", "code"):
        if groups.get(name) and getattr(hit, name) is None:
            setattr(hit, name, int(groups[name]))
            new = True
    if new and line:
        hit.line = f"{hit.line}\n{line}"
    return new


def _most(line: str, weight: int) -> int:
    """What a line's hit weighs at most: a program goes on after its warnings, and a script after
    the errors of its tools, but not where it ends. What keeps mpirun from starting is no less for
    being called a warning, nor is what NCCL and UCX, which have no other word, call one."""
    if FOLLOWS < weight < STARTUP - 3:
        if any(text in line for text in WARNED):
            return FOLLOWS
        if _LEVEL.search(line, 0, _BEGINNING) and "NCCL WARN" not in line and "UCX " not in line:
            return FOLLOWS
        if _OF_TOOL.match(line):
            return EXCEPTION - 6
    return weight


def _raised(line: str, tracebacks: int, after_frame: bool) -> Hit | None:
    """An exception's own line: its type, and what it says. Any name will do right after the last
    frame of a traceback, elsewhere only one that exceptions have."""
    if not line or not (line[0].isalpha() or line[0] == "_"):
        return None
    found = _EXCEPTION.match(line)
    if found is None:
        return None
    kind = found["type"]
    last = kind.rpartition(".")[2]
    known = last.endswith(_SUFFIXES)
    odd = last.isupper() or last.endswith(_FINISHED_QUIETLY) or not last[:1].isupper()
    if odd or not (known or (tracebacks and ("." in kind or after_frame))):
        return None
    if last == "SystemExit":
        return Hit("RankExitedNonZero", EXITED, line)
    if not tracebacks and found["what"] is None:
        return None
    return Hit("ProgramException", EXCEPTION if tracebacks else EXCEPTION - 5, line)


def _candidates(words: list[str]) -> Iterator[_Compiled]:
    for word in dict.fromkeys(words):
        yield from _BY_WORD.get(word, ())
        if word.endswith("Error") and word != "Error":
            yield from _BY_WORD.get("Error", ())


def anchor(needs: str) -> str:
    """The word by which lines with `needs` are found, which begins and ends with whole words."""
    words = needs.translate(_LETTERS).split()
    return max(words, key=lambda word: (word not in _COMMON, len(word)))


def _compiled(rule: Rule) -> _Compiled:
    return _Compiled(rule, re.compile(rule.pattern) if rule.pattern else None)


def _by_word() -> dict[str, tuple[_Compiled, ...]]:
    found: dict[str, list[_Compiled]] = {}
    for rule in RULES:
        found.setdefault(anchor(rule.needs), []).append(_compiled(rule))
    return {word: tuple(rules) for word, rules in found.items()}


def _details() -> dict[str, tuple[tuple[Detail, re.Pattern[str]], ...]]:
    found: dict[str, list[tuple[Detail, re.Pattern[str]]]] = {}
    for detail in DETAILS:
        found.setdefault(detail.of, []).append((detail, re.compile(detail.pattern)))
    return {cause: tuple(all_of) for cause, all_of in found.items()}


_BY_WORD = _by_word()
_DETAILS = _details()
_NOISE_WORDS = frozenset(anchor(text) for text in NOISE)
_EXCEPTIONS = frozenset(name for name in dir(builtins) if name.endswith("Error"))
_RANK_WORDS = frozenset({"rank", "Rank", "RANK", "proxy", "process"})
_ANCHORS = frozenset({*_BY_WORD, *_NOISE_WORDS, *_RANK_WORDS, "Traceback", "mpiexec", *_EXCEPTIONS})
