"""What a cloud's machine types have, as the resources of a pod that takes a whole machine.

Of processors and memory a tenth is left to the node's own programs. A table of your own, as
`read` takes it, adds to this one or replaces lines of it. Danger: figures are the vendors' of 2026,
and the name of an accelerator is that of the device plugin on your cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from mpi_trainer.api import quantities
from mpi_trainer.api.errors import INVALID, WRONG_TYPE, FieldError, InvalidJob, Path, kind_of
from mpi_trainer.api.yaml import documents
from mpi_trainer.migrate.report import Object

Instances = Mapping[str, Mapping[str, Any]]

CPU, MEMORY = "cpu", "memory"
_NVIDIA = "nvidia.com/gpu"
_KEPT = 9, 10


def _machines(text: str) -> dict[str, dict[str, Any]]:
    """Lines of: name, processors, GiB, GPUs."""
    found: dict[str, dict[str, Any]] = {}
    for line in text.strip().splitlines():
        name, cpus, memory, gpus = line.split()
        found[name] = {CPU: int(cpus), MEMORY: f"{memory}Gi"}
        if int(gpus):
            found[name][_NVIDIA] = int(gpus)
    return found


INSTANCES: Final[Instances] = _machines("""
ml.m5.large 2 8 0
ml.m5.xlarge 4 16 0
ml.m5.2xlarge 8 32 0
ml.m5.4xlarge 16 64 0
ml.m5.12xlarge 48 192 0
ml.m5.24xlarge 96 384 0
ml.c5.xlarge 4 8 0
ml.c5.2xlarge 8 16 0
ml.c5.4xlarge 16 32 0
ml.c5.9xlarge 36 72 0
ml.c5.18xlarge 72 144 0
ml.c5n.18xlarge 72 192 0
ml.g4dn.xlarge 4 16 1
ml.g4dn.2xlarge 8 32 1
ml.g4dn.12xlarge 48 192 4
ml.g5.xlarge 4 16 1
ml.g5.2xlarge 8 32 1
ml.g5.12xlarge 48 192 4
ml.g5.48xlarge 192 768 8
ml.g6.xlarge 4 16 1
ml.g6.12xlarge 48 192 4
ml.g6.48xlarge 192 768 8
ml.p3.2xlarge 8 61 1
ml.p3.8xlarge 32 244 4
ml.p3.16xlarge 64 488 8
ml.p3dn.24xlarge 96 768 8
ml.p4d.24xlarge 96 1152 8
ml.p4de.24xlarge 96 1152 8
ml.p5.48xlarge 192 2048 8
ml.p5e.48xlarge 192 2048 8
Standard_D4s_v3 4 16 0
Standard_D8s_v3 8 32 0
Standard_D16s_v3 16 64 0
Standard_DS3_v2 4 14 0
Standard_F16s_v2 16 32 0
Standard_HB120rs_v3 120 448 0
Standard_HC44rs 44 352 0
Standard_NC6s_v3 6 112 1
Standard_NC12s_v3 12 224 2
Standard_NC24s_v3 24 448 4
Standard_NC24ads_A100_v4 24 220 1
Standard_NC48ads_A100_v4 48 440 2
Standard_NC96ads_A100_v4 96 880 4
Standard_NC40ads_H100_v5 40 320 1
Standard_NC80adis_H100_v5 80 640 2
Standard_ND40rs_v2 40 672 8
Standard_ND96asr_v4 96 900 8
Standard_ND96amsr_A100_v4 96 1900 8
Standard_ND96isr_H100_v5 96 1900 8
""")


def read(text: str, source: str) -> Instances:
    """A user's table over ours: machine type → resource → amount; InvalidJob says what is wrong."""
    found: dict[str, Mapping[str, Any]] = {}
    for document in documents.parse(text, source):
        for name, resources in document.data.items():
            wrong = [*_errors((name,), resources)]
            if wrong:
                raise InvalidJob(replace(e, position=document.position(e.path)) for e in wrong)
            found[name] = resources
    return {**INSTANCES, **found}


def _errors(path: Path, resources: Any) -> list[FieldError]:
    example = "write for example `{cpu: 8, memory: 64Gi, nvidia.com/gpu: 1}`"
    if not isinstance(resources, Mapping) or not resources:
        rule = f"must be amounts by resource, and is {kind_of(resources)}"
        return [FieldError(path, WRONG_TYPE, rule=rule, remedy=example)]
    found = []
    for name, amount in resources.items():
        try:
            bad = quantities.parse(amount) <= 0
        except (ValueError, TypeError):
            bad = True
        if bad:
            rule = "must be an amount above 0"
            found.append(FieldError((*path, name), INVALID, amount, rule, example))
    return found


def named(kind: str, table: Instances) -> Mapping[str, Any] | None:
    """Azure's own pages write `STANDARD_NC6S_V3` and `Standard_NC6s_v3` for the same machine."""
    if kind in table:
        return table[kind]
    return next((found for name, found in table.items() if name.lower() == kind.lower()), None)


def gpus(machine: Mapping[str, Any]) -> int:
    return sum(int(quantities.parse(n)) for name, n in machine.items() if name not in (CPU, MEMORY))


def resources(machine: Mapping[str, Any]) -> Object:
    """As a container asks for them: what the node's own programs need is left to them."""
    share, whole = _KEPT
    requests: Object = {}
    if CPU in machine:
        requests[CPU] = f"{int(quantities.parse(machine[CPU]) * 1000) * share // whole}m"
    if MEMORY in machine:
        mebi = int(quantities.parse(machine[MEMORY])) // 2**20
        requests[MEMORY] = f"{mebi * share // whole}Mi"
    devices = {name: n for name, n in machine.items() if name not in (CPU, MEMORY)}
    asked: Object = {"requests": requests} if requests else {}
    return {**asked, **({"limits": devices} if devices else {})}
