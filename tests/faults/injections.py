"""What is done to a running job from outside, always to worker 1. The machine's own network and
files are never touched: everything happens in the namespaces of one pod, and ends with it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from mpi_trainer.local.mpi.distributions import named
from mpi_trainer.local.pods.network import pod_address
from mpi_trainer.local.pods.sshd import PORT
from tests.faults.scene import VICTIM, WORKERS, Scene

DAEMONS = ("prted", "orted", "hydra_pmi_proxy")


def kill_daemon(scene: Scene, mpi: str) -> None:
    found = [p.pid for p in scene.processes(VICTIM) if p.name in DAEMONS]
    assert found, scene.processes(VICTIM)
    _kill(found)


def kill_ssh_sessions(scene: Scene, mpi: str) -> None:
    """The listener lives on: only what is connected breaks."""
    found = [
        p.pid
        for p in scene.processes(VICTIM)
        if p.name.startswith("sshd") and p.command.startswith("sshd: ")
        if "[listener]" not in p.command
    ]
    assert found, scene.processes(VICTIM)
    _kill(found)


def kill_ssh_listener(scene: Scene, mpi: str) -> None:
    found = [p.pid for p in scene.processes(VICTIM) if "[listener]" in p.command]
    assert found, scene.processes(VICTIM)
    _kill(found)


def kill_worker(scene: Scene, mpi: str) -> None:
    """As when a pod is deleted: every process of it, at once."""
    _kill([scene.first(VICTIM)])


def cut_link(scene: Scene, mpi: str) -> None:
    """As when a node loses power: packets vanish, and nobody says so."""
    scene.inside(VICTIM, "net", "ip", "link", "set", "eth0", "down")


def block_other_workers(scene: Scene, mpi: str) -> None:
    """As a NetworkPolicy that forgot the ranks: SSH from the launcher works."""
    others = ", ".join(pod_address(i) for i in range(1, 1 + WORKERS) if i != 2)
    _rules(
        scene,
        f"chain arriving {{ {HOOK} input priority 0; ip saddr {{ {others} }} {SYN} drop; }}",
        f"chain leaving {{ {HOOK} output priority 0; ip daddr {{ {others} }} {SYN} drop; }}",
    )


def refuse_ssh(scene: Scene, mpi: str) -> None:
    """As where nothing listens: new connections are refused at once."""
    _rules(
        scene,
        f"chain arriving {{ {HOOK} input priority 0; "
        f"tcp dport {PORT} {SYN} reject with tcp reset; }}",
    )


def hide_mpi(scene: Scene, mpi: str) -> None:
    distribution = named(mpi)
    assert distribution is not None
    _hide(scene, f"{distribution.prefix}/bin")


def hide_program(scene: Scene, mpi: str) -> None:
    _hide(scene, "/state/bin")


HOOK = "type filter hook"
SYN = "tcp flags & (syn | ack) == syn"


def _hide(scene: Scene, folder: str) -> None:
    scene.inside(VICTIM, "mount", "mount", "-t", "tmpfs", "none", folder)


def _rules(scene: Scene, *chains: str) -> None:
    scene.inside(
        VICTIM, "net", "nft", "-f", "-", text="\n".join(("table ip fault {", *chains, "}\n"))
    )


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def small_disk(scene: Scene, mpi: str) -> None:
    """A volume with little room, on worker 1 alone."""
    scene.inside(VICTIM, "mount", "mount", "-t", "tmpfs", "-o", "size=256k", "none", "/state/bin")


def read_only_disk(scene: Scene, mpi: str) -> None:
    scene.inside(VICTIM, "mount", "mount", "-t", "tmpfs", "-o", "ro", "none", "/state/bin")


def small_shared_memory(scene: Scene, mpi: str) -> None:
    scene.inside(VICTIM, "mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/dev/shm")
