"""Objects and last words that nobody writes in good faith, by the thousand, from one seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import msgspec

from tests.api.admin import JOBS, Object
from tests.api.running import job
from tests.api.trainjob_lab import TRAIN, mpi_runtime, runtime, train_job

UNITS = (
    *("a", " ", "\n", "\x00", "é", "\U0001f600", "\u2028", "9", "-", '"', "pass", "password='"),
    *("-eyJ", "eyJaaaaaa.", "bearer ", "://a:", "-----BEGIN ", "\x1b[0", "0-9,", "0-999999,"),
    *(
        "host a 0-999999\n",
        "lost 0-99 a\n",
        "[",
        '{"a":',
        '"\\',
        "{}",
        "1e9",
        "$(x)",
        "../",
        "a: &a",
    ),
)
RECORD = "mpi-trainer.opendatahub.io/record"
SMALL, LARGE = 65_536, 1_200_000


def text(dice: random.Random, most: int = SMALL) -> str:
    unit = "".join(dice.choices(UNITS, k=dice.randint(1, 3)))
    size = int(most ** dice.random()) + 1
    return (unit * (size // len(unit) + 1))[:size]


def nested(dice: random.Random) -> msgspec.Raw:
    levels = dice.choice((50, 99, 101, 300, 980, 1100, 3000, 9000))
    begin, end = dice.choice(((b'{"a":', b"}"), (b"[", b"]")))
    return msgspec.Raw(begin * levels + b"1" + end * levels)


VALUES: tuple[Callable[[random.Random], Any], ...] = (
    text,
    text,
    nested,
    lambda dice: dice.choice((0, -1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 1e308, 0.1)),
    lambda dice: dice.choice((None, True, [], {}, "", [[]], {"": ""})),
    lambda dice: [{}] * dice.randint(1, 3000),
    lambda dice: [text(dice, 100) for _ in range(dice.randint(1, 500))],
    lambda dice: {text(dice, 60): text(dice, 200) for _ in range(dice.randint(1, 300))},
    lambda dice: {f"k{n}": n for n in range(dice.randint(1, 3000))},
    lambda dice: "y" * LARGE if dice.random() < 0.1 else "y" * 300_000,
)


def thing(number: int, seed: int) -> tuple[str, bytes]:
    """Where it is to be created, and its bytes."""
    dice = random.Random(f"{seed}-{number}")
    name = f"h{number}"
    kind = dice.choices(("mpijobs", "trainjobs", "trainingruntimes"), (6, 3, 1))[0]
    if kind == "mpijobs":
        path, made = f"{JOBS}/{kind}", job(dice.randint(0, 2), name, suspend=dice.random() < 0.8)
    elif kind == "trainjobs":
        ref = dice.choice(("mpi", "torch", "plain", f"h{number - 7}"))
        path, made = f"{TRAIN}/{kind}", train_job(name, ref, suspend=dice.random() < 0.8)
    else:
        base = dice.choice((mpi_runtime(name), runtime(name, {"torch": {}}), runtime(name, {})))
        path, made = f"{TRAIN}/{kind}", base
    made = copy.deepcopy(made)
    for _ in range(dice.randint(1, 3)):
        _spoil(dice, made)
    if dice.random() < 0.2:
        made["metadata"]["annotations"] = {RECORD: text(dice, 100_000)}
    return path, _encoded(made)


def words(number: int, seed: int) -> str:
    """A container's last words."""
    dice = random.Random(f"{seed}-words-{number}")
    size = SMALL if dice.random() < 0.02 else 4096
    if dice.random() < 0.5:
        return text(dice, size)
    lines = [f"{dice.choice(('host', 'lost', 'open', 'bad', 'raised', 'world', 'cause'))} "]
    lines += [f"{text(dice, 40)} {text(dice, 300)}" for _ in range(dice.randint(1, 30))]
    return ("mpi-agent 1\nlevel full\nended Command 0\n" + "\n".join(lines))[:size]


def _spoil(dice: random.Random, made: Object) -> None:
    """Puts something into some place below the spec.

    Mostly under a name that nobody knows, deep in a pod's template, where the definitions keep what
    they are given: elsewhere the API server refuses it by itself, and nothing of ours meets it.
    """
    place: Any = made["spec"]
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        inner = [k for k in keys if isinstance(place[k], dict | list) and place[k]]
        if not inner or dice.random() < 0.08:
            break
        place = place[dice.choice(inner)]
    value = dice.choice(VALUES)(dice)
    if isinstance(place, list):
        place.append(value)
    elif place and dice.random() < 0.25:
        place[dice.choice(list(place))] = value
    else:
        place[dice.choice(("x", "env", "args", text(dice, 40)))] = value


def _encoded(made: Object) -> bytes:
    try:
        return msgspec.json.encode(made)
    except (UnicodeEncodeError, OverflowError):
        return b"{}"
