"""The end of a cluster: everything that it made on the machine is taken back, and proven gone.

It works from the kernel's own lists (process marks, cgroups, mounts, namespaces, links), not from
notes of what was started, and may be run at any time, any number of times. Containers are
killed, not asked: nothing in a test cluster is worth waiting for.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from tools.cluster import cgroups, kernel, network, processes
from tools.cluster.errors import ClusterError
from tools.cluster.lock import locked
from tools.cluster.paths import clusters_root
from tools.cluster.progress import say
from tools.cluster.spec import Spec, existing, load


def down(name: str) -> bool:
    """End the cluster with this name; whether there was one."""
    with locked(clusters_root() / f"{name}.lock", "down"):
        spec = load(name)
        if spec is None:
            return False
        remove(spec)
        return True


def remove(spec: Spec) -> None:
    """Take everything back. The caller holds the cluster's lock."""
    say(spec.name, "down")
    processes.end(_daemons(spec, "kubelet"))
    processes.end(_pod_processes(spec))
    processes.end(processes.marked(spec.state))
    processes.end(_pod_processes(spec))
    if os.geteuid() == 0:
        _unmount(spec)
        network.remove(spec.addresses)
        network.unguard(spec.addresses)
        for path in cgroups.existing(f"{spec.addresses.bridge}-"):
            cgroups.remove(path.name)
        with locked(clusters_root() / "kernel.lock", "down"):
            if not [s for s in existing() if s.real_nodes and s.name != spec.name]:
                kernel.restore_settings(clusters_root())
        shutil.rmtree(spec.run, ignore_errors=True)
    left = leftovers(spec)
    if left:
        raise ClusterError(
            f"{spec.name}: not all could be taken back: {'; '.join(left)}", "Run `down` again."
        )
    _delete_state(spec.state)
    say(spec.name, "gone")


def leftovers(spec: Spec) -> list[str]:
    """What the cluster still has on this machine, apart from its files on disk."""
    found = [f"process {pid}" for pid in processes.marked(spec.state)]
    found += [f"mount {path}" for path in _mounts(spec)]
    found += [f"namespace {name}" for name in network.namespaces(spec.addresses)]
    found += [f"link {name}" for name in network.links(spec.addresses)]
    found += [f"cgroup {path}" for path in cgroups.existing(f"{spec.addresses.bridge}-")]
    return found


def _daemons(spec: Spec, prefix: str) -> list[int]:
    names = processes.recorded(spec.state)
    return [pid for name, pid in names.items() if pid and name.startswith(prefix)]


def _pod_processes(spec: Spec) -> list[int]:
    groups = {path.name for path in cgroups.existing(f"{spec.addresses.bridge}-")}
    return [pid for group in groups for pid in cgroups.members(group)]


def _mounts(spec: Spec) -> list[str]:
    """Mount points below the cluster's directories, deepest first."""
    roots = (f"{spec.state}/", f"{spec.run}/")
    points = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        point = line.split()[1].encode().decode("unicode_escape")
        if point.startswith(roots):
            points.append(point)
    return points[::-1]


def _unmount(spec: Spec) -> None:
    for point in _mounts(spec):
        try:
            processes.run(["umount", "-l", point])
        except ClusterError:
            # A container that was on its way out may have taken it along.
            if point in _mounts(spec):
                raise


def _delete_state(state: Path) -> None:
    """Delete the files; the spec goes last, so that an interrupted `down` can be repeated."""
    for path in state.iterdir():
        if path.name != "spec.json":
            _delete(path)
    (state / "spec.json").unlink(missing_ok=True)
    state.rmdir()


def _delete(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink()
        return
    for _ in range(5):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(0.1)
    shutil.rmtree(path)
