"""The same log from another job: other names and numbers, and lines in another order.

Hosts, ranks, process ids, ports, addresses and paths are renamed alike wherever they are; the lines
of one writer (a rank, a host's daemon, the launcher) keep their order, those of different writers
are interleaved anew. A seed always gives the same text.
"""

from __future__ import annotations

import random
import re
from typing import Any

_HOSTS = re.compile(r"\btrain-(?:worker-\d+|launcher)\b")
_RANKS = (
    re.compile(r"(?<=\[rank )\d+(?=/\d+\])"),
    re.compile(r"(?<=^rank )\d+(?= of \d+(?: on \S{1,99})?$)", re.M),
    re.compile(r"(?<=process rank )\d+\b"),
    re.compile(r"(?<=invoked on rank )\d+\b"),
    re.compile(r"(?<=RANK )\d+(?= PID)"),
    re.compile(r"(?<= on node )\d+(?= \(rank )"),
    re.compile(r"(?<=\(rank )\d+(?= in comm 0\))"),
    re.compile(r"(?<= - process )\d+$", re.M),
    re.compile(r"(?<=\],)\d+(?=\])"),
    re.compile(r"(?<=@1,)\d+(?=\])"),
    re.compile(r"(?<=\[proxy:0:)\d+(?=@)"),
    re.compile(r"(?<=\[proxy:)\d+(?=@)"),
)
_REPORTED = re.compile(r"(?<=reported by process \[)(\d+),(\d+)(?=\])")
_PIDS = re.compile(r"(?<=[Pp][Ii][Dd] )\s*\d+\b|(?<=:)\d{5}(?=[\]:])")
_PATHS = re.compile(r"/(?:opt/mpi|etc/mpi|opt/app|home/mpiuser)\b")
_USERS = re.compile(r"\bmpiuser(?=@)")
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)")
_WRITER = re.compile(r"^\[(?:mpiexec|proxy:[\d:]+)@([^\]]+)\]|^\[([^\]:\s]+):\d+[\]:]")


def renamed(text: str, rank: int | None, host: str | None, seed: int) -> dict[str, Any]:
    """What of a sample is replaced."""
    chance = random.Random(f"{seed} {len(text)}")
    hosts = {h: _name(chance, n) for n, h in enumerate(sorted(set(_HOSTS.findall(text))))}
    if host is not None:
        hosts.setdefault(host, _name(chance, 99))
    size = max((int(n) for n in re.findall(r"rank \d+(?:/| of )(\d+)", text)), default=0)
    order = list(range(size))
    chance.shuffle(order)

    def other(found: re.Match[str]) -> str:
        return str(_other(order, int(found[0])))

    for pattern in _RANKS:
        text = pattern.sub(other, text)
    text = _REPORTED.sub(lambda m: f"{m[1]},{_other(order, int(m[2]))}", text)
    pids: dict[str, str] = {}
    text = _PIDS.sub(
        lambda m: pids.setdefault(m[0], m[0].replace(m[0].strip(), str(chance.randint(2, 99999)))),
        text,
    )
    text = _HOSTS.sub(lambda m: hosts[m[0]], text)
    user, place = chance.choice(("u", "jo", "alice")), chance.choice(("/srv", "/x/y", "/mnt/d"))
    text = _USERS.sub(user, _PATHS.sub(lambda m: place + m[0], text))
    return {
        "text": "\n".join(_interleaved(text.split("\n"), chance)),
        "rank": None if rank is None else _other(order, rank),
        "host": None if host is None else hosts[host],
    }


def _other(order: list[int], rank: int) -> int:
    return order[rank] if rank < len(order) else rank


def _name(chance: random.Random, number: int) -> str:
    stem = chance.choice(("node", "gpu-pool-a", "n", "ip-10-0", "bert-run7-worker", "hpc"))
    return f"{stem}-{chance.choice('abcdefgh')}{chance.randint(10, 99)}{number}"


def _interleaved(lines: list[str], chance: random.Random) -> list[str]:
    """Each writer's lines in their order; a traceback, and every other line, has its own."""
    streams: dict[str, list[str]] = {}
    writer = "launcher"
    tracebacks = 0
    for number, line in enumerate(lines):
        found = _WRITER.match(line)
        if _TRACEBACK.match(line):
            tracebacks += 1
            writer = f"traceback {tracebacks}"
        elif writer.startswith("traceback") and not (
            line.startswith(" ") or streams[writer][-1].startswith(" ")
        ):
            writer = "launcher"
        if found is not None:
            key = found[1] or found[2]
        elif re.match(r"\[rank \d+/|rank \d+ of", line):
            key = f"rank {number}"
        else:
            key = writer
        streams.setdefault(key, []).append(line)
    mixed = []
    waiting = [stream for stream in streams.values() if stream]
    while waiting:
        stream = chance.choices(waiting, [len(each) for each in waiting])[0]
        mixed.append(stream.pop(0))
        waiting = [each for each in waiting if each]
    return mixed
