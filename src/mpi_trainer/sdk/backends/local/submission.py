"""Jobs of this machine, submitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.jobs import code_folders, store
from mpi_trainer.local.mpi import distributions
from mpi_trainer.sdk.backends.backend import JobView, Key
from mpi_trainer.sdk.backends.local.observed import job_view, local_errors
from mpi_trainer.sdk.errors import JobExists

if TYPE_CHECKING:
    from mpi_trainer.local.execute.prepare import LocalRun


def submitted(prepared: Callable[[], LocalRun]) -> JobView:
    """Submits what is prepared; the job as stored."""
    with local_errors():
        local = prepared()
        local.run_plan()
        distributions.install(local.distribution, lambda seconds: None)
    try:
        with local_errors():
            stored = store.submit(local.job, local.settings)
    except store.JobTaken as error:
        key = Key(local.job.namespace, local.job.name)
        raise JobExists(
            f"job {key} already exists",
            f"Choose another name, or remove it: `odh mpijob delete {key.typed}`.",
        ) from error
    return job_view(stored, local.settings.train)


def submitted_with_code(job: MPIJob, settings: LocalSettings, packed: bytes) -> JobView:
    """The same, in a folder of the job's own with the archive's content."""
    from mpi_trainer.local.execute.prepare import prepare

    with local_errors():
        folder = code_folders.unpacked(packed)
    try:
        own = msgspec.structs.replace(
            settings, code=folder, cwd=code_folders.working_directory(folder)
        )
        return submitted(lambda: prepare(job, own))
    except BaseException:
        code_folders.remove(folder)
        raise
