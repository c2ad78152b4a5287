"""`python -m mpi_trainer.webhook`: serves admission until it is told to stop."""

from mpi_trainer.webhook.main import main

main()
