"""How often the diagnosis is right: python -m bench.diagnose DIR [--renamed [SEEDS]] [--verbose]

DIR holds `*.txt`, outputs of mpirun with a header of `# ` lines, and `labels.json`: for each file
the causes that are accepted (none: nothing failed), and rank and host where they can be known. Of a
header only the exit code and the time are read. A cause is right where it, or a broader one of
which it is a kind, is accepted, or the one that the same words can mean (`instead`); how many were
right in these ways is printed too.

    --renamed      hosts, ranks, process ids and paths under other names, and the lines of
                   different writers interleaved anew; once for each of SEEDS (5)
    --verbose      a line for each file, not only for those that are wrong
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from bench.renamed_logs import renamed
from mpi_trainer.diagnose import cause
from mpi_trainer.diagnose.finding import Facts, Finding
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.diagnose.rules import BOILERPLATE, NOISE, broader


class Sample(msgspec.Struct, frozen=True):
    name: str
    facts: Facts
    text: str
    causes: tuple[str | None, ...]
    rank: int | None
    host: str | None


def sample(path: Path, label: dict[str, Any]) -> Sample:
    header, _, text = path.read_text(errors="replace").partition("\n\n")
    if not header.startswith("# "):
        header, text = "", path.read_text(errors="replace")
    fields = dict(
        line.removeprefix("# ").split(": ", 1) for line in header.splitlines() if ": " in line
    )
    return Sample(
        path.name,
        _facts(fields.get("exit-code", ""), _seconds(fields)),
        text,
        tuple(label["causes"]),
        label.get("rank"),
        label.get("host"),
    )


def _facts(exit_code: str, seconds: float | None) -> Facts:
    first, _, rest = exit_code.partition(" ")
    if first.isdecimal():
        return Facts(exit_code=int(first), seconds=seconds)
    if first == "signal" and rest.isdecimal():
        return Facts(signal=int(rest), seconds=seconds)
    return Facts(ended=first != "none", seconds=seconds)


def _seconds(fields: dict[str, str]) -> float | None:
    told = (value for name, value in fields.items() if name.startswith("time"))
    number = next(told, "").partition(" s")[0]
    return float(number) if number.replace(".", "", 1).isdecimal() else None


def found(one: Sample) -> tuple[Finding, ...]:
    return cause.findings(LogReader().read(one.text.split("\n")), one.facts)


def right_cause(one: Sample, first: Finding | None) -> bool:
    if first is None:
        return not one.causes or None in one.causes
    return bool({*broader(first.cause), first.instead} & set(one.causes))


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.diagnose")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--renamed", type=int, nargs="?", const=5, default=0, metavar="SEEDS")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args(words)
    labels = json.loads((given.folder / "labels.json").read_text())
    samples = [sample(given.folder / name, label) for name, label in sorted(labels.items())]
    if given.renamed:
        samples = [
            msgspec.structs.replace(one, **renamed(one.text, one.rank, one.host, seed))
            for one in samples
            for seed in range(given.renamed)
        ]
    counts: Counter[str] = Counter()
    began = time.perf_counter()
    for one in samples:
        _count(counts, one, verbose=given.verbose)
    print(
        f"{len(samples)} files in {time.perf_counter() - began:.2f} s; "
        f"{counts['broader']} causes right by a broader or an equal one; "
        f"{counts['boilerplate']} lines of boilerplate shown; "
        f"{counts['invented']} causes for runs without a failure"
    )
    print(
        f"cause {counts['cause']}/{len(samples)} rank {counts['rank']}/{counts['ranks']} "
        f"host {counts['host']}/{counts['hosts']}"
    )
    return 0


def _count(counts: Counter[str], one: Sample, *, verbose: bool) -> None:
    findings = found(one)
    first = findings[0] if findings else None
    wrong = []
    if right_cause(one, first):
        counts["cause"] += 1
        counts["broader"] += first is not None and first.cause not in one.causes
    else:
        wrong.append("cause")
        counts["invented"] += not one.causes
    if one.rank is not None:
        counts["ranks"] += 1
        same = first is not None and one.rank in first.ranks
        counts["rank"] += same
        wrong += [] if same else ["rank"]
    if one.host is not None:
        counts["hosts"] += 1
        same = first is not None and one.host in first.hosts
        counts["host"] += same
        wrong += [] if same else ["host"]
    shown = first.line if first is not None else ""
    counts["boilerplate"] += any(text in shown for text in (*BOILERPLATE, *NOISE))
    if wrong or verbose:
        said = "nothing" if first is None else f"{first.cause} ranks {first.ranks} {first.hosts}"
        print(f"{one.name}: {' and '.join(wrong) or 'right'}: {said}: {shown[:120]}")
        if wrong:
            print(f"    expected {one.causes} rank {one.rank} host {one.host}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
