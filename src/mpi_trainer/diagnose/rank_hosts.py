"""Which rank ran on which host, as far as the output lets one know. Pure but for its memory.

Programs say where they run, and so do mpirun and Hydra's proxies when something fails. Danger: a
program can print anything, so a pair counts only where both parts look right, and a guess from the
number at the end of a host's name only where no pair that is known contradicts it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from mpi_trainer.api import bounds

_HOST = r"(?P<host>[a-z0-9][-a-z0-9_.]{0,252})"
# `[rank 1/3] started on n1`, `rank 1 of 3 on host n1`, `RANK 1 PID 7 RUNNING AT n1`
_PAIR = re.compile(
    r"(?:rank|Rank|RANK|process)[ =:#]{0,2}(?P<rank>\d{1,7})(?![\d.])"
    r"(?:(?:/| of )(?P<size>\d{1,7}))?\]?[^\[\n]{0,40}?"
    r"(?: on node | on host | on | at | AT |host[=:] ?|node[=:] ?)" + _HOST
)
_SIZE = re.compile(r"(?:rank|Rank|RANK)[ =:#]{0,2}(?P<rank>\d{1,7})(?:/| of )(?P<size>\d{1,7})")
# `[proxy:0:1@n1]`, `[proxy:1@n1]`: the proxy's number, which is the rank where each has one.
_PROXY = re.compile(rf"\[proxy:(?:0:)?(?P<rank>\d{{1,7}})@{_HOST}\]")
# `[n1:123] *** reported by process [9,1]`, and `[n1][[33023,1],2]`
_REPORTED = re.compile(
    rf"^\[{_HOST}(?::\d{{1,9}}\] \*\*\* reported by process \[\d{{1,12}}|"
    r"\]\[\[\d{1,9},\d{1,9}\]),(?P<rank>\d{1,7})\]"
)
_ORDINAL = re.compile(r"(?P<number>\d{1,7})$")
_NO_HOST = re.compile(r"(?:cuda|gpu|cpu|device|dev|step|epoch|localhost)[-_.\d]*$")


class _Pairs(msgspec.Struct, frozen=True):
    """All pairs as questions need them. `one_each`: whether each host seems to have one rank;
    `ordinal`: whether each pair is a rank and the number at the end of its host's name; `left`: the
    one rank that no pair names."""

    ranks: Mapping[str, tuple[int, ...]]
    proxies: Mapping[str, tuple[int, ...]]
    one_each: bool
    ordinal: bool
    left: int | None


class RankHosts:
    def __init__(self, known: tuple[tuple[int, str], ...] = ()) -> None:
        self._hosts: dict[int, str] = dict(known[: bounds.RANKS])
        self._proxies: dict[int, str] = {}
        self._seen: set[int] = set()
        self._pairs: _Pairs | None = None  # made by the first question after a line
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._hosts)

    @property
    def complete(self) -> bool:
        """Whether every rank has said that it is there."""
        return self.size > 1 and self._seen.issuperset(range(self.size))

    def read(self, line: str) -> None:
        """A line with the word rank, or of a daemon."""
        self._pairs = None
        for found in _SIZE.finditer(line):
            self.size = max(self.size, min(int(found["size"]), bounds.RANKS))
            if len(self._seen) < bounds.RANKS:
                self._seen.add(int(found["rank"]))
        if len(self._hosts) >= bounds.RANKS:
            return
        for found in _PAIR.finditer(line):
            self._add(int(found["rank"]), found["host"])
        reported = _REPORTED.search(line)
        if reported is not None:
            self._add(int(reported["rank"]), reported["host"])
        proxy = _PROXY.search(line)
        if proxy is not None and len(self._proxies) < bounds.RANKS:
            self._proxies[int(proxy["rank"])] = proxy["host"]

    def _add(self, rank: int, host: str) -> None:
        host = host.rstrip(".")
        looks_right = any(c.isdigit() or c == "-" for c in host) and not host[0].isdigit()
        if looks_right and _NO_HOST.match(host) is None:
            self._hosts.setdefault(rank, host)

    def host(self, rank: int) -> str:
        """Where a rank ran; empty where that is not known."""
        if rank in self._hosts:
            return self._hosts[rank]
        proxied = self._proxies.get(rank, "")
        return proxied if proxied and self._known().one_each else ""

    def ranks(self, host: str) -> tuple[int, ...]:
        """The ranks of a host; one of several may be all that is known."""
        pairs, short = self._known(), _short(host)
        found = pairs.ranks.get(short, ())
        if found or not host:
            return found
        if pairs.one_each and short in pairs.proxies:
            return pairs.proxies[short]
        if pairs.one_each and pairs.left is not None:
            return (pairs.left,)
        # `worker-1` has rank 1 where every pair that is known is so.
        number = _number(host)
        return (number,) if pairs.ordinal and number is not None and number < self.size else ()

    def _known(self) -> _Pairs:
        if self._pairs is None:
            hosts, proxies = self._hosts, self._proxies
            both = [*hosts.items(), *proxies.items()]
            left = set(range(self.size)) - set(hosts) - set(proxies)
            self._pairs = _Pairs(
                ranks=_by_host(dict(sorted(hosts.items()))),
                proxies=_by_host(proxies),
                one_each=all(number < self.size for number in proxies)
                and len(set(hosts.values())) == len(hosts),
                ordinal=bool(both) and all(_number(where) == rank for rank, where in both),
                left=min(left) if len(left) == 1 else None,
            )
        return self._pairs


def _number(host: str) -> int | None:
    found = _ORDINAL.search(_short(host))
    return int(found["number"]) if found else None


def _by_host(pairs: Mapping[int, str]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for rank, where in pairs.items():
        found.setdefault(_short(where), []).append(rank)
    return {where: tuple(ranks) for where, ranks in found.items()}


def _short(host: str) -> str:
    return host.partition(".")[0]
