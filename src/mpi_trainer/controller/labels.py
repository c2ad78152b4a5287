"""What the controller writes onto a job's objects beside what `render` puts there."""

from __future__ import annotations

from mpi_trainer.api.kinds.annotations import DOMAIN, RECORD

__all__ = ["RECORD", "WORKERS"]

WORKERS = f"{DOMAIN}/workers"
"""annotation of the launcher pod: how many workers its hostfile names"""
