"""ETags: what they stand for, and what they allow."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mpi_trainer.sdk.backends.backend import JobCounts, JobTimes, JobView, Key
from mpi_trainer.server.problems import Refused
from mpi_trainer.server.versions import check_match, etag, unchanged

JOB = JobView(
    "MPIJob", Key("a", "b"), "Running", JobCounts(), JobTimes(), {"metadata": {"uid": "1"}}
)
OTHER = replace(JOB, manifest={"metadata": {"uid": "1"}, "status": {"x": 1}})


def test_an_etag_changes_with_anything_in_the_job() -> None:
    assert etag(JOB) == etag(replace(JOB, manifest={"metadata": {"uid": "1"}})) != etag(OTHER)
    assert etag(JOB).startswith('"') and etag(JOB).endswith('"')


@pytest.mark.parametrize("header", [etag(JOB), f'"x", {etag(JOB)}', "*", f"W/{etag(JOB)}"])
def test_who_has_the_job_as_it_is_gets_it_not_again(header: str) -> None:
    assert unchanged(JOB, header) and (header == "*" or not unchanged(OTHER, header))
    assert not unchanged(JOB, "")


@pytest.mark.parametrize("header", ["", etag(JOB), f"{etag(OTHER)} , {etag(JOB)}", "*"])
def test_a_change_of_what_was_seen_is_allowed(header: str) -> None:
    check_match(JOB, header)


@pytest.mark.parametrize("header", [etag(OTHER), "x", f"W/{etag(JOB)}", ","])
def test_a_change_of_what_was_not_seen_is_refused(header: str) -> None:
    with pytest.raises(Refused, match="job a/b has changed since you read it") as caught:
        check_match(JOB, header)
    assert caught.value.problem.status == 412
