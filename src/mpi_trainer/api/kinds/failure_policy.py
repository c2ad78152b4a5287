"""`podFailurePolicy` of an MPIJob, by annotation: which failures end it, and which cost nothing.

The value is that of a batch Job's `spec.podFailurePolicy`, as JSON. The first rule that fits
decides: `FailJob` ends the MPIJob, `Ignore` starts another attempt outside of the budget, `Count`
is as without a rule. What is looked at is the pod whose failure ended the attempt: the exit code of
its main container, or that the cluster took it away. Danger: `Ignore` has no end of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from mpi_trainer.api.errors import INVALID, FieldError, Path
from mpi_trainer.api.kinds.pod_status import DISRUPTION_TARGET
from mpi_trainer.api.yaml import typed

FAIL_JOB: Final = "FailJob"
IGNORE: Final = "Ignore"
COUNT: Final = "Count"
LONGEST: Final = 4096
_MOST_RULES: Final = 20
_MOST_CODES: Final = 255
_EXAMPLE: Final = (
    'write for example `{"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", '
    '"values": [42]}}]}`'
)

Action = Literal["FailJob", "Ignore", "Count"]


class OnExitCodes(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    operator: Literal["In", "NotIn"]
    values: tuple[int, ...]

    def fits(self, code: int | None) -> bool:
        return bool(code) and (code in self.values) == (self.operator == "In")


class OnPodCondition(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    type: str
    status: str = "True"


class FailureRule(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    action: Action
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ()


class FailurePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: tuple[FailureRule, ...] = ()

    def action(self, code: int | None, disrupted: bool) -> Action:
        for rule in self.rules:
            if rule.on_exit_codes is not None and rule.on_exit_codes.fits(code):
                return rule.action
            if rule.on_pod_conditions and disrupted:
                return rule.action
        return COUNT


NONE: Final = FailurePolicy()


def read(text: str) -> FailurePolicy:
    """What an annotation says; nothing where it cannot be read, since a job must go on then."""
    try:
        return _parsed(text)
    except ValueError:
        return NONE


def errors(path: Path, text: str) -> Iterator[FieldError]:
    try:
        _parsed(text)
    except ValueError as error:
        rule = f"must be a podFailurePolicy as JSON: {error}"
        yield FieldError(path, INVALID, rule=rule, remedy=_EXAMPLE)


def _parsed(text: str) -> FailurePolicy:
    if not text:
        return NONE
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters")
    policy = typed.decode(text, FailurePolicy)
    if len(policy.rules) > _MOST_RULES:
        raise ValueError(f"it has more than {_MOST_RULES} rules")
    for n, rule in enumerate(policy.rules):
        codes, conditions = rule.on_exit_codes, rule.on_pod_conditions
        if (codes is None) == (not conditions):
            raise ValueError(f"rules[{n}] needs either onExitCodes or onPodConditions")
        if codes is not None and not 0 < len(codes.values) <= _MOST_CODES:
            raise ValueError(f"rules[{n}].onExitCodes.values needs 1 to {_MOST_CODES} exit codes")
        if codes is not None and codes.operator == "In" and 0 in codes.values:
            raise ValueError(f"rules[{n}].onExitCodes.values: 0 is no failure")
        if any((c.type, c.status) != (DISRUPTION_TARGET, "True") for c in conditions):
            raise ValueError(f"rules[{n}].onPodConditions: only {DISRUPTION_TARGET} is served")
    return policy
