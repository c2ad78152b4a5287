"""The names and variables of MPI implementations stay where they belong, in `layout/mpi`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mpi_trainer
from mpi_trainer.api.kinds.runtime import MPI
from mpi_trainer.api.validation.compatibility import RESERVED
from mpi_trainer.layout.mpi import REGISTRY, MpiSettings

ROOT = Path(mpi_trainer.__file__).parent
Literals = frozenset[tuple[str, str]]

OWN = ROOT / "layout" / "mpi"

# The API's default and enum, those of its older versions, and what can be installed.
MAY_NAME_THEM = {
    "api/kinds/mpijob.py",
    "local/mpi/distributions.py",
    "migrate/legacy.py",
}


def _strings() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        if OWN in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.relative_to(ROOT).as_posix(), node.value


@pytest.fixture(scope="module")
def strings() -> Literals:
    """Every string literal outside `layout/mpi`, with the file that it is in."""
    return frozenset(_strings())


def test_no_other_code_names_an_implementation(strings: Literals) -> None:
    names = {impl.name.lower() for impl in REGISTRY}
    found = {file for file, text in strings if text.lower() in names}
    assert found == MAY_NAME_THEM


def test_no_other_code_names_a_variable_of_an_implementation(strings: Literals) -> None:
    settings = MpiSettings(hostfile="h", slots=1, ssh_args="s")
    names = {
        name
        for impl in REGISTRY
        for pairs in (impl.launcher_env(settings), impl.shared_machine_env("eth0"))
        for name, _ in pairs
    }
    # A TrainJob's own variables are refused by name, as upstream does it.
    reserved = {("api/validation/compatibility.py", name) for name in RESERVED[MPI]}
    assert {(file, text) for file, text in strings if text in names} == reserved
