"""`odh doctor`: what this machine or cluster can do, what is missing, and what fixes it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator

import click
import msgspec

from mpi_trainer import __version__
from mpi_trainer.cli import context
from mpi_trainer.cli.main import FAILED
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.local import paths
from mpi_trainer.local.mpi import distributions
from mpi_trainer.local.pods import isolation, sshd

NEEDED_SPACE = 1 << 30


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at. `level` is ok, limited (works, but less) or missing (does not
    work); `fix` is what to do."""

    what: str
    level: str
    says: str
    fix: str = ""


@click.command()
@options.namespace
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def command(namespace: str, output: str) -> int:
    """Say what works here, what is missing, and how to fix it.

    Where a cluster is configured it is examined with your own rights: login, kinds, admission,
    controller, rights, runtimes, queues, quotas, names. `--backend local` examines this machine.
    """
    checks = tuple(_checks(namespace))
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(checks), indent=2))
    else:
        for check in checks:
            _print(check)
    return FAILED if any(f.level == "missing" for f in checks) else 0


def _checks(namespace: str) -> Iterator[Check]:
    where = context.current_target()
    if not context.on_cluster(where):
        return examine()
    from mpi_trainer.cli.verbs import doctor_cluster

    return doctor_cluster.examine(
        msgspec.structs.replace(context.cluster_config(where), namespace=namespace)
    )


def examine() -> Iterator[Check]:
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield Check("mpi-trainer", "ok", f"{__version__} on {system}")
    if sys.platform != "linux":
        yield Check("system", "missing", "local runs need Linux", "use a Linux machine or VM")
        return
    yield Check("machine", "ok", f"{os.cpu_count()} cores, {_memory()} of memory")
    yield from _isolation()
    yield _program("ssh", shutil.which("ssh"), "apt-get install openssh-client")
    yield _program("sshd", sshd.find_sshd(), "apt-get install openssh-server, or `make setup`")
    yield _space()
    for d in distributions.DISTRIBUTIONS:
        title = f"{d.title} {d.version}"
        if d.installed:
            yield Check(f"mpi {d.name}", "ok", f"{title} is installed")
        else:
            yield Check(f"mpi {d.name}", "ok", f"{title} is installed on first use")


def _isolation() -> Iterator[Check]:
    found = isolation.probe()
    if found.kind == "loopback":
        yield Check(
            "isolation",
            "limited",
            f"workers share this machine's network and files: {found.reason}",
            "allow user namespaces, or run as root",
        )
    else:
        yield Check("isolation", "ok", f"workers get namespaces of their own ({found.kind})")
    groups = found.cgroups
    if groups.kind == "none":
        yield Check(
            "limits",
            "limited",
            f"CPU and memory limits of jobs are not applied: {groups.reason}",
            "run as root, or delegate a control group to yourself",
        )
    else:
        yield Check("limits", "ok", f"CPU and memory limits are applied (cgroup {groups.kind})")


def _program(name: str, path: str | None, fix: str) -> Check:
    if path is None:
        return Check(name, "missing", f"{name} is not installed, and MPI needs it", fix)
    return Check(name, "ok", path)


def _space() -> Check:
    folder = paths.data_dir()
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(existing).free
    if not existing.is_dir():
        return Check("data", "missing", f"{existing} is not a folder", "set XDG_DATA_HOME")
    if not os.access(existing, os.W_OK):
        return Check("data", "missing", f"{existing} is not writable", "set XDG_DATA_HOME")
    if free < NEEDED_SPACE:
        says = f"{folder}: only {free >> 20} MiB free, MPI builds need up to 1 GiB"
        return Check("data", "limited", says, "free space, or set XDG_DATA_HOME")
    return Check("data", "ok", f"{folder} ({free >> 30} GiB free)")


def _memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / (1 << 30):.0f} GiB"


def _print(check: Check) -> None:
    marks = {"ok": terminal.good("✓"), "limited": "!", "missing": terminal.bad("✗")}
    click.echo(f"{marks[check.level]} {check.what}: {check.says}")
    if check.fix:
        click.echo(f"    fix: {check.fix}")
