"""What a namespace demands of every container, given to those that say nothing about it. Pure.

A quota on requests or limits refuses pods that do not name them, and Pod Security's "restricted"
level refuses containers without a security context, so a job from a few words would not start
there (W-5). Guarantee: nothing that a job says is changed, and nothing is added where nothing is
demanded or where a LimitRange gives it already. Amounts lie within the LimitRange, and together
within the quota where that can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds.mpijob import LAUNCHER, MPIJob
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.kube import requests
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import LIMIT_RANGES, NAMESPACES, RESOURCE_QUOTAS

replace = msgspec.structs.replace
Object = dict[str, Any]

ENFORCED: Final = "pod-security.kubernetes.io/enforce"
RESTRICTED: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_LAUNCHER: Final = {"cpu": Decimal("0.5"), "memory": Decimal(512 << 20)}
_RANK: Final = {"cpu": Decimal(1), "memory": Decimal(1 << 30)}
_STEP: Final = {"cpu": Decimal("0.01"), "memory": Decimal(1 << 20)}
_LEAST: Final = {"cpu": Decimal("0.1"), "memory": Decimal(128 << 20)}
"""with less than that nothing runs, and the quota's own refusal says more"""
_KINDS: Final = ("requests", "limits")
_PLAIN_SCOPES: Final = frozenset({"NotTerminating"})


class Demands(msgspec.Struct, frozen=True):
    """`counted`: `limits.cpu` and the like → the least of what quotas allow. `given`: what a
    LimitRange fills in. `least` and `most`: by resource, what it allows for a container."""

    quotas: tuple[str, ...] = ()
    counted: Mapping[str, Decimal] = {}
    given: frozenset[str] = frozenset()
    least: Mapping[str, Decimal] = {}
    most: Mapping[str, Decimal] = {}
    restricted: bool = False


class AdjustedJob(msgspec.Struct, frozen=True):
    """The job, and what its user should know of what was added, one line each."""

    job: MPIJob
    notes: tuple[str, ...] = ()


def questions(namespace: str) -> tuple[Request, ...]:
    """Whose answers `demands` reads, in its order; one that is refused counts as empty."""
    return (
        requests.get(NAMESPACES, "", namespace),
        requests.list_page(RESOURCE_QUOTAS, namespace),
        requests.list_page(LIMIT_RANGES, namespace),
    )


def demands(namespace: Object, quotas: Object, limits: Object) -> Demands:
    """From the objects as they are; what is not understood demands nothing."""
    counted: dict[str, Decimal] = {}
    names = []
    for quota in quotas.get("items") or ():
        found = dict(_counted(quota))
        for name, hard in found.items():
            counted[name] = min(hard, counted.get(name, hard))
        if found:
            names.append(str(quota["metadata"]["name"]))
    given, least, most = _limited(limits)
    labels = (namespace.get("metadata") or {}).get("labels") or {}
    restricted = labels.get(ENFORCED) == "restricted"
    return Demands(tuple(names), counted, given, least, most, restricted)


def _counted(quota: Object) -> Iterator[tuple[str, Decimal]]:
    spec = quota.get("spec") or {}
    if not set(spec.get("scopes") or ()) <= _PLAIN_SCOPES or spec.get("scopeSelector"):
        return
    for name, hard in (spec.get("hard") or {}).items():
        full = name if "." in name else f"requests.{name}"
        kind, _, resource = full.partition(".")
        amount = _number(hard)
        if kind in _KINDS and resource in _RANK and amount is not None:
            yield full, amount


def _limited(limits: Object) -> tuple[frozenset[str], dict[str, Decimal], dict[str, Decimal]]:
    """The API server has filled a LimitRange's own defaults in: `default` from `max`, and so on."""
    given: set[str] = set()
    least: dict[str, Decimal] = {}
    most: dict[str, Decimal] = {}
    specs = [one.get("spec") or {} for one in limits.get("items") or ()]
    for item in (item for spec in specs for item in spec.get("limits") or ()):
        if item.get("type") not in ("Container", "Pod"):
            continue
        given |= {f"limits.{name}" for name in item.get("default") or {}}
        given |= {f"requests.{name}" for name in item.get("defaultRequest") or {}}
        for fields, bounds, nearer in (
            (("min", "defaultRequest"), least, max),
            (("max", "default"), most, min),
        ):
            for name, amount in (pair for f in fields for pair in (item.get(f) or {}).items()):
                number = _number(amount)
                if number is not None:
                    bounds[name] = nearer(number, bounds.get(name, number))
    return frozenset(given), least, most


def adjusted(job: MPIJob, asked: Demands) -> AdjustedJob:
    """The job as the namespace takes it."""
    missing = {name: hard for name, hard in asked.counted.items() if name not in asked.given}
    amounts = {role: _amounts(job, role, missing, asked) for role in _roles(job)}
    replicas, told = {}, []
    for role, replica in (job.spec.mpi_replica_specs or {}).items():
        content = replica.template.content
        added: dict[str, str] = {}
        for container in _containers(content):
            added |= _fill(container, missing, amounts.get(role) or {})
            if asked.restricted and not (content.get("spec") or {}).get("securityContext"):
                container.setdefault("securityContext", dict(RESTRICTED))
        if added:
            shown = ", ".join(f"{name} {text}" for name, text in sorted(added.items()))
            told.append(f"{'the launcher' if role == LAUNCHER else 'each worker'} {shown}")
        replicas[role] = replace(replica, template=PodTemplate.of(content))
    made = replace(job, spec=replace(job.spec, mpi_replica_specs=replicas))
    return AdjustedJob(made, _notes(asked, told))


def _notes(asked: Demands, told: Iterable[str]) -> tuple[str, ...]:
    found = "; ".join(told)
    if not found:
        return ()
    names = ", ".join(f"`{name}`" for name in asked.quotas)
    return (f"quota {names} asks every container for resources, so the job gets: {found}",)


def _fill(
    container: Object, missing: Iterable[str], amounts: Mapping[str, Decimal]
) -> dict[str, str]:
    """Sets what is missing; what was set, by resource."""
    given: Object = container.get("resources") or {}
    found = {kind: dict(given.get(kind) or {}) for kind in _KINDS}
    added: dict[str, str] = {}
    for name in missing:
        kind, _, resource = name.partition(".")
        if resource in found[kind] or resource in (given.get("limits") or {}):
            continue  # a request that is not said is the limit
        said = (given.get("requests") or {}).get(resource)
        text = str(said) if said is not None else _text(resource, amounts[resource])
        found[kind][resource] = added[resource] = text
    if added:
        kept = {kind: part for kind, part in found.items() if part}
        container["resources"] = {**given, **kept}
    return added


def _amounts(
    job: MPIJob, role: str, missing: Mapping[str, Decimal], asked: Demands
) -> dict[str, Decimal]:
    """For one container of the role: what it should have, less where the quota is small."""
    found = {}
    for resource, plain in _usual(job, role).items():
        amount = plain
        for name, hard in missing.items():
            if name.partition(".")[2] == resource:
                amount = min(amount, _share(job, role, name, hard))
        amount = min(amount, asked.most.get(resource, amount))
        found[resource] = max(amount, asked.least.get(resource, amount))
    return found


def _share(job: MPIJob, role: str, name: str, hard: Decimal) -> Decimal:
    """What is left for one container of the role after those that say what they need, the rest
    being shared in proportion."""
    kind, _, resource = name.partition(".")
    said = wanted = Decimal(0)
    for one in _roles(job):
        usual = _usual(job, one)[resource] * _pods(job, one)
        for container in _containers(_template(job, one)):
            own = _said(container, kind, resource)
            said += _pods(job, one) * own if own is not None else 0
            wanted += usual if own is None else 0
    usual = _usual(job, role)[resource]
    if not wanted or said + wanted <= hard:
        return usual
    step = _STEP[resource]
    share = (usual * (hard - said) / wanted) // step * step
    return share if share >= _LEAST[resource] else usual


def _usual(job: MPIJob, role: str) -> dict[str, Decimal]:
    ranks = 0 if role == LAUNCHER and not job.spec.run_launcher_as_worker else job.slots
    return {name: amount * ranks for name, amount in _RANK.items()} if ranks else dict(_LAUNCHER)


def _said(container: Object, kind: str, resource: str) -> Decimal | None:
    given = container.get("resources") or {}
    limit = (given.get("limits") or {}).get(resource)
    own = (given.get(kind) or {}).get(resource, limit)
    return None if own is None else _number(own)


def _roles(job: MPIJob) -> tuple[str, ...]:
    return tuple(job.spec.mpi_replica_specs or {})


def _pods(job: MPIJob, role: str) -> int:
    return 1 if role == LAUNCHER else job.workers


def _template(job: MPIJob, role: str) -> Object:
    return (job.spec.mpi_replica_specs or {})[role].template.content


def _containers(template: Object) -> list[Object]:
    spec = template.get("spec") or {}
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _number(text: Any) -> Decimal | None:
    try:
        return quantities.parse(text)
    except ValueError:
        return None


def _text(resource: str, amount: Decimal) -> str:
    write: Callable[[Decimal], str] = (
        quantities.binary_text if resource == "memory" else quantities.decimal_text
    )
    return write(amount)
