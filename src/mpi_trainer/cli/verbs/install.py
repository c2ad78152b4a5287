"""`odh install` and `odh uninstall`: mpi-trainer on a cluster, from files that come with `odh`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import click

from mpi_trainer.cli.context import cluster_config, target_options
from mpi_trainer.cli.installation import bundles, steps
from mpi_trainer.cli.installation.cluster import UNCHANGED, Cluster
from mpi_trainer.cli.installation.steps import Change, Wanted
from mpi_trainer.cli.output import terminal
from mpi_trainer.kube.oneshot import OneShot

_PROFILE = click.option(
    "--profile",
    type=click.Choice(bundles.PROFILES),
    default=bundles.KUBERNETES,
    show_default=True,
    help="OpenShift's also brings monitoring, and certificates by service-ca.",
)
_REGISTRY = click.option(
    "--registry",
    default="",
    metavar="HOST/PATH",
    help="Take every image from there, under its own name (see `odh images list`).",
)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would change.")


@click.command()
@_PROFILE
@_REGISTRY
@click.option("--no-admission", is_flag=True, help="Without admission: bad jobs fail instead.")
@click.option("--no-runtimes", is_flag=True, help="Without our runtimes for TrainJobs.")
@click.option(
    "--timeout",
    type=click.FloatRange(1, 3600),
    default=300.0,
    show_default=True,
    help="Seconds for each Deployment to become ready.",
)
@_DRY_RUN
@target_options
def install(
    *,
    profile: str,
    registry: str,
    no_admission: bool,
    no_runtimes: bool,
    timeout: float,
    dry_run: bool,
) -> None:
    """Install or upgrade mpi-trainer on a cluster.

    It asks for your rights first and tries every object by a dry run, so a refusal changes
    nothing. What is there already as it should be is left alone; jobs go on. Needs no network but
    the cluster's.
    """
    wanted = Wanted(profile, not no_admission, not no_runtimes, registry, timeout)
    _run(lambda cluster: steps.install(cluster, wanted, terminal.say, dry_run=dry_run), dry_run)


@click.command()
@_PROFILE
@_REGISTRY
@click.option("--no-admission", is_flag=True, help="Leave admission as it is.")
@_DRY_RUN
@click.option("--yes", is_flag=True, help="Do not ask.")
@target_options
def uninstall(*, profile: str, registry: str, no_admission: bool, dry_run: bool, yes: bool) -> None:
    """Take mpi-trainer off a cluster. Jobs, their pods, runtimes and definitions stay."""
    where = cluster_config().server
    if not dry_run and not yes:
        click.confirm(f"take the controller off {where}?", abort=True, err=True)
    wanted = Wanted(profile, not no_admission, registry=registry)
    _run(lambda cluster: steps.uninstall(cluster, wanted, terminal.say, dry_run=dry_run), dry_run)
    terminal.say("kept: jobs, runtimes and the definitions of the kinds (docs/install.md)")


def _run(work: Callable[[Cluster], Iterable[Change]], dry_run: bool) -> None:
    with OneShot(cluster_config()) as server:
        count: Counter[Any] = Counter()
        for change in work(Cluster(server)):
            count[change.what] += 1
            if change.what != UNCHANGED:
                would = "would be " if dry_run else ""
                click.echo(f"{change.object} {would}{change.what}")
    found = ", ".join(f"{number} {what}" for what, number in sorted(count.items()))
    terminal.say(f"{found or 'nothing is there'}{' (dry run)' if dry_run else ''}")
