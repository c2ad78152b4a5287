"""Who validates before sending reads what admission would say, to the letter (CTL-4, SC-006)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.cli.verbs.validate import command
from mpi_trainer.webhook import review
from mpi_trainer.webhook.mpijob.judge import judge
from openshift_ai_sdk.training import MPIJob
from tests.api.admission.cases import REFUSED, job
from tests.unit.webhook.test_mpijob_judge import request

SPOILT = [job("same", *changes) for _, changes, _ in REFUSED]
NAMES = [f"{n}-area-{area}" for n, (area, _, _) in enumerate(REFUSED)]
_PLACE = re.compile(r"^\S+:\d+:\d+: ")


def by_admission(data: dict[str, Any]) -> list[str]:
    """Each error of the webhook's answer; none where only the cluster itself would refuse."""
    asked = request(data)
    verdict = judge(asked)
    if not verdict.errors:
        return []
    answer = review.refused(asked, verdict.errors)["response"]["status"]["message"]
    _, *lines = answer.splitlines()
    return sorted(line.removeprefix("* ") for line in lines)


def by_the_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    command.main(["-f", str(path)], standalone_mode=False)
    said = capsys.readouterr().err.splitlines()
    errors = (line.removeprefix("error: ") for line in said if line.startswith("error: "))
    return sorted(_PLACE.sub("", line) for line in errors)


def by_the_sdk(manifest: str | dict[str, Any]) -> list[str]:
    try:
        MPIJob.from_manifest(manifest)
    except InvalidJob as invalid:
        return sorted(_PLACE.sub("", line) for line in str(invalid).splitlines())
    return []


@pytest.mark.parametrize("data", SPOILT, ids=NAMES)
def test_command_line_and_sdk_report_the_errors_of_admission(
    data: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(data, indent=1))
    wanted = by_admission(data)
    assert by_the_command_line(path, capsys) == wanted
    without_warnings = [line for line in by_the_sdk(data) if not line.startswith("warning: ")]
    assert without_warnings == wanted
    from_text = [line for line in by_the_sdk(path.read_text()) if not line.startswith("warning: ")]
    assert from_text == wanted


def test_most_of_the_cases_need_no_cluster_to_be_refused() -> None:
    assert sum(bool(by_admission(data)) for data in SPOILT) >= 50
