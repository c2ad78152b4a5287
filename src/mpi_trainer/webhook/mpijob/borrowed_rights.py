"""What an MPIJob asks beyond the user's own rights, read from the job as it came. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from mpi_trainer.api.errors import Path
from mpi_trainer.render import names
from mpi_trainer.webhook import borrowed_rights
from mpi_trainer.webhook.borrowed_rights import (
    AddedClaims,
    RightClaim,
    SourceTemplate,
    value_at,
)

_ROLES: Path = ("spec", "mpiReplicaSpecs")


def claims(job: object) -> tuple[RightClaim, ...]:
    return borrowed_rights.claims(templates(job), _own_secret(job))


def added_claims(old: object, new: object) -> AddedClaims:
    return borrowed_rights.added_claims(templates(old), templates(new), _own_secret(new))


def templates(job: object) -> tuple[SourceTemplate, ...]:
    """Of whatever came."""
    roles = value_at(job, *_ROLES)
    return tuple(
        SourceTemplate(role, (*_ROLES, role, "template"), value_at(spec, "template"))
        for role, spec in (roles.items() if isinstance(roles, Mapping) else ())
    )


def _own_secret(job: object) -> str:
    return names.secret(str(value_at(job, "metadata", "name") or ""))
