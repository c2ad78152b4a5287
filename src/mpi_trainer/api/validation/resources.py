"""Requests and limits (area 1), as the API server will judge them when the pods are made.

Devices such as `nvidia.com/gpu` cannot be shared or overcommitted: whole numbers, and a request
that equals its limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from mpi_trainer.api import names, quantities
from mpi_trainer.api.errors import INVALID, NOT_SUPPORTED, FieldError, Path
from mpi_trainer.api.kinds.pods import Container, PodSpec, Resources
from mpi_trainer.api.validation import rules

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_HUGEPAGES = "hugepages-"
GPUS = ("nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "habana.ai/gaudi")

Amounts = Mapping[str, str | int | float]


def is_device(resource: str) -> bool:
    """Whether it is an extended resource: counted in whole units by a device plugin."""
    return "/" in resource and "kubernetes.io/" not in resource


def gpus(container: Container) -> int:
    """The GPUs of a container; unreadable amounts count as none."""
    return gpus_of(container.resources.requests, container.resources.limits)


def gpus_of(requests: Amounts, limits: Amounts) -> int:
    given = {**requests, **limits}
    amounts = (_number(value) for name, value in given.items() if name.startswith(GPUS))
    return sum(int(amount) for amount in amounts if amount is not None and amount > 0)


def is_tiny(amount: str | int | float) -> bool:
    """Whether an amount of memory is so small that its unit must be a slip."""
    number = _number(amount)
    return number is not None and 0 < number < 1024 * 1024


def errors(path: Path, resources: Resources) -> rules.Errors:
    yield from _amounts((*path, "requests"), resources.requests)
    yield from _amounts((*path, "limits"), resources.limits)
    for resource, value in resources.requests.items():
        where = (*path, "requests", resource)
        request, limit = _number(value), _number(resources.limits.get(resource))
        exact = is_device(resource) or resource.startswith(_HUGEPAGES)
        if resource not in resources.limits:
            if exact:
                rule = f"a request of {resource} needs an equal limit"
                remedy = f"write {resource}: {value} under limits too"
                yield rules.required((*path, "limits", resource), rule, remedy)
        elif request is None or limit is None:
            continue
        elif exact and request != limit:
            rule = f"must equal its limit {resources.limits[resource]}, as devices are not shared"
            yield FieldError(where, INVALID, value, rule, "set both to the same number")
        elif request > limit:
            rule = f"must be at most its limit {resources.limits[resource]}"
            yield FieldError(where, INVALID, value, rule, "lower the request or raise the limit")


def overhead(path: Path, spec: PodSpec) -> rules.Errors:
    """Of the whole pod; quotas count it as well."""
    yield from _amounts((*path, "overhead"), spec.overhead)


def _amounts(path: Path, amounts: Amounts) -> rules.Errors:
    for resource, value in amounts.items():
        where = (*path, resource)
        if "/" in resource:
            yield from rules.name_errors(where, resource, names.qualified(resource))
        elif resource not in _STANDARD and not resource.startswith(_HUGEPAGES):
            rule = "must be cpu, memory, ephemeral-storage, hugepages-<size> or <domain>/<device>"
            remedy = "for GPUs use `nvidia.com/gpu`"
            yield FieldError(where, NOT_SUPPORTED, resource, rule, remedy)
        yield from rules.quantity(where, value)
        number = _number(value)
        if is_device(resource) and number is not None and not quantities.is_whole(number):
            rule = "must be a whole number, as a device cannot be divided"
            yield FieldError(where, INVALID, value, rule, "ask for whole devices")


def _number(value: str | int | float | None) -> Decimal | None:
    if value is None:
        return None
    try:
        return quantities.parse(value)
    except ValueError:
        return None
