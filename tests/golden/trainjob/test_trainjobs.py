"""Every TrainJob in `*/in.yaml` becomes the objects in `objects.yaml` beside it.

As in ../render, whose README says what these files prove and what not; what upstream makes of the
same jobs is compared in `tests/api/full/test_same_as_trainer.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from mpi_trainer.controller.trainjob.desired import desired
from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.render.frame import Facts
from tests.golden.trainjob.objects import CASES, FOLDER, made, projection, read

by_case = pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)


@by_case
def test_objects_are_those_that_were_read_and_found_right(case: Path) -> None:
    """API-2, API-3."""
    assert projection(case) == (case / "objects.yaml").read_text()


@by_case
def test_case_says_what_it_shows(case: Path) -> None:
    comment = [line for line in (case / "in.yaml").read_text().splitlines() if line[:1] == "#"]
    assert "Shows:" in " ".join(comment)


@by_case
def test_suspension_is_no_part_of_what_a_jobset_is_rendered_from(case: Path) -> None:
    """Else every job that comes back would get another JobSet."""
    job, runtime = read(case)
    resting = replace(job, spec=replace(job.spec, suspend=True))
    one, other = desired(job, runtime, Facts()), desired(resting, runtime, Facts())
    assert one.rendered == other.rendered
    assert other.children.job_set["spec"]["suspend"] is True


def test_every_implementation_has_a_case() -> None:
    """API-3."""
    layouts = (made(case).layout for case in CASES)
    assert {one.implementation for one in layouts if one} == {impl.name for impl in REGISTRY}


def test_another_image_is_another_jobset() -> None:
    job, runtime = read(FOLDER / "open-mpi")
    changed = replace(job.trainer, image="example.org/other:1")
    other = replace(job, spec=replace(job.spec, trainer=changed))
    assert desired(job, runtime, Facts()).rendered != desired(other, runtime, Facts()).rendered
