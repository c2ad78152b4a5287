"""Fields of MPIJobs that no version has: left out, as API servers leave them out, and told.

A name that is nearly one of ours stays an error: somebody meant that one, and a job without it
would be another job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from mpi_trainer.api.errors import UNKNOWN, FieldError, Path
from mpi_trainer.api.kinds.mpijob import RunPolicy
from mpi_trainer.api.yaml.decode import NO_GUESS
from mpi_trainer.migrate.report import LOST, Converted, FieldReport

_POLICIES = frozenset(RunPolicy.__struct_encode_fields__)
_NOTE = "there is no such field, and API servers leave it out"


def left_out(
    convert: Callable[[Mapping[str, Any]], Converted], data: Mapping[str, Any]
) -> Converted:
    """`data` converted, without such fields if there are any."""
    made = convert(data)
    if not made.errors or not all(map(_is_unknown, made.errors)):
        return made
    paths = [one.path for one in made.errors]
    again = convert(_without(data, frozenset(paths), ()))
    if again.errors:
        return replace(made, errors=(*made.errors, *again.errors))
    return replace(again, fields=(*again.fields, *_reports(paths)))


def _is_unknown(error: FieldError) -> bool:
    return error.problem == UNKNOWN and error.remedy.startswith(NO_GUESS)


def _reports(paths: Collection[Path]) -> Iterator[FieldReport]:
    for path in paths:
        policy = path[0] == "spec" and len(path) == 2 and path[-1] in _POLICIES
        remedy = f"write it as spec.runPolicy.{path[-1]}, if it was meant" if policy else ""
        yield FieldReport(path, LOST, note=_NOTE, remedy=remedy)


def _without(value: Any, gone: Collection[Path], path: Path) -> Any:
    """A copy; as deep as a job may be, which was looked at before."""
    if isinstance(value, Mapping):
        return {
            key: _without(item, gone, (*path, key))
            for key, item in value.items()
            if (*path, key) not in gone
        }
    if isinstance(value, list):
        return [_without(item, gone, (*path, n)) for n, item in enumerate(value)]
    return value
