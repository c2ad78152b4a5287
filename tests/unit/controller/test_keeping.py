"""What is in the way of kept children is in the way of new pods only."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from mpi_trainer.controller.children import NameTaken, Predecessor
from mpi_trainer.controller.keeping import Held, Keeping, tried
from mpi_trainer.decide import reasons
from mpi_trainer.kube import errors
from mpi_trainer.kube.errors import Forbidden, KubeError, NotFound, ServerFault, Status
from mpi_trainer.kube.requests import Request

T0 = datetime(2026, 1, 1, tzinfo=UTC)
POST = Request("POST", "/apis/scheduling.volcano.sh/v1beta1/namespaces/lab/podgroups")


def held(
    error: Exception | None, known: Keeping, now: datetime = T0, *, starts: bool = True
) -> Held | None:
    async def act() -> None:
        if error is not None:
            raise error

    return asyncio.run(tried(act(), known, now, starts=starts))


def refusal(code: int, message: str, reason: str = "") -> KubeError:
    return errors.from_status(POST, Status(code=code, reason=reason, message=message))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refusal(403, "exceeded quota: policies"), Forbidden),
        (refusal(404, "no podgroups here"), NotFound),
        (refusal(500, "failed calling webhook"), ServerFault),
    ],
)
def test_a_refusal_is_raised_when_the_rest_of_the_pass_is_done(
    error: KubeError, kind: type[KubeError]
) -> None:
    known = Keeping()
    found = held(error, known)
    assert found is not None
    assert found.rejection is None
    with pytest.raises(kind):
        found.result()


def test_what_the_server_refuses_is_told_until_it_is_taken() -> None:
    known = Keeping()
    held(refusal(403, "exceeded quota: policies"), known)
    assert "exceeded quota: policies" in known.refusal
    assert held(None, known) is None
    assert known.refusal == ""


def test_a_name_that_stays_taken_fails_a_job_without_pods_and_no_other() -> None:
    for starts in (True, False):
        known, now, found = Keeping(), T0, None
        for _ in range(60):
            found = held(Predecessor("still there"), known, now, starts=starts)
            now += timedelta(seconds=30)
        assert found is not None
        rejected = found.rejection is not None
        assert rejected is starts
        assert rejected or (found.result().after or 0.0) > 0


def test_waiting_is_over_with_what_was_waited_for() -> None:
    """Or several short waits in the life of a job would add up to a name that is taken."""
    known, now = Keeping(), T0
    for _ in range(30):
        now += timedelta(hours=1)
        found = held(Predecessor("still there"), known, now)
        assert found is not None
        assert found.rejection is None
        assert held(None, known, now) is None


def test_a_foreign_object_of_the_name_is_a_reason_to_give_up() -> None:
    found = held(NameTaken("PodGroup pi already exists"), Keeping())
    assert found is not None
    assert found.rejection is not None
    assert found.rejection.reason == reasons.NAME_TAKEN
