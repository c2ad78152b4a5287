"""Datasets and models that are fetched before a job begins: `python -m mpi_trainer.initializers`.

Runs in an image of its own and imports nothing else of ours. What is fetched is whole or absent:
files get their names only when all of them are there and have their checksums, and the marker
(`folder.MARKER`) comes last. A run that was killed goes on where it stopped.
"""
