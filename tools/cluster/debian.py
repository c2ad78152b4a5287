"""What must be installed on the machine, and how to get it on Debian.

Only nodes and image building need these packages; the `api` profile needs Go alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from typing import Final

from tools.cluster.errors import ClusterError
from tools.cluster.progress import say

PROGRAMS: Final = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "nft": "nftables",
    "ipset": "ipset",
    "ip": "iproute2",
    "conntrack": "conntrack",
    "nsenter": "util-linux",
    "sysctl": "procps",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "debootstrap": "debootstrap",
    "buildah": "buildah",
}
"""program -> Debian package"""
NODE_PROGRAMS: Final = tuple(p for p in PROGRAMS if p not in ("debootstrap", "buildah"))
IMAGE_PROGRAMS: Final = ("debootstrap", "buildah")


def missing(programs: Iterable[str]) -> list[str]:
    """Packages that bring the programs that are not here."""
    return sorted({PROGRAMS[program] for program in programs if not shutil.which(program)})


def require(programs: Iterable[str]) -> None:
    """Fail with a clear message where root, Linux or a program is missing."""
    require_root()
    packages = missing(programs)
    if packages:
        raise ClusterError(
            f"missing on this machine: {', '.join(packages)}",
            "Run `python -m tools.cluster setup` as root (Debian or Ubuntu).",
        )


def require_root() -> None:
    """Fail unless nodes can be made here: Linux, as root."""
    reason = why_no_nodes()
    if reason:
        raise ClusterError(
            reason, "Use `--profile api`, which needs neither, or a root shell in a Linux machine."
        )


def why_no_nodes() -> str:
    """Why real nodes cannot run here; empty if they can."""
    if sys.platform != "linux":
        return f"nodes need Linux, and this is {sys.platform}"
    if os.geteuid() != 0:
        return "nodes need root, to make network namespaces and mounts"
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        return "this machine does not allow network namespaces"
    return ""


def setup() -> None:
    """Install what is missing."""
    require_root()
    packages = missing(PROGRAMS)
    if not packages:
        say("setup", "nothing is missing")
        return
    if not shutil.which("apt-get"):
        raise ClusterError(
            f"no apt-get here to install {', '.join(packages)}",
            "Install the programs by your system's own means.",
        )
    say("setup", f"install {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], install):
        code = subprocess.run(command, env=environment, stdout=sys.stderr, check=False).returncode
        if code:
            raise ClusterError(f"`{' '.join(command[:2])}` failed with {code}")
    say("setup", "done")
