"""What this machine can do is found by trying, and the reason for less is said."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.pods import isolation
from mpi_trainer.local.pods.isolation import Isolation, enter_user_namespace, probe
from tests.local.scenario import ORDINARY_UID, Traces, in_child, needs_root


@needs_root
def test_root_and_ordinary_user_get_namespaces_here() -> None:
    traces = Traces("no-process-has-this")
    root: Isolation = in_child(0, probe)
    user: Isolation = in_child(ORDINARY_UID, probe)
    assert (root.kind, root.reason) == ("root", "")
    assert (user.kind, user.reason) == ("rootless", "")
    traces.assert_gone()


@needs_root
def test_probe_is_cheap_and_leaves_no_child_or_descriptor() -> None:
    """In a process of its own, where nothing measures which lines run."""
    script = (
        "import os, resource\n"
        "from mpi_trainer.local.pods.isolation import probe\n"
        "before = len(os.listdir('/proc/self/fd'))\n"
        "for _ in range(5):\n"
        "    probe()\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "try:\n"
        "    children = os.waitpid(-1, os.WNOHANG) and 1\n"
        "except ChildProcessError:\n"
        "    children = 0\n"
        "leaked = len(os.listdir('/proc/self/fd')) - before\n"
        "print((used.ru_utime + used.ru_stime) / 5, children, leaked)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    cpu_seconds, children, leaked = done.stdout.split()
    assert (children, leaked) == ("0", "0")
    assert float(cpu_seconds) < 0.06


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv of util-linux")
def test_root_without_the_right_to_unshare_falls_back_with_the_reason() -> None:
    """CAP_SYS_ADMIN is taken away, as most containers do."""

    script = (
        "from mpi_trainer.local.pods.isolation import probe; p = probe(); print(p.kind, p.reason)"
    )
    seen = subprocess.run(
        ["setpriv", "--bounding-set", "-sys_admin", sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.strip() == (
        "loopback root may not make namespaces here (namespaces: Operation not permitted)"
    )


@needs_root
def test_forbidden_user_namespaces_name_the_setting() -> None:
    """A user namespace of ours with its own limit of zero forbids further ones inside."""

    def body() -> Isolation:
        enter_user_namespace()
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
        return probe()

    seen = in_child(ORDINARY_UID, body)
    assert seen.kind == "loopback"
    assert seen.reason == "user namespaces are forbidden here (user.max_user_namespaces=0)"


# Another thread holds a lock that every forked child asks for first, as libraries make them.
_LOCKED = """
import os, threading
from mpi_trainer.local.pods.isolation import probe

lock, held, done = threading.Lock(), threading.Event(), threading.Event()


def hold():
    with lock:
        held.set()
        done.wait()


holder = threading.Thread(target=hold)
holder.start()
held.wait()
os.register_at_fork(after_in_child=lock.acquire)
found = probe()
done.set()
holder.join()
print(found.kind, found.reason)
"""


@needs_root
def test_a_lock_of_another_thread_does_not_hold_up_the_trial() -> None:
    words = [sys.executable, "-c", _LOCKED]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "root"


def test_a_trial_that_does_not_end_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "TRIAL_SECONDS", 0.001)
    failed: list[str] = []

    def tried() -> None:
        with pytest.raises(LocalError) as raised:
            probe()
        failed.append(raised.value.problem)

    thread = threading.Thread(target=tried)
    thread.start()
    thread.join()
    assert failed[0].startswith("trying out namespaces did not end within 0.001 s (at: ")
