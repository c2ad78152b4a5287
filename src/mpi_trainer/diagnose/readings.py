"""What one log line says about progress: JSON with well-known keys, or the usual plain forms.

    {"epoch": 3, "epochs": 20, "loss": 0.12}      epoch 3/20 loss 0.1234      [3/20]
    {"global_step": 5, "max_steps": 100}          Epoch [3/20], Step [10/60]  Epoch 3:  45%|███
    {"progress": 0.45, "metrics": {…}}            iteration 10 of 50          step 7, loss=0.3

Guarantee: never raises, looks at a few thousand characters at most, and lines without any of this
cost about a microsecond. Danger: it is a guess; a line that merely looks alike is taken as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

LOOKED_AT = 2048
LONGEST_JSON = 64 * 1024
MOST_METRICS = 64
_LONGEST_NAME = 48

_NUMBER = r"[-+]?(?:\d{1,18}(?:\.\d{1,18})?|\.\d{1,18})(?:[eE][-+]?\d{1,3})?"
_WORD = r"epochs?|(?:global[ _-]?)?steps?|iterations?|iters?|iter\.|batch(?:es)?"
_COUNT = re.compile(
    rf"(?:\b(?P<unit>{_WORD})[\s:=#\[(]{{0,4}}|(?P<bare>\[)\s{{0,3}})"
    r"(?P<step>\d{1,15})\s{0,3}(?:/|of|out of)\s{0,3}(?P<total>\d{1,15})"
    r"(?(bare)\s{0,3}\])(?![\d/])",
    re.IGNORECASE | re.ASCII,
)
_ALONE = re.compile(
    rf"\b(?P<unit>{_WORD})[\s:=#\[]{{1,3}}(?P<step>\d{{1,15}})\b", re.IGNORECASE | re.ASCII
)
_BAR = re.compile(
    r"(?P<percent>\d{1,3})%\|[^|]{0,200}(?:\|\s{0,8}(?P<step>\d{1,15})/(?P<total>\d{1,15}))?"
)
_METRIC = re.compile(
    rf"(?P<name>[A-Za-z_][\w./@-]{{0,47}})(?:\s?[=:]\s{{0,4}}|\s(?=[-+]?\d{{0,18}}\.\d))"
    rf"(?P<value>{_NUMBER})(?![\w:])"
)
_UNITS = {"epoc": "epoch", "step": "step", "iter": "iteration", "batc": "batch", "glob": "step"}
_HINTS = ("/", "%|", " of ", "poch", "tep", "TEP", "POCH", "ter")

# Who counts what, the whole job's counters first: how many are done, how many there are.
_COUNTERS = (
    ("step", ("global_step",), ("max_steps", "total_steps", "num_steps", "steps")),
    ("step", ("step",), ("total_steps", "max_steps", "num_steps", "steps")),
    ("epoch", ("epoch",), ("epochs", "total_epochs", "num_epochs", "max_epochs")),
    (
        "iteration",
        ("iteration", "iter"),
        ("iterations", "total_iterations", "max_iterations", "max_iters", "num_iterations"),
    ),
    ("batch", ("batch",), ("batches", "total_batches", "num_batches")),
)
_WITHIN_EPOCH = (("step", "steps_per_epoch"), ("batch", "batches_per_epoch"), ("batch", "batches"))
_PERCENT = ("progress", "progressPercentage", "progress_percentage", "percent")
_NO_METRIC = frozenset(
    {"time", "timestamp", "ts", "rank", "local_rank", "world_size", "pid", "level", "line"}
    | {key for _, done, totals in _COUNTERS for key in (*done, *totals)}
    | {key for pair in _WITHIN_EPOCH for key in pair}
    | set(_PERCENT)
)


class Reading(msgspec.Struct, frozen=True):
    """One line's word. `within` is how far the unit that is counted has itself come, 0 to 1."""

    step: float | None = None
    total: float | None = None
    unit: str = ""
    within: float | None = None
    metrics: Mapping[str, float] = {}


def read(text: str) -> Reading | None:
    """What the line says, or None; most lines say nothing and cost next to nothing."""
    if text.endswith("}"):
        start = text.find("{")
        if len(text) - start <= LONGEST_JSON:
            found = _from_json(text[start:])
            if found is not None:
                return found
    if "\r" in text:
        text = text[text.rstrip("\r").rfind("\r") + 1 :]
    if len(text) > LOOKED_AT:
        text = text[:LOOKED_AT]
    for hint in _HINTS:
        if hint in text:
            return _from_text(text)
    return None


def _from_text(text: str) -> Reading | None:
    counts = [m for m in _COUNT.finditer(text) if 0 < int(m["total"]) >= int(m["step"])]
    bar = _BAR.search(text)
    if counts and bar is None:
        first = counts[0]
        within = _share(counts[1]) if len(counts) > 1 and _unit(first) == "epoch" else None
        return Reading(
            float(first["step"]), float(first["total"]), _unit(first), within, _metrics(text, first)
        )
    alone = _ALONE.search(text)
    if bar is not None and int(bar["percent"]) <= 100:
        return _from_bar(text, bar, counts, alone)
    if alone is None:
        return None
    metrics = _metrics(text, alone)
    # "step 2" alone may be anything; with a metric behind it, it is training.
    return Reading(float(alone["step"]), None, _unit(alone), None, metrics) if metrics else None


def _from_bar(
    text: str, bar: re.Match[str], counts: list[re.Match[str]], alone: re.Match[str] | None
) -> Reading:
    share = int(bar["percent"]) / 100
    metrics = _metrics(text, bar)
    outer = next((m for m in counts if m.start() < bar.start() and _unit(m)), None)
    if outer is not None:
        return Reading(float(outer["step"]), float(outer["total"]), _unit(outer), share, metrics)
    if alone is not None and alone.start() < bar.start():
        return Reading(float(alone["step"]), None, _unit(alone), share, metrics)
    if bar["total"] and int(bar["total"]):
        return Reading(float(bar["step"]), float(bar["total"]), "", None, metrics)
    return Reading(share * 100, 100.0, "%", None, metrics)


def _unit(match: re.Match[str]) -> str:
    word = match["unit"]
    return _UNITS[word[:4].lower()] if word else ""


def _share(match: re.Match[str]) -> float:
    return int(match["step"]) / int(match["total"])


def _metrics(text: str, after: re.Match[str]) -> dict[str, float]:
    found = {}
    for match in _METRIC.finditer(text, after.end()):
        name = match["name"]
        value = float(match["value"])
        if name.lower() not in _NO_METRIC and math.isfinite(value):
            found[name] = value
    return dict(list(found.items())[:MOST_METRICS])


def _from_json(text: str) -> Reading | None:
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    inner = data.get("metrics")
    inner = inner if isinstance(inner, dict) else {}
    flat = {**inner, **data}
    reading = _counted(flat)
    if reading is None and not inner:
        return None
    metrics = dict(list(_numbers(flat))[:MOST_METRICS])
    if reading is None:
        return Reading(metrics=metrics) if metrics else None
    return msgspec.structs.replace(reading, metrics=metrics)


def _counted(data: Mapping[str, Any]) -> Reading | None:
    best: Reading | None = None
    for unit, names, totals in _COUNTERS:
        step = _first(data, names)
        total = _first(data, totals)
        if total is not None and (total <= 0 or (step is not None and step > total)):
            total = None
        if step is None and total is None:
            continue
        if step is not None and total is not None:
            within = _within(data) if unit == "epoch" else None
            return Reading(step, total, unit, within)
        if best is None or best.step is None:
            best = Reading(step, total, unit)
    share = _percent(data)
    return Reading(share * 100, 100.0, "%") if share is not None else best


def _within(data: Mapping[str, Any]) -> float | None:
    for name, total_name in _WITHIN_EPOCH:
        step, total = _number(data.get(name)), _number(data.get(total_name))
        if step is not None and total and 0 <= step <= total:
            return step / total
    return None


def _percent(data: Mapping[str, Any]) -> float | None:
    for name in _PERCENT:
        value = data.get(name)
        if isinstance(value, str) and value.endswith("%"):
            try:
                value = float(value[:-1]) / 100
            except ValueError:
                continue
        number = _number(value)
        if number is None or number < 0:
            continue
        if name != "progress" or number > 1:
            number /= 100
        if number <= 1:
            return number
    return None


def _first(data: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    for name in names:
        number = _number(data.get(name))
        if number is not None and number >= 0:
            return number
    return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _numbers(data: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in data.items():
        number = _number(value)
        if number is not None and name not in _NO_METRIC and len(name) <= _LONGEST_NAME:
            yield name, number
