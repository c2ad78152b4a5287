"""What Kueue writes into an MPIJob as it admits it, and how the job was before. Pure.

Node selectors, tolerations and scheduling gates of the chosen flavor go into the pod templates,
with labels and annotations of Kueue's own. A job that is made anew must not have them: it would be
bound to the nodes of the old admission. The Workload still has the templates as the user wrote
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER

PREFIX: Final = "kueue.x-k8s.io/"
POD_SETS: Final = {LAUNCHER: "launcher", WORKER: "worker"}
"""what Kueue calls the pods of each role"""
_WRITTEN: Final = {
    "metadata": ("labels", "annotations"),
    "spec": ("nodeSelector", "tolerations", "schedulingGates"),
}

Object = dict[str, Any]


def without_admission(
    spec: Mapping[str, Any],
    before: Mapping[str, Mapping[str, Any]],
    stored: Mapping[str, Any] | None = None,
) -> Object:
    """An MPIJob's spec as its user wrote it.

    `before`: templates by the names of their pod sets, as the Workload has them; where one is
    missing, only what is marked as Kueue's goes. `stored`: the spec that Kueue wrote into, where
    `spec` is a copy of it with changes, which stay.
    """
    made = deepcopy(dict(spec))
    for role, replica in (made.get("mpiReplicaSpecs") or {}).items():
        template, old = replica.get("template"), _template(stored or spec, role)
        if isinstance(template, dict):
            _restore(template, old, before.get(POD_SETS.get(role, "")))
    return made


def _template(spec: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    found = ((spec.get("mpiReplicaSpecs") or {}).get(role) or {}).get("template")
    return found if isinstance(found, Mapping) else {}


def _restore(template: Object, stored: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
    for part, fields in _WRITTEN.items():
        place: Object = template.get(part) or {}
        for field in fields:
            given = place.get(field)
            if not given or given != (stored.get(part) or {}).get(field):
                continue
            if part == "metadata":
                place[field] = {k: v for k, v in given.items() if not k.startswith(PREFIX)}
            elif before is not None:
                place[field] = deepcopy((before.get("spec") or {}).get(field))
            if not place[field]:
                del place[field]
