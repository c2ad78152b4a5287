"""Pods made of namespaces, seen from the supervisor that holds them.

`Sandbox.enter` puts the calling process into a mount and a network namespace of its own (and as
an ordinary user first into a user namespace that maps the user to itself). Guarantee: whatever
dies by whatever signal, the kernel ends all pods and frees their files, mounts and links; only
empty control groups can outlive a killed supervisor, and `cgroups.sweep` removes those.
Danger: the supervisor is changed for good; fork it for this, from a process with one thread.
"""

import os
import time
from pathlib import Path
from typing import Self

from mpi_trainer.local.errors import PodError, StartError
from mpi_trainer.local.pods import network, passwd, rootfs, sshd, syscalls
from mpi_trainer.local.pods.cgroups import JobGroups
from mpi_trainer.local.pods.isolation import (
    SCRATCH,
    Isolation,
    enter_user_namespace,
    host_path,
    mount_scratch,
)
from mpi_trainer.local.pods.pod import PodFile, PodPaths, PodPlan
from mpi_trainer.local.pods.running_pod import START_SECONDS, ShimPod, release_all, spawn
from mpi_trainer.local.pods.shim import PodStart, run_shim


class Sandbox:
    """A `PodHost` of namespaces; make it with `enter`."""

    def __init__(self, isolation: Isolation, groups: JobGroups, shared: tuple[str, ...]) -> None:
        self._isolation = isolation
        self._groups = groups
        self._shared = shared
        self._network = network.PodNetwork()
        self._members: list[ShimPod] = []
        self._count = 0
        self._account = passwd.Account(os.getuid(), os.getgid(), str(Path.home()))

    @classmethod
    def enter(cls, isolation: Isolation, name: str, shared_dirs: tuple[str, ...] = ()) -> Self:
        """Change the calling process into the supervisor of a job. `shared_dirs` are the host
        directories that pods must see where they are, even below /tmp; the first is the job's."""
        groups = JobGroups.make(isolation.cgroups, name)
        try:
            if isolation.kind == "rootless":
                enter_user_namespace()
            syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET)
            mount_scratch()
            syscalls.adopt_orphans()
            return cls(isolation, groups, shared_dirs)
        except OSError as error:
            groups.close()
            raise PodError(f"cannot make the sandbox of job {name}: {error}") from error

    @property
    def not_applied(self) -> tuple[str, ...]:
        return self._groups.not_applied

    @property
    def port(self) -> int:
        return sshd.PORT

    def address(self, index: int) -> str:
        return network.pod_address(index)

    def paths(self, name: str) -> PodPaths:
        return PodPaths(prefix="", share=rootfs.SHARE, tmp="/tmp")

    def start(self, plans: tuple[PodPlan, ...]) -> tuple[ShimPod, ...]:
        births = [self._prepare(plan) for plan in plans]
        new: list[ShimPod] = []
        try:
            for birth in births:
                new.append(_spawn(birth))
            deadline = time.monotonic() + START_SECONDS
            for pod, plan in zip(new, plans, strict=True):
                self._connect(pod, plan, deadline)
            for pod in new:
                pod.receive(b"run", deadline)
        except BaseException:
            release_all(new)
            raise
        self._members.extend(new)
        return tuple(new)

    def close(self) -> None:
        release_all(self._members)
        self._members.clear()
        self._network.close()
        self._groups.close()

    def _prepare(self, plan: PodPlan) -> PodStart:
        scratch = f"{SCRATCH}/{self._count}"
        self._count += 1
        share = Path(scratch, "share")
        share.mkdir(parents=True)
        wanted = rootfs.Wanted(
            files=(*self._system_files(plan), *plan.files),
            mounts=plan.mounts,
            shared=(plan.cwd, *self._home(), *self._shared),
            own=(self._account.home, plan.cwd, *self._shared),
            share_source=str(share),
            shm_bytes=plan.shm_bytes,
        )
        facts = rootfs.survey(wanted, self._isolation.overlay, host_path, self._account.uid)
        return PodStart(plan, rootfs.plan(wanted, facts), scratch, host_path)

    def _home(self) -> tuple[str, ...]:
        """The user's home, unless it is a directory of which each pod has its own."""
        return () if self._account.home in rootfs.HIDDEN else (self._account.home,)

    def _system_files(self, plan: PodPlan) -> tuple[PodFile, ...]:
        users = passwd.passwd(passwd.host_text("/etc/passwd"), self._account)
        groups = passwd.group(passwd.host_text("/etc/group"), self._account)
        texts = {
            "/etc/hosts": plan.hosts,
            "/etc/hostname": f"{plan.hostname}\n",
            "/etc/passwd": users,
            "/etc/group": groups,
        }
        files = tuple(
            PodFile(path, 0o644, text.encode(errors="surrogateescape"))
            for path, text in texts.items()
        )
        if self._account.uid:
            return files
        return (*files, PodFile("/etc/shadow", 0o600, passwd.shadow(users, self._account).encode()))

    def _connect(self, pod: ShimPod, plan: PodPlan, deadline: float) -> None:
        """Give the new pod its network and limits, then let it go on."""
        pod.set_init(int(pod.receive(b"init", deadline)))
        try:
            self._network.attach(pod.pid, plan.address)
            pod.limit(self._groups.add(plan.name, pod.pid, plan.limits))
        except OSError as error:
            raise StartError(plan.name, "connect the pod", str(error)) from error
        pod.link.send(b"go")


def _spawn(birth: PodStart) -> ShimPod:
    supervisor = os.getpid()
    return spawn(
        ShimPod, birth.plan.name, birth.scratch, lambda ends: run_shim(birth, ends, supervisor)
    )
