"""The namespaces of the supervisor itself: who it is, and where it keeps the pods' files.

`mount_scratch` leaves the host as it is: the tmpfs at /run is seen by this process and its pods
only and is freed by the kernel with the last of them. Danger: from then on a path below the host's
/run is found elsewhere; `host_path` says where.
"""

import os
from pathlib import Path
from typing import Final

from mpi_trainer.local.pods import syscalls

SCRATCH: Final = "/run/mpi-trainer.pods"
_HOST_RUN: Final = "/run/mpi-trainer.host"


def host_path(path: str) -> str:
    """Where the supervisor sees a path of the host: its own /run is the job's scratch."""
    if (path + "/").startswith("/run/") and not path.startswith((SCRATCH, _HOST_RUN)):
        return _HOST_RUN + path[len("/run") :]
    return path


def enter_user_namespace() -> None:
    """Keep the own uid and gid, gain all capabilities over what is unshared from now on."""
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def mount_scratch() -> None:
    """A tmpfs at /run that only this mount namespace sees, with the host's /run below it."""
    private = syscalls.MS_REC | syscalls.MS_PRIVATE
    syscalls.mount("", "/", "", private)
    syscalls.mount("tmpfs", "/tmp", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755")
    inside = Path("/tmp", Path(_HOST_RUN).name)
    inside.mkdir()
    syscalls.mount("/run", str(inside), "", syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.mount("/tmp", "/run", "", syscalls.MS_MOVE)
    Path(SCRATCH).mkdir()
