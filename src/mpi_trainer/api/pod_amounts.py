"""What a pod asks of its node, as the scheduler and ResourceQuota count it.

The larger of what its containers need together and what any init container needs beside the
sidecars started before it, plus its overhead. A request that is not written equals its limit, as
the API server has it. What a LimitRange or a RuntimeClass would add is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds.pods import Container, PodSpec

Amounts = Mapping[str, Decimal]


def parsed(amounts: Mapping[str, str | int | float]) -> Amounts:
    return {name: quantities.parse(value) for name, value in amounts.items()}


def requests(spec: PodSpec) -> Amounts:
    return _of_pod(spec, _requests)


def limits(spec: PodSpec) -> Amounts:
    return _of_pod(spec, _limits)


def summed(parts: Iterable[Amounts]) -> Amounts:
    total: dict[str, Decimal] = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, Decimal(0)) + amount
    return total


def times(amounts: Amounts, count: int) -> Amounts:
    return {name: amount * count for name, amount in amounts.items()}


def _requests(container: Container) -> Amounts:
    return parsed({**container.resources.limits, **container.resources.requests})


def _limits(container: Container) -> Amounts:
    return parsed(container.resources.limits)


def _of_pod(spec: PodSpec, part: Callable[[Container], Amounts]) -> Amounts:
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            sidecars = summed((sidecars, part(container)))
            peak = _largest(peak, sidecars)
        else:
            peak = _largest(peak, summed((sidecars, part(container))))
    running = summed((sidecars, *(part(c) for c in spec.containers)))
    return summed((_largest(peak, running), parsed(spec.overhead)))


def _largest(one: Amounts, other: Amounts) -> Amounts:
    zero = Decimal(0)
    return {name: max(one.get(name, zero), other.get(name, zero)) for name in {**one, **other}}
