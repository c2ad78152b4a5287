"""The objects of a TrainJob as YAML that a person can read, and their writer. As in ../render."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import msgspec

from mpi_trainer.api.yaml import load
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.controller.trainjob.desired import Desired, desired
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.gang.model import GangSettings
from mpi_trainer.render.secrets import Part
from tests.golden.render.objects import SERVED, UID, written

FOLDER = Path(__file__).parent
CASES = sorted(path.parent for path in FOLDER.glob("*/in.yaml"))


def read(case: Path) -> tuple[TrainJob, Runtime]:
    """The job as an API server would return it, and its runtime."""
    found = load.objects((case / "in.yaml").read_text(), "in.yaml")
    ([job], [runtime]) = found.train_jobs, found.runtimes
    meta = msgspec.structs.replace(job.metadata, namespace="default", uid=UID)
    return msgspec.structs.replace(job, metadata=meta), runtime


def made(case: Path) -> Desired:
    return desired(*read(case), Facts(gang=GangSettings(served=SERVED)))


def projection(case: Path) -> str:
    wanted = made(case)
    children = wanted.children
    groups = () if children.gang is None else (children.gang.pod_group,)
    shown = [*children.network_policies, *groups, children.job_set]
    keys, texts = wanted.keys, wanted.children.config_map
    if keys is not None and texts is not None:
        shown += [texts, keys.made({part: part for part in get_args(Part) if part in keys.parts})]
    return written(shown).replace(wanted.rendered, "RENDERED")


if __name__ == "__main__":
    for each in CASES:
        (each / "objects.yaml").write_text(projection(each))
