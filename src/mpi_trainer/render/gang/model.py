"""A gang: pods that are placed all at once or not at all, and what a gang scheduler makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Object = dict[str, Any]


class GangSettings(msgspec.Struct, frozen=True):
    """What an administrator and the cluster say. `scheduler`: of MPIJobs, "" for none. `served`:
    the API groups whose PodGroups the cluster knows. `timeout`: the default wait of jobs, in
    seconds, which no job has asked for."""

    scheduler: str = ""
    served: frozenset[str] = frozenset()
    timeout: int = 0


class Gang(msgspec.Struct, frozen=True):
    """`min_member` pods, which together need `min_resources`, are bound at once or none is."""

    min_member: int
    min_resources: Mapping[str, str] = {}
    queue: str = ""
    priority_class: str = ""
    timeout: int | None = None
    topology: Mapping[str, str | int] = {}


class Marks(msgspec.Struct, frozen=True):
    """What puts a pod into its gang; `scheduler` "" leaves the template's."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    scheduler: str = ""

    def on(self, pod: Object) -> Object:
        """The pod, or pod template, with these marks; they win."""
        given: Object = pod.get("metadata") or {}
        metadata = {**given}
        for field, own in (("labels", self.labels), ("annotations", self.annotations)):
            if own:
                metadata[field] = {**(given.get(field) or {}), **own}
        spec = {**(pod.get("spec") or {})}
        if self.scheduler:
            spec["schedulerName"] = self.scheduler
        return {**pod, "metadata": metadata, "spec": spec}


class Scheduler(msgspec.Struct, frozen=True):
    """One gang scheduler. `spec` writes its PodGroup's; `marks` takes the group's name and the
    scheduler's; `fields` are those of the spec that are ours alone."""

    name: str
    install: str
    api_version: str
    spec: Callable[[Gang], Object]
    marks: Callable[[str, str], Marks]
    fields: frozenset[str]

    @property
    def group(self) -> str:
        return self.api_version.partition("/")[0]

    @property
    def unserved(self) -> str:
        """What is said where its PodGroups are asked for and unknown."""
        return (
            f"the cluster has no podgroups.{self.group}, so the job's pods are scheduled one by one"
        )


class PlannedGang(msgspec.Struct, frozen=True):
    """A job's PodGroup, and what its pods carry."""

    scheduler: Scheduler
    pod_group: Object
    marks: Marks
