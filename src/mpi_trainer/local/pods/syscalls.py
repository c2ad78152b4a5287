"""The few Linux system calls that Python 3.11 does not offer, through ctypes.

Every function raises `OSError` with the errno and, where there is one, the path it was about.
Danger: `unshare` and `pivot_root` change the calling process for good; only forked children that
never return into the caller's code may use them. Importing this module is harmless anywhere,
calling it needs Linux.
"""

import ctypes
import os
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 0x1
MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REMOUNT: Final = 0x20
MS_BIND: Final = 0x1000
MS_MOVE: Final = 0x2000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000

MNT_DETACH: Final = 2

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36

_SYS_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41, "ppc64le": 203, "s390x": 217, "riscv64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        os.fsencode(kind),
        ctypes.c_ulong(flags),
        os.fsencode(data) if data else None,
    )
    _check(result, target)


def unmount(target: str, flags: int = 0) -> None:
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(flags)), target)


def pivot_root(new_root: str, put_old: str) -> None:
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(38, f"pivot_root is not known for the machine type {os.uname().machine}")
    result = _libc.syscall(ctypes.c_long(number), os.fsencode(new_root), os.fsencode(put_old))
    _check(result, new_root)


def exchange(one: str, other: str) -> None:
    """Each path is the other's from now on, without a moment at which one is missing."""
    here, swap = ctypes.c_int(-100), ctypes.c_uint(2)
    _check(_libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), swap), other)


def set_hostname(name: str) -> None:
    raw = os.fsencode(name)
    _check(_libc.sethostname(raw, ctypes.c_size_t(len(raw))))


def die_with_parent(signal_number: int) -> None:
    """Ask for a signal when the parent *thread* dies; the caller checks that it still lives."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    """Become the parent of every orphan below this process, so that it can be waited for."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def allow_own_proc() -> None:
    """Give /proc/self back to a process that changed its uid, which the uid map is written to."""
    _prctl(_PR_SET_DUMPABLE, 1)


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero))


def _check(result: int, path: str | None = None) -> None:
    if result != -1:
        return
    number = ctypes.get_errno()
    if path is None:
        raise OSError(number, os.strerror(number))
    raise OSError(number, os.strerror(number), path)
