"""Nothing that anybody sends makes admission fall over (CTL-4).

A few in every run; `MPI_TRAINER_MUTATIONS=10000` for all that were asked for.
"""

from __future__ import annotations

import os

import msgspec
from hypothesis import given, settings

from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob import children as render
from mpi_trainer.webhook import quota, resource_demand, review
from mpi_trainer.webhook.mpijob.judge import judge, mutation
from tests.api.admission.mutations import SOUND, Object, mutated

COUNT = int(os.environ.get("MPI_TRAINER_MUTATIONS", "60"))

QUOTA = quota.ResourceQuota(
    status=quota.QuotaStatus(
        hard={"requests.nvidia.com/gpu": "8", "pods": "4", "limits.memory": "1Gi", "cpu": "1500m"}
    )
)


def asked(new: Object, old: Object | None) -> review.AdmissionRequest:
    request = {
        "uid": "1",
        "kind": {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"},
        "operation": review.CREATE if old is None else review.UPDATE,
        "namespace": "team",
        "object": new,
        "oldObject": old,
    }
    return review.parse(msgspec.json.encode({"request": request}))


def answered(request: review.AdmissionRequest) -> bool:
    """Whether a job is taken, after everything that is done without asking the API server."""
    review.allowed(request, patch=mutation(request, kueue=True))
    verdict = judge(request)
    claims = [claim.refusal("eve") for claim in verdict.needed.claims]
    if verdict.job is None:
        msgspec.json.encode(review.refused(request, verdict.errors, verdict.warnings))
        return False
    wanted = resource_demand.mpijob_demand(verdict.job)
    too_much = quota.errors(wanted, [QUOTA], 1) + quota.warnings(wanted, [QUOTA], 1)
    plan = layout(verdict.job)
    conflicts = render.errors(plan, verdict.job)
    if not conflicts:
        msgspec.json.encode(list(render.children(plan, verdict.job, render.Facts())))
    refusal = review.refused(request, [*claims, *too_much, *conflicts], verdict.warnings)
    msgspec.json.encode(refusal)
    return True


@settings(max_examples=COUNT, derandomize=COUNT < 1000, database=None)
@given(mutated())
def test_every_job_gets_an_answer(data: Object) -> None:
    answered(asked(data, None))
    answered(asked(data, SOUND[0]))
    answered(asked(SOUND[0], data))


def test_the_jobs_to_be_spoilt_are_sound() -> None:
    assert all(answered(asked(data, None)) for data in SOUND)
