"""Attempts as people read them: between the lines of a log, and on the page of a job (W-9, L-4)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import MPIJob, ReplicaSpec
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.cli.verbs.mpijob.describe import page
from mpi_trainer.cli.verbs.mpijob.logs import Printer
from mpi_trainer.decide.history import SUSPENDED, Attempt, LogTail
from mpi_trainer.sdk.backends.backend import JobDetails, LogLine
from mpi_trainer.sdk.backends.views import mpijob_view
from mpi_trainer.sdk.job.attempts import AttemptMarks

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
JOB = MPIJob(metadata=ObjectMeta(name="train", namespace="default", creation_timestamp=NOW))
FIRST = Attempt(
    1,
    "LauncherPodFailed",
    "exit code 1",
    began=NOW,
    ended=NOW,
    rank=3,
    host="train-worker-1",
    words=(LogTail("train-launcher", "\n".join(["[1,3]<stderr>: boom"] * 20), cut=True),),
)
SECOND = Attempt(2, SUSPENDED, ended=NOW, silence="it had not started")


def test_marks_say_how_the_attempt_before_ended() -> None:
    marks = AttemptMarks(7, (FIRST, SECOND))
    assert marks.begins(1) == ""
    assert marks.begins(2) == "attempt 2 of 7: attempt 1 failed: exit code 1"
    assert marks.begins(3) == "attempt 3 of 7: attempt 2 was suspended"
    assert marks.begins(9) == "attempt 9"
    assert AttemptMarks(0, ()).begins(2) == "attempt 2"


def test_page_has_every_attempt_with_its_last_words() -> None:
    text = "\n".join(page(JobDetails(mpijob_view(JOB, {}), attempts=(FIRST, SECOND)), NOW))
    (row,) = (line for line in text.splitlines() if "LauncherPodFailed" in line)
    assert row.split()[:1] == ["1"] and "train-worker-1" in row and "exit code 1" in row
    assert "Last words of attempt 1 (train-launcher):" in text
    assert text.count("  [3] boom") == 12
    assert "more with `odh logs train --attempt 1`" in text
    assert "Last words of attempt 2: none were kept: it had not started" in text


@pytest.mark.parametrize("space", ["", " "])
def test_last_words_keep_their_indentation(space: str) -> None:
    """A traceback without it is hard to read, and Python code means something else."""
    said = ["Traceback:", '  File "train.py", line 5', "    raise ValueError", ""]
    text = "\n".join(f"[1,3]<stderr>:{space}{line}".rstrip() for line in said)
    attempt = replace(FIRST, words=(LogTail("train-launcher", text),))
    shown = list(page(JobDetails(mpijob_view(JOB, {}), attempts=(attempt,)), NOW))
    assert shown[-4:] == [f"  [3] {line}" for line in said]


def test_code_in_a_command_is_shown_by_its_first_line() -> None:
    spec = {"containers": [{"command": ["python", "-c", "import os\nprint(1)\n"]}]}
    launcher = ReplicaSpec(template=PodTemplate.of({"spec": spec}))
    job = replace(JOB, spec=replace(JOB.spec, mpi_replica_specs={"Launcher": launcher}))
    (line,) = (x for x in page(JobDetails(mpijob_view(job, {})), NOW) if x.startswith("Command:"))
    assert line.endswith("python -c 'import os … (line 1 of 2)'")


def test_notes_stand_between_the_lines(capfd: pytest.CaptureFixture[str]) -> None:
    printer = Printer()
    printer.print(LogLine(NOW, "train-launcher", "stdout", 0, "one"))
    printer.print(LogLine(NOW, "train-launcher", "stdout", 0, "two", notes=("attempt 2 of 7",)))
    printer.flush()
    seen = capfd.readouterr()
    assert seen.out == "[0] one\n[0] two\n"
    assert "--- attempt 2 of 7 ---" in seen.err


HOSTILE = "\x1b]0;mine\x07 \x9b2J \u202e\r\nName: other"


def test_what_somebody_wrote_into_a_job_does_not_reach_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whoever may write a job may write the annotation with its attempts."""
    words = (LogTail(HOSTILE, HOSTILE),)
    forged = Attempt(1, HOSTILE, HOSTILE, host=HOSTILE, words=words, silence=HOSTILE)
    seen = "\n".join(page(JobDetails(mpijob_view(JOB, {}), attempts=(forged,)), NOW))
    Printer().print(
        LogLine(NOW, "p", "stdout", 0, "one", notes=(AttemptMarks(7, (forged,)).begins(2),))
    )
    seen += capfd.readouterr().err
    assert not set("\x1b\x07\x9b\u202e\r") & set(seen)
    assert "\\x1b]0;mine\\x07" in seen
