"""What a job's pods ask of a namespace, counted as ResourceQuota counts it. Pure.

A pod asks for the larger of what its containers need together and what any init container needs
beside the sidecars started before it, plus its overhead. A request that is not written equals its
limit, as the API server has it. What a LimitRange would add is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds.pods import Container, PodSpec

Amounts = Mapping[str, Decimal]

_BARE = ("cpu", "memory", "ephemeral-storage")


class Demand(msgspec.Struct, frozen=True):
    """One role: how many pods, what each asks for, and what scopes look at.

    `many`: the role of which the user says how many there are.
    """

    role: str
    pods: int
    many: bool
    each: Amounts
    best_effort: bool
    priority_class: str

    def of(self, resource: str) -> Decimal:
        return self.each.get(resource, Decimal(0)) * self.pods


def demand(role: str, pods: int, spec: PodSpec, *, many: bool) -> Demand:
    """Amounts are under every name that a quota may use for them."""
    requests, limits = _whole(spec, _requests), _whole(spec, _limits)
    each: dict[str, Decimal] = {"pods": Decimal(1), "count/pods": Decimal(1)}
    for resource, amount in requests.items():
        each[f"requests.{resource}"] = amount
        if resource in _BARE:
            each[resource] = amount
    for resource, amount in limits.items():
        each[f"limits.{resource}"] = amount
    compute = {"cpu", "memory"}
    best_effort = not compute & (requests.keys() | limits.keys())
    return Demand(role, pods, many, each, best_effort, spec.priority_class_name)


def _requests(container: Container) -> Amounts:
    return _read({**container.resources.limits, **container.resources.requests})


def _limits(container: Container) -> Amounts:
    return _read(container.resources.limits)


def _whole(spec: PodSpec, part: Callable[[Container], Amounts]) -> Amounts:
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            sidecars = _sum((sidecars, part(container)))
            peak = _largest(peak, sidecars)
        else:
            peak = _largest(peak, _sum((sidecars, part(container))))
    running = _sum((sidecars, *(part(c) for c in spec.containers)))
    return _sum((_largest(peak, running), _read(spec.overhead)))


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: dict[str, Decimal] = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, Decimal(0)) + amount
    return total


def _largest(one: Amounts, other: Amounts) -> Amounts:
    zero = Decimal(0)
    return {name: max(one.get(name, zero), other.get(name, zero)) for name in {**one, **other}}


def _read(amounts: Mapping[str, str | int | float]) -> Amounts:
    return {name: quantities.parse(value) for name, value in amounts.items()}
