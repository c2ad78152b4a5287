"""The contract of every Backend, for this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from mpi_trainer.local.jobs import store
from mpi_trainer.sdk.backends.backend import Backend
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from tests.backend_contract import (
    mpijob,
    test_copy_is_a_job_of_its_own_like_the_original,
    test_job_of_each_kind_is_seen_as_one_neutral_value,
    test_jobs_are_watched_from_what_is_there_over_what_comes_to_what_goes,
    test_one_job_is_watched_until_it_is_gone,
    test_pages_hold_every_job_once_and_what_the_list_says_of_it,
    test_usage_of_a_job_without_pods_says_so_and_one_that_is_not_there_is_left_out,
    test_what_a_new_job_can_choose_from,
)
from tests.local.odh import MARK

__all__ = [
    "test_copy_is_a_job_of_its_own_like_the_original",
    "test_job_of_each_kind_is_seen_as_one_neutral_value",
    "test_jobs_are_watched_from_what_is_there_over_what_comes_to_what_goes",
    "test_one_job_is_watched_until_it_is_gone",
    "test_pages_hold_every_job_once_and_what_the_list_says_of_it",
    "test_usage_of_a_job_without_pods_says_so_and_one_that_is_not_there_is_left_out",
    "test_what_a_new_job_can_choose_from",
]


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(MARK, tmp_path.name)
    yield LocalBackend()
    for folder in store.folders():
        store.remove(folder)


def test_namespaces_are_those_that_have_jobs(backend: Backend) -> None:
    job = mpijob(backend, "elsewhere")
    job = replace(job, metadata=replace(job.metadata, namespace="team"))

    async def ask() -> list[str]:
        await backend.create(job)
        return [*await backend.namespaces()]

    assert asyncio.run(ask()) == ["default", "team"]


def test_copy_runs_in_the_folder_of_its_original(backend: Backend, tmp_path: Path) -> None:
    async def copy() -> None:
        original = await backend.create(mpijob(backend, "one"), str(tmp_path))
        await backend.copy(mpijob(backend, "two"), original.key)

    asyncio.run(copy())
    assert store.find("default", "two").settings().cwd == str(tmp_path)
