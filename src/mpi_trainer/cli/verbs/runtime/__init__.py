"""`odh runtime VERB …`: what TrainJobs can run in, on the cluster or as shipped."""

from __future__ import annotations

import click

from mpi_trainer.cli.lazy import group

VERBS = {
    "list": ("runtime.list", "List the runtimes that TrainJobs can name."),
    "describe": ("runtime.describe", "Show a runtime: policy, image, nodes, resources."),
    "test": ("runtime.test", "Test a runtime, or the job in a file, before it is used."),
}


@click.group(cls=group(VERBS))
def command() -> None:
    """Runtimes for TrainJobs: those of the cluster, or those that we ship."""
