"""Labels and annotations that only controllers set on pods and Jobs.

By them pods are found, counted and reached. In a template of a user they would make its pods look
like those of another job, so a job that brings them is refused where somebody reads the refusal,
and they are left out where pods are rendered, whatever was stored before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mpi_trainer.api.errors import FORBIDDEN, FieldError, Path
from mpi_trainer.api.kinds.annotations import DOMAIN

PREFIXES = (f"{DOMAIN}/", "training.kubeflow.org/", "jobset.sigs.k8s.io/", "batch.kubernetes.io/")

_RULE = "only controllers set what begins with"


def free(given: Mapping[str, str], *kept: str) -> dict[str, str]:
    """Those of `given` that users may set, and those that are to be `kept` all the same."""
    return {k: v for k, v in given.items() if k in kept or not k.startswith(PREFIXES)}


def errors(path: Path, given: Mapping[str, str], own: Collection[str] = ()) -> Iterator[FieldError]:
    """`own` are set on every pod, whatever its template says: as with upstream that is no fault."""
    for key, value in given.items():
        if key.startswith(PREFIXES) and key not in own:
            rule = f"{_RULE} {key.partition('/')[0]}/"
            yield FieldError((*path, key), FORBIDDEN, value, rule, "remove it")


def is_error(error: FieldError) -> bool:
    """Whether it is one of `errors`: no reason to stop a job that was taken before the rule."""
    return error.problem == FORBIDDEN and error.rule.startswith(_RULE)
