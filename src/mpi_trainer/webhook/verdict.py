"""What admission finds by reading an object alone, and what the API server is still to be asked."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from mpi_trainer.api.errors import FieldError
from mpi_trainer.webhook.borrowed_rights import RightClaim
from mpi_trainer.webhook.resource_demand import JobDemand

J = TypeVar("J")


class NeededChecks(msgspec.Struct, frozen=True):
    """Whether the user has a right to the `claims`; whether the quotas have room for `demand`, and
    with `quota_left` whether they have it now; whether the cluster would take the `pods`."""

    claims: tuple[RightClaim, ...] = ()
    demand: JobDemand | None = None
    quota_left: bool = True
    pods: bool = False


class AdmissionVerdict(msgspec.Struct, Generic[J], frozen=True):
    """`job` is None where it cannot be read as a whole, or where nothing is to be asked about it;
    the claims in `needed` are asked all the same. `before`: the job before the change."""

    job: J | None = None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    needed: NeededChecks = NeededChecks()
    before: J | None = None
