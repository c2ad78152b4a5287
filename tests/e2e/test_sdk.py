"""The SDK on a real cluster: the local backend's own tests, and what only a cluster can show.

The rest of `tests/lifecycle.py` runs here by hand: `tests/e2e/full/test_sdk.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openshift_ai_sdk.training import MPIJob, NotShippable, TrainingClient
from tests.cluster import Kubectl
from tests.e2e.notebook import place
from tests.lifecycle import (
    PATIENCE,
    test_failure_is_told_at_once_with_rank_and_reason,
    test_job_deleted_while_somebody_follows_ends_the_following,
    test_life_of_a_job,
)

__all__ = [
    "place",
    "test_failure_is_told_at_once_with_rank_and_reason",
    "test_job_deleted_while_somebody_follows_ends_the_following",
    "test_life_of_a_job",
]

pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.usefixtures("place")]


def test_code_travels_with_the_job_and_goes_with_it(place: Kubectl, tmp_path: Path) -> None:
    """Modules of one's own, on an unchanged image, without a shell between; content-addressed."""
    (tmp_path / "mine.py").write_text("ANSWER = '$HOME `id` 42'\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "big.bin").write_bytes(b"x" * 5_000_000)
    (tmp_path / ".odhignore").write_text("data/\n")

    def work() -> None:
        from pathlib import Path

        import mine  # type: ignore[import-not-found]

        print(f"the answer is {mine.ANSWER} {Path('data').exists()}", flush=True)

    job = MPIJob.from_function(work, workdir=str(tmp_path), name="shipped").create()
    job.wait_for_completion(timeout=2 * PATIENCE)
    said = ["the answer is $HOME `id` 42 False"] * 2
    assert [line.text for line in job.get_logs() if line.rank is not None] == said
    job.restart()
    job.wait_for_completion(timeout=2 * PATIENCE)
    assert [line.text for line in job.get_logs() if line.rank is not None] == said
    (stored,) = _code(place)
    assert stored.startswith("shipped-code-")
    job.delete()
    assert not _code(place)


def _code(place: Kubectl) -> list[str]:
    names = place("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}").split()
    return [name for name in names if "-code-" in name]


def test_folder_that_is_too_large_creates_nothing(place: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(os.urandom(1 << 20))
    job = MPIJob("large", command=["true"], workdir=str(tmp_path))
    with pytest.raises(NotShippable, match=r"weights.bin \(1.0 MiB\)") as caught:
        job.create()
    assert ".odhignore" in caught.value.hint
    assert TrainingClient().list_jobs() == ()
