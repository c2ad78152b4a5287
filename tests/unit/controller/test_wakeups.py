"""Which changes of what is kept lead to a pass over its job, and which do not."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from mpi_trainer.controller.kept_children import kept_child
from mpi_trainer.controller.objects import KeptChild, StoredJob
from mpi_trainer.controller.wakeups import JobWakeups
from mpi_trainer.kube.resources import MPIJOBS
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.store import Store
from mpi_trainer.runtime.workqueue import WorkQueue

OWNER = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": "u"}
SPEC = {"minMember": 3}


def group(version: str, spec: Any = SPEC, owners: Any = (OWNER,), **more: Any) -> KeptChild:
    held = [{**one, "controller": True} for one in owners]
    meta = {"name": "pi", "namespace": "lab", "uid": "g", "resourceVersion": version}
    whole = {"metadata": {**meta, "ownerReferences": held, **more}, "spec": spec}
    return kept_child(msgspec.json.decode(msgspec.json.encode(whole), type=KeptChild))


def woken(old: KeptChild | None, new: KeptChild | None) -> bool:
    async def run() -> bool:
        queue: WorkQueue[Key] = WorkQueue()
        jobs: Store[StoredJob] = Store()
        JobWakeups(queue, jobs, MPIJOBS).kept_child_changed(old, new)
        return bool(queue.depth(urgent=True) + queue.depth(urgent=False))

    return asyncio.run(run())


def test_what_a_scheduler_writes_of_a_group_s_state_wakes_nobody() -> None:
    """Volcano writes it about once a second for each group that waits."""
    assert not woken(group("1"), group("2"))


def test_what_may_have_to_be_put_right_does() -> None:
    assert woken(None, group("1"))
    assert woken(group("1"), None)
    assert woken(group("1"), group("2", spec={"minMember": 1}))
    assert woken(group("1"), group("2", deletionTimestamp="2026-01-01T00:00:00Z"))


def test_a_job_whose_child_is_taken_from_it_is_looked_at() -> None:
    assert woken(group("1"), group("2", owners=()))
