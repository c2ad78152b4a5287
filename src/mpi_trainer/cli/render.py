"""`odh render`: the objects that a controller would create for a job, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from mpi_trainer.cli import terminal
from mpi_trainer.cli.planned import Planned, planned

_KEYS = "its keys are made by the controller, and left out here"
_OWNER = "owner references are left out: the job has no uid before it exists"


@click.command()
@click.option("-f", "--file", "path", required=True, help="A job file; `-`: stdin.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml")
@click.option("-n", "--namespace", default="", help="For jobs that name none.")
@click.option("--cluster-domain", "domain", default="", help="As the controller's option.")
def command(path: str, output: str, namespace: str, domain: str) -> None:
    """Print the objects that the controller would create for a job.

    No cluster is asked, so what its admission adds is not there. The Secret is shown without its
    keys.

    \b
    odh render -f mpijob.yaml
    odh render -f mpijob.yaml -o json
    """
    jobs = planned(path, namespace, domain)
    if output == "yaml":
        click.echo("\n---\n".join(text for job in jobs for text in _documents(job)))
        return
    terminal.say(f"note: the Secret: {_KEYS}; {_OWNER}")
    items = [made for job in jobs for made in job]
    listed = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
    click.echo(msgspec.json.format(listed, indent=2))


def _documents(job: Planned) -> Iterator[str]:
    from mpi_trainer.cli.yamltext import written

    head = f"# MPIJob {job.job.namespace}/{job.job.name}; {_OWNER}\n"
    for made in job:
        remark = f"# {_KEYS}\n" if made is job.secret else ""
        yield head + remark + written(made)
        head = ""
