"""Reports of training programs: what is one, how it is stored, and how often."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mpi_trainer.api.kinds.annotations import TRACKING, TRAINER_STATUS
from mpi_trainer.controller.objects import Answer
from mpi_trainer.controller.statusserver import writes
from mpi_trainer.controller.statusserver.report import (
    BadReport,
    Report,
    annotation_patch,
    read,
    status_patch,
)
from mpi_trainer.controller.statusserver.writes import OtherJob, ReportWrites
from mpi_trainer.runtime.partial import Key, Meta
from mpi_trainer.runtime.token_reviews import Busy

KEY = Key("team", "pi")


def said(percent: int = 1, **more: Any) -> bytes:
    status = {"progressPercentage": percent, "lastUpdatedTime": "2026-11-17T12:00:00Z", **more}
    return json.dumps({"trainerStatus": status}).encode()


def report(percent: int = 1, **more: Any) -> Report:
    found = read(said(percent, **more))
    assert found is not None
    return found


def test_unknown_fields_are_left_out_and_an_empty_report_says_nothing() -> None:
    """As upstream."""
    assert read(b"{}") is None
    assert read(b'{"trainerStatus": null, "more": [1]}') is None
    assert report(1, more=3) == report(1)


@pytest.mark.parametrize("year", ["0001", "1969", "9999"])
def test_a_time_that_is_none_of_a_program_is_refused(year: str) -> None:
    with pytest.raises(BadReport, match="lastUpdatedTime"):
        read(said(lastUpdatedTime=f"{year}-01-01T00:00:00Z"))


def test_a_report_replaces_all_that_the_one_before_said() -> None:
    patch = status_patch(report(7), "12")
    assert patch["metadata"] == {"resourceVersion": "12"}
    assert patch["status"]["trainerStatus"] == {
        "progressPercentage": 7,
        "estimatedRemainingSeconds": None,
        "metrics": None,
        "lastUpdatedTime": "2026-11-17T12:00:00Z",
    }


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "less than a minute"),
        (60, "1 minute"),
        (3 * 3600 + 120, "3 hours 2 minutes"),
        (2 * 86400 + 3600 + 120, "2 days 1 hour"),
    ],
)
def test_openshift_ai_is_told_in_words_how_long_it_takes(seconds: int, words: str) -> None:
    made = annotation_patch(report(estimatedRemainingSeconds=seconds), "uid")
    told = json.loads(made["metadata"]["annotations"][TRAINER_STATUS])
    assert told["estimatedRemainingTimeSummary"] == words


class Server:
    """An API server that only writes down what it is sent, of any job of this uid."""

    uid = "uid"

    def __init__(self, annotations: dict[str, str]) -> None:
        self.annotations = annotations
        self.sent: list[Any] = []

    async def call(self, request: Any, _: Any) -> Answer:
        if request.method != "GET":
            self.sent.append(json.loads(request.body))
        return Answer(metadata=Meta(uid=self.uid, annotations=self.annotations))

    @property
    def told(self) -> list[int]:
        statuses = [one["status"]["trainerStatus"] for one in self.sent if "status" in one]
        return [one["progressPercentage"] for one in statuses]


def test_many_reports_are_few_writes_and_the_last_one_counts() -> None:
    server = Server({})

    async def flood() -> None:
        made = ReportWrites(server, every=0.05)  # type: ignore[arg-type]
        for percent in range(50):
            await made.write(KEY, "uid", report(percent))
        await asyncio.sleep(0.2)  # four times the pause
        await made.close()

    asyncio.run(flood())
    assert server.told == [0, 49]


def test_a_job_made_anew_under_the_name_is_not_written_to() -> None:
    """The API server heeds no uid in a patch of a status."""
    server = Server({})
    server.uid = "another"
    with pytest.raises(OtherJob, match="another job"):
        asyncio.run(ReportWrites(server).write(KEY, "uid", report()))  # type: ignore[arg-type]
    assert server.sent == []


def test_a_write_that_takes_long_does_not_undo_those_after_it() -> None:
    class Slow(Server):
        """The first write arrives late."""

        async def call(self, request: Any, kind: Any) -> Answer:
            if not self.late:
                self.late = True
                await asyncio.sleep(0.2)
            return await super().call(request, kind)

        late = False

    server = Slow({})

    async def steps() -> None:
        made = ReportWrites(server, every=0.02)  # type: ignore[arg-type]
        first = asyncio.create_task(made.write(KEY, "uid", report(1)))
        for number in (2, 3):
            await asyncio.sleep(0.05)
            await made.write(KEY, "uid", report(number))
        await first
        await asyncio.sleep(0.1)
        await made.close()

    asyncio.run(steps())
    assert server.told == [1, 3]


def test_the_annotation_is_written_only_where_it_is_asked_for() -> None:
    asked, not_asked = Server({TRACKING: "enabled"}), Server({TRACKING: "no"})
    for server in (asked, not_asked):
        asyncio.run(ReportWrites(server).write(KEY, "uid", report()))  # type: ignore[arg-type]
    assert [sorted(one) for one in asked.sent] == [["metadata", "status"], ["metadata"]]
    assert len(not_asked.sent) == 1


def test_what_is_kept_of_jobs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "MOST_JOBS", 2)
    clock = [0.0]

    async def many() -> None:
        made = ReportWrites(Server({}), every=1.0, clock=lambda: clock[0])  # type: ignore[arg-type]
        for n in range(2):
            await made.write(Key("team", f"job-{n}"), "uid", report())
        with pytest.raises(Busy):
            await made.write(Key("team", "job-2"), "uid", report())
        clock[0] = 2.0
        await made.write(Key("team", "job-2"), "uid", report())

    asyncio.run(many())
