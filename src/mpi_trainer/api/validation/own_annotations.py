"""The annotations of ours on a job (areas 4 and 10): known names, valid values.

Danger: these errors are for whoever writes a job. A controller must not refuse a job for them:
another version may know the annotation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mpi_trainer.api.errors import INVALID, UNKNOWN, FieldError, Path
from mpi_trainer.api.kinds import failure_policy, network_isolation
from mpi_trainer.api.kinds.annotations import (
    BOUNDS,
    CHOICES,
    CLEAN,
    CLEAN_CHOICES,
    DOMAIN,
    LONGEST_SECONDS,
    MPIJOB_KNOWN,
    NETWORK_EGRESS,
    POD_FAILURE_POLICY,
    SCHEDULE_TIMEOUT,
    TTL,
    bound,
    ours,
    seconds,
)
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.validation import rules

PATH: Path = ("metadata", "annotations")

_SECONDS = frozenset({SCHEDULE_TIMEOUT, *(bound(name) for name in BOUNDS)})


def errors(given: Mapping[str, str], known: Sequence[str] = MPIJOB_KNOWN) -> rules.Errors:
    """`known`: the names that this kind of job may carry."""
    for key, value in ours(given).items():
        where = (*PATH, key)
        if key not in known:
            yield _unknown(where, key, known)
        elif key in CHOICES:
            yield from rules.one_of(where, value, CHOICES[key])
        elif key == CLEAN:
            yield from rules.one_of(where, value, CLEAN_CHOICES)
        elif key == POD_FAILURE_POLICY:
            yield from failure_policy.errors(where, value)
        elif key == NETWORK_EGRESS:
            yield from _egress(where, value)
        elif key == TTL and not (value.isascii() and value.isdecimal()):
            rule = "must be whole seconds"
            yield FieldError(where, INVALID, value, rule, 'write for example `"3600"`')
        elif key in _SECONDS and seconds(value) is None:
            rule = f"must be whole seconds, from 0 to {LONGEST_SECONDS}"
            yield FieldError(where, INVALID, value, rule, 'write for example `"120"`')


def _egress(path: Path, value: str) -> rules.Errors:
    wrong = "" if value in network_isolation.EGRESS_WORDS else network_isolation.ranges(value)[1]
    if wrong:
        remedy = 'write for example `"none"` or `"10.0.0.0/8,192.168.0.0/16"`'
        yield FieldError(path, INVALID, value, wrong, remedy)


def _unknown(path: Path, key: str, known: Sequence[str]) -> FieldError:
    names = [name.removeprefix(f"{DOMAIN}/") for name in known]
    meant = nearest(key.removeprefix(f"{DOMAIN}/"), names)
    remedy = f"did you mean `{DOMAIN}/{meant}`?" if meant else f"known are {', '.join(names)}"
    return FieldError(path, UNKNOWN, rule=f"{DOMAIN} has no such annotation", remedy=remedy)
