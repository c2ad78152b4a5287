"""How SSH comes up in a local pod: the texts of its files, and where its programs are.

Strict on both sides: the launcher knows every worker's host key beforehand, a worker admits the
job's key and nothing else, and every session gets the pod's environment from a file that only
its owner can read. This is the one place to change when an agent does the same in every pod.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mpi_trainer.api import names
from mpi_trainer.layout.model import Pairs
from mpi_trainer.local.places import data_dir

PORT = 2222
LISTENING = b"Server listening on "
KEX = "ecdh-sha2-nistp256,ecdh-sha2-nistp384"


class Endpoint(msgspec.Struct, frozen=True):
    """A worker as the launcher's SSH client knows it."""

    names: tuple[str, ...]
    address: str
    port: int
    host_key: str


def find_sshd() -> str | None:
    """The system's sshd, or the one that `make setup` unpacked for an ordinary user."""
    unpacked = data_dir() / "openssh" / "usr" / "sbin" / "sshd"
    candidates = (shutil.which("sshd"), "/usr/sbin/sshd", "/usr/lib/ssh/sshd", str(unpacked))
    return next((c for c in candidates if c and Path(c).is_file()), None)


def server_config(folder: str, address: str, port: int) -> str:
    """An sshd that runs as anybody. Sessions start through `folder`/session."""
    return "\n".join(
        (
            f"Port {port}",
            f"ListenAddress {address}",
            f"HostKey {folder}/host_key",
            f"AuthorizedKeysFile {folder}/authorized_keys",
            f"ForceCommand {folder}/session",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            "PermitTTY no",
            "AllowTcpForwarding no",
            "X11Forwarding no",
            "UseDNS no",
            "LogLevel INFO",
            "MaxStartups 256:30:512",
            "MaxSessions 256",
            "",
        )
    )


def client_config(folder: str, user: str, workers: Sequence[Endpoint]) -> str:
    """One Host block per worker, so that names need no resolver, and a strict default."""
    blocks = [
        f"Host {' '.join(w.names)}\n  HostName {w.address}\n  Port {w.port}\n"
        f"  HostKeyAlias {w.names[0]}"
        for w in workers
    ]
    rest = (
        "Host *",
        f"  User {user}",
        f"  Port {PORT}",
        f"  IdentityFile {folder}/id",
        "  IdentitiesOnly yes",
        f"  UserKnownHostsFile {folder}/known_hosts",
        "  GlobalKnownHostsFile none",
        "  StrictHostKeyChecking yes",
        "  BatchMode yes",
        "  ConnectTimeout 10",
        f"  KexAlgorithms {KEX}",
        "  ServerAliveInterval 3",
        "  ServerAliveCountMax 3",
        "  LogLevel ERROR",
        "",
    )
    return "\n".join((*blocks, *rest))


def known_hosts(workers: Sequence[Endpoint]) -> str:
    return "".join(f"{w.names[0]} {w.host_key}\n" for w in workers)


def session_script(env_file: str) -> str:
    """Every SSH session starts here: the pod's environment first, then what was asked for.

    `sh -c` is what sshd itself does with a command; the words come from the MPI launcher, which
    holds the job's key, and pass through unchanged. It starts at the root, because Open MPI reads
    a `.profile` from where the session begins, and a user's own is no part of the job.
    """
    return f'#!/bin/sh\ncd /\n. {shlex.quote(env_file)}\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'


def env_file(env: Pairs) -> str:
    """Assignments that any POSIX shell reads back exactly, newlines included.

    Names that a shell cannot hold (`my.key`) are left out: one of them would end every session.
    """
    exportable = ((name, value) for name, value in env if names.shell_env_name(name))
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in exportable)
