"""The import path that data scientists use; everything is in `mpi_trainer.sdk`."""
