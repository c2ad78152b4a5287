"""Which rank ran on which host, as far as the output lets one know. Pure but for its memory.

Programs say where they run, and so do mpirun and Hydra's proxies when something fails. Danger: a
program can print anything, so a pair counts only where both parts look right, and a guess from the
number at the end of a host's name only where no pair that is known contradicts it.
"""

from __future__ import annotations

import re

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


class RankHosts:
    def __init__(self, known: tuple[tuple[int, str], ...] = ()) -> None:
        self._hosts: dict[int, str] = dict(known[: bounds.RANKS])
        self._proxies: dict[int, str] = {}
        self._seen: set[int] = set()
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._hosts)

    @property
    def complete(self) -> bool:
        """Whether every rank has said that it is there."""
        return self.size > 1 and self._seen.issuperset(range(self.size))

    def read(self, line: str) -> None:
        """A line with the word rank, or of a daemon."""
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
        return proxied if proxied and self._one_each() else ""

    def ranks(self, host: str) -> tuple[int, ...]:
        """The ranks of a host; one of several may be all that is known."""
        found = sorted(rank for rank, where in self._hosts.items() if _same(where, host))
        if found or not host:
            return tuple(found)
        if self._one_each():
            proxies = [n for n, where in self._proxies.items() if _same(where, host)]
            if proxies:
                return tuple(proxies)
        left = set(range(self.size)) - set(self._hosts) - set(self._proxies)
        if len(left) == 1 and self._one_each():
            return tuple(left)
        return self._by_ordinal(host)

    def _one_each(self) -> bool:
        """Whether each host seems to have one rank."""
        return all(number < self.size for number in self._proxies) and len(
            set(self._hosts.values())
        ) == len(self._hosts)

    def _by_ordinal(self, host: str) -> tuple[int, ...]:
        """`worker-1` has rank 1 where every pair that is known is so."""
        pairs = [*self._hosts.items(), *self._proxies.items()]
        number = _number(host)
        agree = all(_number(where) == rank for rank, where in pairs)
        return (number,) if number is not None and pairs and agree and number < self.size else ()


def _number(host: str) -> int | None:
    found = _ORDINAL.search(host.partition(".")[0])
    return int(found["number"]) if found else None


def _same(one: str, other: str) -> bool:
    return one.partition(".")[0] == other.partition(".")[0]
