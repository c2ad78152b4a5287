"""The catalogue of causes and the rules that find them, one module for each family. Pure.

Adding one: a `Cause` and its rules in the module of its family; `python -m tools.causedocs` writes
docs/troubleshooting.md anew.
"""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules import (
    applications,
    data,
    ends,
    frameworks,
    gpus,
    hydra,
    kubernetes,
    libraries,
    machine,
    mpirun_options,
    openmpi,
    programs,
    sources,
    ssh,
)
from mpi_trainer.diagnose.rules.model import Cause, Detail, Rule

FAMILIES: Final = {
    "The program": (programs, applications, data, libraries),
    "GPUs and frameworks": (gpus, frameworks),
    "Memory, disks and limits": (machine,),
    "Data sources and licences": (sources,),
    "SSH and names": (ssh,),
    "MPI": (mpirun_options, openmpi, hydra),
    "How ranks and mpirun end": (ends,),
    "Kubernetes": (kubernetes,),
}
_MODULES = tuple(module for modules in FAMILIES.values() for module in modules)

CATALOGUE: Final[dict[str, Cause]] = {c.name: c for m in _MODULES for c in m.CAUSES}
RULES: Final[tuple[Rule, ...]] = tuple(r for m in _MODULES for r in m.RULES)
DETAILS: Final[tuple[Detail, ...]] = tuple(d for m in _MODULES for d in m.DETAILS)
BOILERPLATE: Final[tuple[str, ...]] = tuple(t for m in _MODULES for t in m.BOILERPLATE)
"""Texts that say that something failed and never what: no finding shows such a line."""
NOISE: Final[tuple[str, ...]] = tuple(t for m in _MODULES for t in m.NOISE)
"""Texts that no rule sees."""


def broader(name: str) -> frozenset[str]:
    """The cause itself and all of which it is a kind."""
    found = CATALOGUE.get(name)
    return frozenset({name, *(found.broader if found is not None else ())})
