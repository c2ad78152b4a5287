"""`python -m mpi_trainer.webhook`: serves admission until a signal."""

from mpi_trainer.webhook.main import main

main()
