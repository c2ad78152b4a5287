"""The workers of an MPIJob v1alpha1, which asked for processing units rather than for pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.errors import INVALID, REQUIRED, FieldError, Path
from mpi_trainer.migrate.legacy_kinds import V1Alpha1Spec
from mpi_trainer.migrate.report import CHANGED, FieldReport, Object

GPU: Final = "nvidia.com/gpu"
MASTER: Final = "node-role.kubernetes.io/master"
_ONE_NODE = 1
"""units of a node where neither job nor file says it; the operator's own default"""


class Workers(msgspec.Struct, frozen=True):
    """`units` of the resource in each of `count` pods; `guessed`: by the operator's default."""

    count: int
    units: int
    resource: str
    guessed: bool = False


def workers(spec: V1Alpha1Spec) -> Workers | FieldError:
    resource = {"cpu": "cpu", "gpu": GPU}.get(spec.processing_resource_type or "gpu") or str(
        spec.processing_resource_type
    )
    total = spec.gpus if spec.gpus is not None else spec.processing_units
    if total is None:
        return _counted(spec, resource)
    path: Path = ("spec", "gpus" if spec.gpus is not None else "processingUnits")
    each = spec.gpus_per_node or spec.processing_units_per_node or _ONE_NODE
    guessed = not (spec.gpus_per_node or spec.processing_units_per_node)
    if total < 1 or each < 1:
        return FieldError(path, INVALID, total, "must be 1 or more", "set the units of all workers")
    if total < each:
        return Workers(1, total, resource)
    if total % each:
        rule = f"must be a multiple of the {each} of a node"
        return FieldError(path, INVALID, total, rule, "set it to whole nodes")
    return Workers(total // each, each, resource, guessed)


def _counted(spec: V1Alpha1Spec, resource: str) -> Workers | FieldError:
    if spec.replicas is None:
        rule = "one of gpus, processingUnits and replicas must be set"
        remedy = "set replicas to the number of workers"
        return FieldError(("spec", "replicas"), REQUIRED, rule=rule, remedy=remedy)
    found = spec.template.view.spec.containers
    limits: Mapping[str, Any] = found[0].resources.limits if found else {}
    try:
        units = int(quantities.parse(limits.get(resource, 0)))
    except ValueError:
        units = 0
    return Workers(spec.replicas, units, resource)


def launcher_pod(pod: Object, spec: V1Alpha1Spec) -> Object:
    """Without the workers' units; on a control-plane node where that was asked for."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        for kind in ("limits", "requests"):
            amounts = (container.get("resources") or {}).get(kind) or {}
            for name in [one for one in amounts if one == GPU]:
                del amounts[name]
    if spec.launcher_on_master:
        inside: Object = pod.setdefault("spec", {})
        inside["nodeSelector"] = {**(inside.get("nodeSelector") or {}), MASTER: ""}
        toleration = {"key": MASTER, "operator": "Exists", "effect": "NoSchedule"}
        inside["tolerations"] = [*(inside.get("tolerations") or ()), toleration]
    return pod


def worker_pod(pod: Object, spec: V1Alpha1Spec, wanted: Workers) -> Object:
    """The first container runs an SSH server, and has the units that the job asked for."""
    for container in ((pod.get("spec") or {}).get("containers") or ())[:1]:
        container.pop("command", None)
        container.pop("args", None)
        if wanted.units and (spec.gpus is not None or spec.processing_units is not None):
            resources: Object = container.setdefault("resources", {})
            resources["limits"] = {**(resources.get("limits") or {}), wanted.resource: wanted.units}
    return pod


def reports(given: Mapping[str, Any], wanted: Workers) -> Iterator[FieldReport]:
    to = "spec.mpiReplicaSpecs.Worker"
    words = f"{wanted.count} workers with {wanted.units} of {wanted.resource} each"
    guess = "the operator may have had another number of units per node: compare with an old run"
    for name in ("gpus", "processingUnits"):
        if given.get(name) is not None:
            yield FieldReport(("spec", name), CHANGED, to, words, guess if wanted.guessed else "")
    for name in ("gpusPerNode", "processingUnitsPerNode", "processingResourceType", "replicas"):
        if given.get(name) is not None:
            yield FieldReport(("spec", name), CHANGED, to, words)
    if given.get("launcherOnMaster") is not None:
        note = "a node selector and a toleration of the launcher"
        to = "spec.mpiReplicaSpecs.Launcher.template.spec.nodeSelector"
        yield FieldReport(("spec", "launcherOnMaster"), CHANGED, to, note)
