"""What the controller writes onto a job's objects beside what `render` puts there."""

from __future__ import annotations

from mpi_trainer.layout.agent.choice import DOMAIN

RECORD = f"{DOMAIN}/record"
"""annotation of the MPIJob: its durable memory; absent while nothing went wrong"""
JOB_UID = f"{DOMAIN}/job-uid"
"""annotation of the launcher pod: whose it is, should its Job be gone before it"""
WORKERS = f"{DOMAIN}/workers"
"""annotation of the launcher pod: how many workers its hostfile names"""
