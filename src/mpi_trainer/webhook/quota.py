"""Whether a namespace's quotas have room for a job, by arithmetic over their status. Pure.

More than a hard limit can never run: an error. More than what is left may run later: a warning.
Both say what is asked, what there is, who uses it, and how many workers would fit. A job that is
suspended or queued asks for nothing yet. Danger: the status of a quota lags behind the pods, so
only the hard limit may refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_FLOOR, Decimal

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.errors import FORBIDDEN, FieldError
from mpi_trainer.api.meta import ApiValue, ObjectMeta
from mpi_trainer.api.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.webhook.demand import Demand, demands

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
SHORT = "Not enough left"

_WORKERS = ("spec", "mpiReplicaSpecs", WORKER, "replicas")
_LAUNCHER = ("spec", "mpiReplicaSpecs", LAUNCHER)


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


class Room(msgspec.Struct, frozen=True):
    """One resource of one quota, and what the job asks of it."""

    quota: str
    resource: str
    hard: Decimal
    used: Decimal
    asked: tuple[Demand, ...]

    @property
    def wanted(self) -> Decimal:
        return sum((d.of(self.resource) for d in self.asked), Decimal(0))

    @property
    def left(self) -> Decimal:
        return max(self.hard - self.used, Decimal(0))

    def workers_within(self, limit: Decimal) -> int:
        """How many workers fit beside the launcher; 0 where not even one does."""
        launcher = sum((d.of(self.resource) for d in self.asked if d.role == LAUNCHER), Decimal(0))
        each = next((d.each[self.resource] for d in self.asked if d.role == WORKER), Decimal(0))
        if not each:
            return 0
        return max(int(((limit - launcher) / each).to_integral_value(ROUND_FLOOR)), 0)


def waits(job: MPIJob) -> bool:
    """Whether somebody else decides when the job's pods come."""
    return bool(job.spec.run_policy.suspend) or QUEUE_LABEL in job.metadata.labels


def errors(job: MPIJob, quotas: Iterable[ResourceQuota], users: int) -> tuple[FieldError, ...]:
    """What can never fit. `users` is the number of jobs that hold pods in the namespace."""
    return tuple(_too_much(room, users) for room in _rooms(job, quotas) if room.wanted > room.hard)


def warnings(job: MPIJob, quotas: Iterable[ResourceQuota], users: int) -> tuple[FieldError, ...]:
    """What does not fit now."""
    return tuple(
        _not_now(room, users)
        for room in _rooms(job, quotas)
        if room.left < room.wanted <= room.hard
    )


def _rooms(job: MPIJob, quotas: Iterable[ResourceQuota]) -> Iterator[Room]:
    asked = () if waits(job) else demands(job)
    for quota in quotas:
        counted = tuple(d for d in asked if _in_scope(quota.spec, d))
        for resource, hard in quota.status.hard.items():
            those = tuple(d for d in counted if resource in d.each)
            if those:
                used = quota.status.used.get(resource, "0")
                limits = quantities.parse(hard), quantities.parse(used)
                yield Room(quota.metadata.name, resource, *limits, those)


def _in_scope(spec: QuotaSpec, demand: Demand) -> bool:
    plain = {
        "Terminating": False,
        "NotTerminating": True,
        "BestEffort": demand.best_effort,
        "NotBestEffort": not demand.best_effort,
        "PriorityClass": bool(demand.priority_class),
    }
    selected = all(_matches(one, demand, plain) for one in spec.scope_selector.match_expressions)
    return selected and all(plain.get(scope, False) for scope in spec.scopes)


def _matches(match: ScopeMatch, demand: Demand, plain: Mapping[str, bool]) -> bool:
    if match.scope_name != "PriorityClass" or match.operator == "Exists":
        return plain.get(match.scope_name, False)
    if match.operator == "DoesNotExist":
        return not demand.priority_class
    return (demand.priority_class in match.values) == (match.operator == "In")


def _too_much(room: Room, users: int) -> FieldError:
    fits = room.workers_within(room.hard)
    remedy = (
        f"use at most {_workers(fits)}, ask for less per worker, or have the quota raised"
        if fits
        else "ask for less per pod, or have the quota raised"
    )
    return FieldError(_place(room), FORBIDDEN, rule=_numbers(room, users), remedy=remedy)


def _not_now(room: Room, users: int) -> FieldError:
    fits = room.workers_within(room.left)
    remedy = "the job waits until others end"
    remedy += f"; {_workers(fits)} would fit now" if fits else ""
    return FieldError(_place(room), SHORT, rule=_numbers(room, users), remedy=remedy)


def _place(room: Room) -> tuple[str, ...]:
    return _WORKERS if any(d.role == WORKER for d in room.asked) else _LAUNCHER


def _numbers(room: Room, users: int) -> str:
    """`asks for 16 requests.nvidia.com/gpu (8 workers x 2); quota `gpu` allows 8, …`."""
    name = room.resource
    shares = " + ".join(
        f"{_workers(d.pods)} x {_text(name, d.each[name])}"
        if d.role == WORKER
        else f"launcher {_text(name, d.each[name])}"
        for d in room.asked
        if d.each[name]
    )
    jobs = f"{users} job{'' if users == 1 else 's'}"
    return (
        f"asks for {_text(name, room.wanted)} {name} ({shares}); quota `{room.quota}` allows "
        f"{_text(name, room.hard)}, {_text(name, room.used)} in use by {jobs}, "
        f"{_text(name, room.left)} left"
    )


def _workers(count: int) -> str:
    return f"{count} worker{'' if count == 1 else 's'}"


def _text(resource: str, amount: Decimal) -> str:
    sized = resource.endswith(("memory", "ephemeral-storage"))
    return quantities.binary_text(amount) if sized else quantities.decimal_text(amount)
