"""The runtimes that we ship, for TrainJobs that run here: the files that a cluster gets too."""

from __future__ import annotations

from pathlib import Path

from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.yaml import documents
from mpi_trainer.api.yaml.decode import decode

FOLDER = Path(__file__).parents[1] / "runtimes"
_LIST = "kustomization"


def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != _LIST))


def runtime(name: str) -> Runtime | None:
    """The shipped runtime of that name, if there is one."""
    if name not in names():
        return None
    path = FOLDER / f"{name}.yaml"
    (document,) = documents.parse(path.read_text(encoding="utf-8"), path.name)
    return decode(Runtime, document.data).value
