"""MPIJob v1alpha1 as v2beta1. Its workers are derived, so the way back keeps its spec whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mpi_trainer.api.kinds.conditions import CREATED, FAILED, RUNNING, SUCCEEDED
from mpi_trainer.migrate import legacy
from mpi_trainer.migrate.legacy_kinds import V1ALPHA1
from mpi_trainer.migrate.versions.edits import Object

_ENDS: Final = {"Succeeded": SUCCEEDED, "Failed": FAILED, "Active": RUNNING}
_TIMES = ("startTime", "completionTime")


def spec_to_v2beta1(spec: Any) -> Any:
    """As it is where no workers can be derived from it."""
    if not isinstance(spec, Mapping) or "mpiReplicaSpecs" in spec:
        return spec
    made, errors, _ = legacy.from_v1alpha1({"apiVersion": V1ALPHA1, "spec": spec})
    return spec if errors else made


def status_to_v2beta1(status: Any, created: str) -> Any:
    """With conditions: a job that has ended must not be taken for a new one and run again."""
    if not isinstance(status, Mapping) or "conditions" in status:
        return status
    kind = _ENDS.get(str(status.get("launcherStatus")))
    times = {name: status[name] for name in _TIMES if isinstance(status.get(name), str)}
    ended = kind in (SUCCEEDED, FAILED)
    if ended:
        times.setdefault("completionTime", times.get("startTime", created))
    at = times.get("completionTime", created)
    kinds = [CREATED, *([kind] if kind else [])]
    return {**times, "conditions": [_condition(one, at) for one in kinds]}


def status_of_v2beta1(status: Any) -> Any:
    """What a client of v1alpha1 reads, beside everything else."""
    if not isinstance(status, Mapping) or "launcherStatus" in status:
        return status
    held = {
        one.get("type")
        for one in status.get("conditions") or ()
        if isinstance(one, Mapping) and one.get("status") == "True"
    }
    word = next((word for word, kind in _ENDS.items() if kind in held), None)
    return {**status, "launcherStatus": word} if word else status


def _condition(kind: str, at: str) -> Object:
    reason = f"MPIJob{kind}"
    message = "as the operator of v1alpha1 left it"
    times = {"lastTransitionTime": at, "lastUpdateTime": at}
    return {"type": kind, "status": "True", "reason": reason, "message": message, **times}
