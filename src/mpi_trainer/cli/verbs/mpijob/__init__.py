"""`odh mpijob VERB …`: the life of a job, one file per verb."""

from __future__ import annotations

import click

from mpi_trainer.cli.lazy import group

# The order of a job's life, which is the order of the help.
VERBS = {
    "create": ("mpijob.create", "Submit a job from a command or a file."),
    "list": ("mpijob.list", "List jobs, newest first."),
    "get": ("mpijob.get", "Show jobs by name, as a table, JSON or YAML."),
    "describe": ("mpijob.describe", "Show the details of a job."),
    "explain": ("mpijob.explain", "Say why a job failed, and what to do."),
    "logs": ("mpijob.logs", "Print the logs of a job, of all ranks or of one."),
    "wait": ("mpijob.wait", "Wait until a job reaches a state."),
    "watch": ("mpijob.watch", "A live view: state, progress, ranks, last lines."),
    "suspend": ("mpijob.change:suspend", "Stop a job's pods but keep the job."),
    "resume": ("mpijob.change:resume", "Let a suspended job run."),
    "restart": ("mpijob.change:restart", "Run a job again from the beginning."),
    "clone": ("mpijob.clone", "Submit a copy of a job, with changes."),
    "exec": ("mpijob.exec", "Run a command beside a rank."),
    "cp": ("mpijob.cp", "Copy a file or directory out of a job."),
    "top": ("mpijob.top", "Show CPU, memory and GPUs that jobs use."),
    "stack": ("mpijob.stack", "Show where each rank is, for jobs that hang."),
    "delete": ("mpijob.delete", "Stop jobs and delete them, with their logs."),
    "prune": ("mpijob.delete:prune", "Delete jobs that ended long ago."),
}
# What people type first who know kubectl, docker or Slurm.
ALIASES = {"ls": "list", "rm": "delete", "stop": "suspend", "cancel": "suspend"}


@click.group(cls=group(VERBS, ALIASES))
def command() -> None:
    """MPI jobs: submit, follow, stop, repeat.

    Jobs run in the background: they keep running when this command ends, and can be followed,
    suspended or deleted from any terminal.
    """
