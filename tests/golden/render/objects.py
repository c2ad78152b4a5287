"""The objects of a case as YAML that a person can read and check line by line, and their writer.

Everything is there but, where a job has several workers, what a worker shares with the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mpi_trainer.api.yaml import load
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.agent_scripts import version
from mpi_trainer.render.gang.model import GangSettings
from mpi_trainer.render.gang.pod_groups import SCHEDULERS
from mpi_trainer.render.mpijob.children import Children, Facts, children, secret

FOLDER = Path(__file__).parent
CASES = sorted(path.parent for path in FOLDER.glob("*/in.yaml"))
SERVED = frozenset(one.group for one in SCHEDULERS)
UID = "00000000-0000-4000-8000-000000000000"


class Dumper(yaml.SafeDumper):
    """Texts of several lines as block scalars, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


def read(case: Path) -> tuple[MPIJob, str]:
    """The job as an API server would return it, and its cluster's domain."""
    [job] = load.jobs((case / "in.yaml").read_text(), "in.yaml").jobs
    meta = msgspec.structs.replace(job.metadata, namespace=job.namespace or "default", uid=UID)
    domain = case / "cluster-domain"
    given = domain.read_text().strip() if domain.exists() else ""
    return msgspec.structs.replace(job, metadata=meta), given


def made(case: Path) -> Children:
    """As on a cluster with every gang scheduler; the case may name the controller's."""
    job, domain = read(case)
    flag = case / "gang-scheduling"
    gang = GangSettings(flag.read_text().strip() if flag.exists() else "", SERVED)
    return children(layout(job, domain), job, Facts(domain=domain, gang=gang))


def projection(case: Path) -> str:
    job, domain = read(case)
    objects = made(case)
    plan = layout(job, domain)
    shown = [
        *objects.network_policies,
        *(one for one in (objects.pod_group,) if one is not None),
        objects.service,
        objects.config_map,
        secret(plan, job, {key.part: key.part for pod in plan.pods for key in pod.keys}),
        *objects.workers[:1],
        *(_difference(one, objects.workers[0]) for one in objects.workers[1:]),
        objects.launcher_job,
    ]
    return written(shown)


def written(objects: Iterable[Any]) -> str:
    """Without what changes with every change of a script."""
    text = yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=100, allow_unicode=True)
    return str(text).replace(version(), "VERSION")


def _difference(one: Any, other: Any) -> Any:
    """What `one` has otherwise than `other`, level by level."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one
    assert one.keys() == other.keys(), "workers differ in more than their names"
    return {k: _difference(v, other[k]) for k, v in one.items() if v != other[k]}


if __name__ == "__main__":
    for case in CASES:
        (case / "objects.yaml").write_text(projection(case))
