"""Coscheduling of kubernetes-sigs/scheduler-plugins: a label on the pods names their PodGroup.

Danger: a timeout of 0 is none at all, and the scheduler would give up each gang as it begins to
wait; so 0 is never written, and the scheduler's own default holds.
"""

from __future__ import annotations

from mpi_trainer.render.gang.model import Gang, Marks, Object, Scheduler

LABEL = "scheduling.x-k8s.io/pod-group"


def _spec(gang: Gang) -> Object:
    spec: Object = {"minMember": gang.min_member}
    if gang.min_resources:
        spec["minResources"] = dict(gang.min_resources)
    if gang.timeout:
        spec["scheduleTimeoutSeconds"] = gang.timeout
    return spec


def _marks(group: str, scheduler: str) -> Marks:
    return Marks(labels={LABEL: group}, scheduler=scheduler)


SCHEDULER = Scheduler(
    name="coscheduling",
    install="install scheduler-plugins with its coscheduling plugin",
    api_version="scheduling.x-k8s.io/v1alpha1",
    spec=_spec,
    marks=_marks,
    fields=frozenset({"minMember", "minResources", "scheduleTimeoutSeconds"}),
)
