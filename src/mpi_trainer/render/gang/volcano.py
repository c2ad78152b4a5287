"""Volcano: an annotation on the pods names their PodGroup, which waits in a queue of Volcano's.

Where nobody names a queue the field is left to Volcano, which fills in that of the namespace.
"""

from __future__ import annotations

from mpi_trainer.render.gang.model import Gang, Marks, Object, Scheduler

ANNOTATION = "scheduling.k8s.io/group-name"
QUEUE = "scheduling.volcano.sh/queue-name"
"""on an MPIJob, or on a runtime's template: the queue, where no field names one"""
NAME = "volcano"


def _spec(gang: Gang) -> Object:
    spec: Object = {"minMember": gang.min_member}
    if gang.min_resources:
        spec["minResources"] = dict(gang.min_resources)
    if gang.queue:
        spec["queue"] = gang.queue
    if gang.priority_class:
        spec["priorityClassName"] = gang.priority_class
    if gang.topology:
        spec["networkTopology"] = dict(gang.topology)
    return spec


def _marks(group: str, _: str) -> Marks:
    return Marks(annotations={ANNOTATION: group}, scheduler=NAME)


SCHEDULER = Scheduler(
    name=NAME,
    install="install Volcano",
    api_version="scheduling.volcano.sh/v1beta1",
    spec=_spec,
    marks=_marks,
    fields=frozenset({"minMember", "minResources", "priorityClassName", "networkTopology"}),
)
