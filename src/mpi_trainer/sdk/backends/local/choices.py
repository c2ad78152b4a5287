"""What a new job of this machine can choose from: runtimes that we ship, and directories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpi_trainer.api.kinds.runtime import CLUSTER, NAMESPACED, Runtime
from mpi_trainer.api.kinds.trainjob import RuntimeRef
from mpi_trainer.api.spelling import nearest
from mpi_trainer.local.execute.settings import CLAIMS
from mpi_trainer.local.jobs import shipped_runtimes
from mpi_trainer.local.paths import claims_dir
from mpi_trainer.sdk.errors import RuntimeNotFound, VolumeNotFound


def runtimes() -> list[Runtime]:
    found = (shipped_runtimes.runtime(name) for name in shipped_runtimes.names())
    return [one for one in found if one is not None]


def runtime(ref: RuntimeRef) -> Runtime:
    found = None if ref.kind == NAMESPACED else shipped_runtimes.runtime(ref.name)
    if found is None:
        known = shipped_runtimes.names()
        meant = nearest(ref.name, known)
        raise RuntimeNotFound(
            f"{ref.kind or CLUSTER} {ref.name} not found on this machine",
            f"Did you mean {meant}?" if meant else f"Use one of {', '.join(known)}.",
        )
    return found


def volume(name: str, namespace: str, claims: Mapping[str, str]) -> dict[str, Any]:
    own = claims_dir() / namespace / name
    if name not in claims and not own.is_dir():
        raise VolumeNotFound(
            f"volume {name} not found: no directory of this machine is given for it",
            f"Give one with {CLAIMS}={name}=/path/to/it, or make {own}.",
        )
    return {"persistentVolumeClaim": {"claimName": name}}
