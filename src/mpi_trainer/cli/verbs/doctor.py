"""`odh doctor`: what this machine or cluster can do, what is missing, and what mends it."""

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
from mpi_trainer.cli import target
from mpi_trainer.cli.main import FAILED
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs.doctor_finding import Finding
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.local import paths
from mpi_trainer.local.mpi import distributions
from mpi_trainer.local.pods import isolation, sshd

NEEDED_SPACE = 1 << 30


@click.command()
@options.namespace
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def command(namespace: str, output: str) -> int:
    """Say what works here, what is missing, and what mends it.

    Where a cluster is configured it is examined with your own rights: login, kinds, admission,
    rights, runtimes, queues, quotas, names. `--backend local` examines this machine.
    """
    findings = tuple(_findings(namespace))
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(findings), indent=2))
    else:
        for finding in findings:
            _tell(finding)
    return FAILED if any(f.level == "missing" for f in findings) else 0


def _findings(namespace: str) -> Iterator[Finding]:
    where = target.said()
    if not target.on_cluster(where):
        return examine()
    from mpi_trainer.cli.verbs import doctor_cluster

    return doctor_cluster.examine(
        msgspec.structs.replace(target.config(where), namespace=namespace)
    )


def examine() -> Iterator[Finding]:
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield Finding("mpi-trainer", "ok", f"{__version__} on {system}")
    if sys.platform != "linux":
        yield Finding("system", "missing", "local runs need Linux", "use a Linux machine or VM")
        return
    yield Finding("machine", "ok", f"{os.cpu_count()} cores, {_memory()} of memory")
    yield from _isolation()
    yield _program("ssh", shutil.which("ssh"), "apt-get install openssh-client")
    yield _program("sshd", sshd.find_sshd(), "apt-get install openssh-server, or `make setup`")
    yield _space()
    for d in distributions.DISTRIBUTIONS:
        title = f"{d.title} {d.version}"
        if d.installed:
            yield Finding(f"mpi {d.name}", "ok", f"{title} is installed")
        else:
            yield Finding(f"mpi {d.name}", "ok", f"{title} is installed on first use")


def _isolation() -> Iterator[Finding]:
    found = isolation.probe()
    if found.kind == "loopback":
        yield Finding(
            "isolation",
            "limited",
            f"workers share this machine's network and files: {found.reason}",
            "allow user namespaces, or run as root",
        )
    else:
        yield Finding("isolation", "ok", f"workers get namespaces of their own ({found.kind})")
    groups = found.cgroups
    if groups.kind == "none":
        yield Finding(
            "limits",
            "limited",
            f"CPU and memory limits of jobs are not applied: {groups.reason}",
            "run as root, or delegate a control group to yourself",
        )
    else:
        yield Finding("limits", "ok", f"CPU and memory limits are applied (cgroup {groups.kind})")


def _program(name: str, path: str | None, mend: str) -> Finding:
    if path is None:
        return Finding(name, "missing", f"{name} is not installed, and MPI needs it", mend)
    return Finding(name, "ok", path)


def _space() -> Finding:
    folder = paths.data_dir()
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(existing).free
    if not existing.is_dir():
        return Finding("data", "missing", f"{existing} is not a folder", "set XDG_DATA_HOME")
    if not os.access(existing, os.W_OK):
        return Finding("data", "missing", f"{existing} is not writable", "set XDG_DATA_HOME")
    if free < NEEDED_SPACE:
        says = f"{folder}: only {free >> 20} MiB free, MPI builds need up to 1 GiB"
        return Finding("data", "limited", says, "free space, or set XDG_DATA_HOME")
    return Finding("data", "ok", f"{folder} ({free >> 30} GiB free)")


def _memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / (1 << 30):.0f} GiB"


def _tell(finding: Finding) -> None:
    marks = {"ok": terminal.good("✓"), "limited": "!", "missing": terminal.bad("✗")}
    click.echo(f"{marks[finding.level]} {finding.what}: {finding.says}")
    if finding.mend:
        click.echo(f"    mend: {finding.mend}")
