"""Whether a namespace's quotas have room for a job, by arithmetic over their status. Pure.

More than a hard limit can never run: an error. More than what is left may run later: a warning.
Both name what is asked, what there is, who uses it, and how many workers or nodes would fit.
Danger: the status of a quota lags behind the pods, so only the hard limit may refuse.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_FLOOR, Decimal

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.errors import FORBIDDEN, FieldError
from mpi_trainer.api.kinds.meta import ApiValue, ObjectMeta
from mpi_trainer.api.quantities import resource_text
from mpi_trainer.webhook.resource_demand import JobDemand, RoleDemand

SHORT = "Not enough left"


class ScopeMatch(ApiValue, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(ApiValue, frozen=True):
    match_expressions: tuple[ScopeMatch, ...] = ()


class QuotaSpec(ApiValue, frozen=True):
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector = ScopeSelector()


class QuotaStatus(ApiValue, frozen=True):
    hard: Mapping[str, str] = {}
    used: Mapping[str, str] = {}


class ResourceQuota(ApiValue, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class QuotaRoom(msgspec.Struct, frozen=True):
    """One resource of one quota, and what a stage of the job asks of it."""

    quota: str
    resource: str
    hard: Decimal
    used: Decimal
    asked: tuple[RoleDemand, ...]
    job: JobDemand

    @property
    def wanted(self) -> Decimal:
        return sum((d.total(self.resource) for d in self.asked), Decimal(0))

    @property
    def left(self) -> Decimal:
        return max(self.hard - self.used, Decimal(0))

    def most(self, limit: Decimal) -> int:
        """How many workers or nodes fit beside the others; 0 where not even one does."""
        beside = sum((d.total(self.resource) for d in self.asked if not d.many), Decimal(0))
        each = next((d.each[self.resource] for d in self.asked if d.many), Decimal(0))
        if not each:
            return 0
        fits = int(((limit - beside) / (each * self.job.each)).to_integral_value(ROUND_FLOOR))
        return fits + self.job.among if fits > 0 else 0


def errors(
    job: JobDemand, quotas: Iterable[ResourceQuota], users: int, *, more: bool = False
) -> tuple[FieldError, ...]:
    """What can never fit. `users` is the number of jobs that hold pods in the namespace; `more`:
    there are more than were counted."""
    return tuple(
        _too_much(room, _jobs(users, more))
        for room in _rooms(job, quotas)
        if room.wanted > room.hard
    )


def warnings(
    job: JobDemand, quotas: Iterable[ResourceQuota], users: int, *, more: bool = False
) -> tuple[FieldError, ...]:
    """What does not fit now."""
    return tuple(
        _not_now(room, _jobs(users, more))
        for room in _rooms(job, quotas)
        if room.left < room.wanted <= room.hard
    )


def _rooms(job: JobDemand, quotas: Iterable[ResourceQuota]) -> Iterator[QuotaRoom]:
    for quota, stage in itertools.product(quotas, job.stages):
        counted = tuple(d for d in stage if _in_scope(quota.spec, d))
        for resource, hard in quota.status.hard.items():
            those = tuple(d for d in counted if resource in d.each)
            if those:
                used = quota.status.used.get(resource, "0")
                limits = quantities.parse(hard), quantities.parse(used)
                yield QuotaRoom(quota.metadata.name, resource, *limits, those, job)


def _in_scope(spec: QuotaSpec, demand: RoleDemand) -> bool:
    plain = {
        "Terminating": False,
        "NotTerminating": True,
        "BestEffort": demand.best_effort,
        "NotBestEffort": not demand.best_effort,
        "PriorityClass": bool(demand.priority_class),
    }
    selected = all(_matches(one, demand, plain) for one in spec.scope_selector.match_expressions)
    return selected and all(plain.get(scope, False) for scope in spec.scopes)


def _matches(match: ScopeMatch, demand: RoleDemand, plain: Mapping[str, bool]) -> bool:
    if match.scope_name != "PriorityClass" or match.operator == "Exists":
        return plain.get(match.scope_name, False)
    if match.operator == "DoesNotExist":
        return not demand.priority_class
    return (demand.priority_class in match.values) == (match.operator == "In")


def _too_much(room: QuotaRoom, jobs: str) -> FieldError:
    fits = room.most(room.hard)
    remedy = (
        f"use at most {room.job.counted(fits)}, ask for less per {room.job.noun}, or have the "
        "quota raised"
        if fits
        else "ask for less per pod, or have the quota raised"
    )
    rule = f"quota exceeded: {_numbers(room, jobs)}"
    return FieldError(_path(room), FORBIDDEN, rule=rule, remedy=remedy)


def _not_now(room: QuotaRoom, jobs: str) -> FieldError:
    fits = room.most(room.left)
    remedy = "the job waits until others end"
    remedy += f"; {room.job.counted(fits)} would fit now" if fits else ""
    return FieldError(_path(room), SHORT, rule=_numbers(room, jobs), remedy=remedy)


def _path(room: QuotaRoom) -> tuple[str | int, ...]:
    return room.job.many if any(d.many for d in room.asked) else room.job.rest


def _jobs(users: int, more: bool) -> str:
    return f"{'at least ' if more else ''}{users} job{'' if users == 1 else 's'}"


def _numbers(room: QuotaRoom, jobs: str) -> str:
    """`asks for 16 requests.nvidia.com/gpu (8 workers x 2); quota `gpu` allows 8, …`."""
    name = room.resource
    shares = " + ".join(_share(room, d) for d in room.asked if d.each[name])
    return (
        f"asks for {resource_text(name, room.wanted)} {name} ({shares}); quota `{room.quota}` "
        f"allows {resource_text(name, room.hard)}, {resource_text(name, room.used)} in use "
        f"by {jobs}, {resource_text(name, room.left)} left"
    )


def _share(room: QuotaRoom, demand: RoleDemand) -> str:
    each = resource_text(room.resource, demand.each[room.resource])
    if demand.many:
        return f"{room.job.counted(demand.pods)} x {each}"
    return f"{demand.role} {each}" if demand.pods == 1 else f"{demand.role} {demand.pods} x {each}"
