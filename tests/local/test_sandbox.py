"""Real pods in real namespaces, as root and as an ordinary user."""

import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.local.errors import StartError
from mpi_trainer.local.pods import isolation, syscalls
from mpi_trainer.local.pods.pod import ExitStatus, PodFile, PodLimits, PodMount
from mpi_trainer.local.pods.rootfs import MountPathError
from mpi_trainer.local.pods.sandbox import Sandbox
from tests.local.scenario import (
    ORDINARY_UID,
    ROUNDS,
    Traces,
    become,
    in_child,
    in_sandbox,
    needs_root,
    output,
    plan,
    read_line,
    until,
)

pytestmark = needs_root

both = pytest.mark.parametrize("uid", [0, ORDINARY_UID], ids=["root", "rootless"])

ECHO_SERVER = (
    "import socket; s = socket.create_server(('', 7000)); print('ready', flush=True); "
    "c, a = s.accept(); c.sendall(c.recv(99)[::-1]); print(a[0])"
)
ECHO_CLIENT = (
    "import socket; c = socket.create_connection(('w0', 7000), 10); "
    "c.sendall(b'abc'); print(c.recv(99).decode(), socket.gethostname())"
)


@both
def test_pods_reach_each_other_by_name(uid: int) -> None:
    def body(sandbox: Sandbox) -> Any:
        server = plan(sandbox, 0, "", argv=("/usr/bin/env", "python3", "-c", ECHO_SERVER))
        client = plan(sandbox, 1, "", argv=("/usr/bin/env", "python3", "-c", ECHO_CLIENT))
        (one,) = sandbox.start((server,))
        assert read_line(one.stdout) == "ready"
        (two,) = sandbox.start((client,))
        return output(two), output(one), sandbox.address(1), one.wait()

    said, seen, address, ended = in_sandbox(uid, body)
    assert said == "cba w1\n"
    assert seen == f"{address}\n"
    assert ended == ExitStatus(code=0)


@both
def test_supervisor_reaches_a_pod_by_address(uid: int) -> None:
    def body(sandbox: Sandbox) -> str:
        server = plan(sandbox, 3, "", argv=("/usr/bin/env", "python3", "-c", ECHO_SERVER))
        (pod,) = sandbox.start((server,))
        read_line(pod.stdout)
        with socket.create_connection((sandbox.address(3), 7000), 10) as link:
            link.sendall(b"xy")
            return link.recv(9).decode()

    assert in_sandbox(uid, body) == "yx"


@both
def test_a_restarted_pod_is_reached_at_once_at_its_address(uid: int) -> None:
    def body(sandbox: Sandbox) -> list[str]:
        server = plan(sandbox, 0, "", argv=("/usr/bin/env", "python3", "-c", ECHO_SERVER))
        client = plan(sandbox, 1, "", argv=("/usr/bin/env", "python3", "-c", ECHO_CLIENT))
        said = []
        for _ in range(2):
            (one,) = sandbox.start((server,))
            read_line(one.stdout)
            (two,) = sandbox.start((client,))
            said.append(output(two))
            one.release()
            two.release()
        return said

    assert in_sandbox(uid, body) == ["cba w1\n"] * 2


def _without_home(listed: str) -> str:
    """Less the home of whoever runs the tests, and the way to it, should that be below /tmp."""
    home = Path.home().resolve()
    tops = {str(Path.home()), str(home)}
    shown = {p.removeprefix("/tmp/").split("/")[0] for p in tops if p.startswith("/tmp/")}
    return "\n".join(line for line in listed.splitlines() if line not in shown)


@both
def test_processes_ipc_tmp_and_shm_are_private(uid: int) -> None:
    script = (
        "echo mine > /tmp/note; echo mine > /dev/shm/note; ipcmk -Q > /dev/null; "
        "ls /tmp /dev/shm; ipcs -q | grep -c 0x; ls -d /proc/[0-9]* | head -1; "
        "ls /sys/class/net | tr '\\n' ' '"
    )

    def body(sandbox: Sandbox) -> list[str]:
        return [output(p) for p in sandbox.start(tuple(plan(sandbox, i, script) for i in (0, 1)))]

    private = ["/dev/shm:", "note", "/tmp:", "note", "1", "/proc/1", "eth0", "lo"]
    for text in in_sandbox(uid, body):
        assert _without_home(text).split() == private


@both
def test_pod_runs_as_the_caller_and_has_an_account_with_sh(uid: int) -> None:
    def body(sandbox: Sandbox) -> str:
        (pod,) = sandbox.start((plan(sandbox, 0, "id -u; getent passwd $(id -u); hostname"),))
        return output(pod)

    number, entry, hostname = in_sandbox(uid, body).split()
    assert int(number) == uid
    assert entry.endswith(":/bin/sh")
    assert hostname == "w0"


@both
def test_missing_mount_paths_exist_in_the_pod_only(uid: int, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:2]:
        parent.chmod(0o755)
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o777)
    (data / "seen").write_text("x")
    mounts = (
        PodMount(str(data), "/missing-top/deep/data"),
        PodMount(str(data), "/mnt/missing/data", read_only=True),
        PodMount(None, "/opt/missing/empty"),
        PodMount(str(data / "seen"), "/srv/missing/file"),
    )
    files = (PodFile("/etc/mpi/hostfile", 0o640, b"w0 slots=1\n"),)
    script = (
        "cat /etc/mpi/hostfile; stat -c %a /etc/mpi/hostfile; cat /missing-top/deep/data/seen "
        "/srv/missing/file; echo; echo new > /missing-top/deep/data/written; "
        "touch /mnt/missing/data/no 2>/dev/null || echo read-only; "
        "touch /opt/missing/empty/yes && ls /opt/missing/empty; ls -d /usr/bin /etc/ssl"
    )
    before = {d: sorted(os.listdir(d)) for d in ("/", "/etc", "/mnt", "/opt", "/srv")}  # noqa: PTH208

    def body(sandbox: Sandbox) -> str:
        (pod,) = sandbox.start((plan(sandbox, 0, script, mounts=mounts, files=files),))
        return output(pod)

    text = in_sandbox(uid, body)
    assert text.split() == (
        ["w0", "slots=1", "640", "xx", "read-only", "yes", "/etc/ssl", "/usr/bin"]
    )
    assert (data / "written").read_text() == "new\n"
    assert {d: sorted(os.listdir(d)) for d in before} == before  # noqa: PTH208


@both
def test_without_overlayfs_missing_paths_work_too(uid: int) -> None:
    script = "cat /etc/mpi/hostfile /etc/hostname; ls -d /etc/ssl /etc/hosts; cat /new/dir/f"
    files = (
        PodFile("/etc/mpi/hostfile", 0o644, b"hello\n"),
        PodFile("/new/dir/f", 0o600, b"deep\n"),
    )

    def run() -> str:
        found = isolation.probe()
        plain = isolation.Isolation(found.kind, "", False, found.cgroups)
        sandbox = Sandbox.enter(plain, "test")
        try:
            (pod,) = sandbox.start((plan(sandbox, 0, script, files=files),))
            return output(pod)
        finally:
            sandbox.close()

    assert in_child(uid, run).split() == ["hello", "w0", "/etc/hosts", "/etc/ssl", "deep"]


@both
def test_a_working_directory_below_tmp_stays_visible(uid: int, tmp_path: Path) -> None:
    for place in (tmp_path, *list(tmp_path.parents)[:2]):
        place.chmod(0o755)
    tmp_path.chmod(0o777)
    (tmp_path / "train.py").write_text("")
    assert str(tmp_path).startswith("/tmp/"), "the test needs a directory below /tmp"

    def body(sandbox: Sandbox) -> str:
        (pod,) = sandbox.start(
            (plan(sandbox, 0, "pwd; ls; echo > out; ls /tmp", cwd=str(tmp_path)),)
        )
        return output(pod)

    top = tmp_path.relative_to("/tmp").parts[0]
    assert _without_home(in_sandbox(uid, body)).split() == [str(tmp_path), "train.py", top]
    assert (tmp_path / "out").exists()


@both
def test_a_source_below_the_hosts_run_is_found(uid: int) -> None:
    def body(sandbox: Sandbox) -> str:
        mounts = (PodMount("/run", "/mnt/host-run"), PodMount("/var/run", "/opt/linked"))
        (pod,) = sandbox.start(
            (plan(sandbox, 0, "cd /mnt/host-run; ls; cd /opt/linked; ls", mounts=mounts),)
        )
        return output(pod)

    names = sorted(p.name for p in Path("/run").iterdir() if not p.name.startswith("."))
    assert sorted(in_sandbox(uid, body).split()) == sorted(names * 2)


def test_read_only_mount_keeps_the_flags_that_a_user_namespace_locks() -> None:
    def run() -> str:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        syscalls.mount("", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
        flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
        syscalls.mount("tmpfs", "/mnt", "tmpfs", flags, "mode=777")
        become(ORDINARY_UID)
        sandbox = Sandbox.enter(isolation.probe(), "test")
        try:
            mounts = (PodMount("/mnt", "/opt/new/ro", read_only=True),)
            script = "grep /opt/new/ro /proc/mounts | cut -d' ' -f4"
            (pod,) = sandbox.start((plan(sandbox, 0, script, mounts=mounts),))
            return output(pod)
        finally:
            sandbox.close()

    assert set(in_child(0, run).split(",")) >= {"ro", "nosuid", "nodev", "noexec"}


def test_a_strict_umask_does_not_close_the_pods_etc() -> None:
    def body(sandbox: Sandbox) -> str:
        os.umask(0o077)
        files = (PodFile("/etc/mpi/hostfile", 0o644, b""), PodFile("/new/dir/f", 0o644, b""))
        script = "stat -c %a / /etc /etc/mpi /new/dir /run/sshd; umask"
        (pod,) = sandbox.start((plan(sandbox, 0, script, files=files),))
        return output(pod)

    assert in_sandbox(0, body).split() == ["755"] * 5 + ["0077"]


@both
def test_a_missing_path_below_the_working_directory_is_refused(uid: int, tmp_path: Path) -> None:
    for place in (tmp_path, *list(tmp_path.parents)[:2]):
        place.chmod(0o755)
    (tmp_path / "job").mkdir()

    def body(sandbox: Sandbox) -> str:
        mounts = (PodMount("/usr", f"{tmp_path}/job/data"),)
        with pytest.raises(MountPathError) as caught:
            sandbox.start((plan(sandbox, 0, "true", cwd=f"{tmp_path}/job", mounts=mounts),))
        return str(caught.value)

    missing = f"{tmp_path}/job/data"
    assert in_sandbox(uid, body) == (
        f"mountPath {missing}: this directory does not exist; create it with mkdir -p {missing} "
        f"or choose a mountPath outside {tmp_path}/job"
    )
    assert list((tmp_path / "job").iterdir()) == []


def test_a_missing_path_below_home_is_refused() -> None:
    def run() -> str:
        os.environ["HOME"] = "/usr/share"
        sandbox = Sandbox.enter(isolation.probe(), "test")
        try:
            with pytest.raises(MountPathError) as caught:
                sandbox.start(
                    (plan(sandbox, 0, "true", mounts=(PodMount(None, "/usr/share/new"),)),)
                )
            return str(caught.value)
        finally:
            sandbox.close()

    assert in_child(0, run).endswith("or choose a mountPath outside /usr/share")


@both
def test_nothing_is_mounted_on_a_host_that_shares_its_mounts(uid: int) -> None:
    """Most distributions make the root mount shared, so that new mounts reach all namespaces."""

    def mounts() -> list[str]:
        return Path("/proc/self/mountinfo").read_text().splitlines()

    def run() -> tuple[list[str], list[str]]:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        # What others mount meanwhile stays out.
        syscalls.mount("", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
        syscalls.mount("", "/", "", syscalls.MS_REC | 1 << 20)
        before = mounts()
        in_sandbox(uid, lambda s: output(s.start((plan(s, 0, "true"),))[0]))
        after = mounts()
        # A mount whose folder somebody removes meanwhile goes in all namespaces.
        there = {line for line in (*before, *after) if os.path.lexists(line.split()[4])}
        return [m for m in before if m in there], [m for m in after if m in there]

    before, after = in_child(0, run)
    assert any("shared:" in line for line in before)
    assert after == before


@both
def test_share_is_read_by_the_supervisor(uid: int) -> None:
    def body(sandbox: Sandbox) -> str:
        where = sandbox.paths("w0").share
        (pod,) = sandbox.start((plan(sandbox, 0, f"echo done > {where}/result"),))
        pod.wait()
        return Path(pod.share, "result").read_text()

    assert in_sandbox(uid, body) == "done\n"


@both
def test_end_of_main_is_the_end_of_the_pod_with_its_status(uid: int) -> None:
    def body(sandbox: Sandbox) -> Any:
        scripts = ("sleep 1000 & exit 7", "kill -SEGV $$", "sleep 1000", "sleep 1000")
        pods = sandbox.start(tuple(plan(sandbox, i, s) for i, s in enumerate(scripts)))
        pods[2].kill()
        pods[3].terminate()
        return [pod.wait() for pod in pods]

    assert in_sandbox(uid, body) == [
        ExitStatus(code=7),
        ExitStatus(signal=signal.SIGSEGV),
        ExitStatus(signal=signal.SIGKILL),
        ExitStatus(signal=signal.SIGTERM),
    ]


@both
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"argv": ("/no/such/program",)}, "start the main process: /no/such/program: No such file"),
        ({"cwd": "/no/such/dir"}, "start the main process: /no/such/dir: No such file"),
        ({"mounts": (PodMount("/no/source", "/mnt"),)}, "mount: /no/source: No such file"),
        ({"hostname": "x" * 300}, "set the host name: Invalid argument"),
        ({"address": "127.0.0.1.2"}, "connect the pod"),
    ],
)
def test_start_errors_name_pod_step_and_cause(uid: int, changes: Any, words: str) -> None:
    def body(sandbox: Sandbox) -> str:
        good = plan(sandbox, 0, "sleep 1000")
        with pytest.raises(StartError) as caught:
            sandbox.start((good, plan(sandbox, 1, "true", **changes)))
        with pytest.raises(ChildProcessError):  # the good one is gone as well
            os.waitpid(-1, os.WNOHANG)
        return str(caught.value)

    text = in_sandbox(uid, body)
    assert text.startswith(f"pod w1: {words}")


def _job_to_kill(uid: int, mark: str) -> tuple[int, list[int]]:
    """A supervisor with three pods and limits: its pid, then for each pod shim and init."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:

        def run() -> None:
            sandbox = Sandbox.enter(isolation.probe(), "test")
            script = f"sleep 1000 {mark} & setsid sleep 1000 {mark} & : {mark}; sleep 1000"
            limits = PodLimits(memory_bytes=1 << 28, cpus=1.0)
            plans = tuple(plan(sandbox, i, script, limits=limits) for i in range(3))
            pods = sandbox.start(plans)
            numbers = [n for pod in pods for n in (pod.shim, pod.pid)]
            os.write(writer, f"{' '.join(map(str, numbers))}\n".encode())
            pods[0].wait()
            os.write(writer, b"first pod gone\n")
            os.read(os.pipe()[0], 1)

        try:
            become(uid)
            run()
        finally:
            os._exit(1)
    os.close(writer)
    numbers = [int(n) for n in read_line(reader).split()]
    return pid, [reader, *numbers]


@both
def test_kill_9_of_the_supervisor_leaves_nothing(uid: int) -> None:
    mark = f"{os.getpid()}001"
    traces = Traces(mark)
    pid, (reader, *pods) = _job_to_kill(uid, mark)
    until(lambda: len(traces.processes()) >= 9, "all processes of the pods run")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reader)
    traces.assert_gone(pid)
    until(lambda: not any(Path(f"/proc/{p}").exists() for p in pods), "shims and inits are gone")


@both
@pytest.mark.parametrize("victim", [0, 1], ids=["shim", "init"])
def test_kill_9_of_a_shim_or_init_ends_that_pod_only(uid: int, victim: int) -> None:
    mark = f"{os.getpid()}{victim + 2:03}"
    traces = Traces(mark)
    pid, (reader, *pods) = _job_to_kill(uid, mark)
    until(lambda: len(traces.processes()) >= 9, "all processes of the pods run")
    os.kill(pods[victim], signal.SIGKILL)
    assert read_line(reader) == "first pod gone"
    until(lambda: len(traces.processes()) == 6, "the pod's own processes are gone, others stay")
    assert not any(Path(f"/proc/{p}").exists() for p in pods[:2])
    assert all(Path(f"/proc/{p}").exists() for p in pods[2:])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reader)
    traces.assert_gone(pid)


def test_memory_limit_kills_and_is_counted() -> None:
    def body(sandbox: Sandbox) -> Any:
        grow = "import sys; b = bytearray(400 << 20); print('survived')"
        big = ("/usr/bin/env", "python3", "-c", grow)
        limits = PodLimits(memory_bytes=64 << 20)
        (pod,) = sandbox.start((plan(sandbox, 0, "", argv=big, limits=limits),))
        text, ended = output(pod), pod.wait()
        figures = pod.oom_kills(), pod.peak_memory()
        pod.release()
        return text, ended, figures, pod.oom_kills(), sandbox.not_applied

    text, ended, (kills, peak), kept, not_applied = in_sandbox(0, body)
    assert (text, ended) == ("", ExitStatus(signal=signal.SIGKILL))
    # Once the first victim's memory is reaped, the kernel may choose the pod's init as well.
    assert kills == kept >= 1
    assert 32 << 20 < peak <= 64 << 20
    assert not_applied == ()


def test_rootless_says_which_limits_are_not_applied() -> None:
    def body(sandbox: Sandbox) -> Any:
        limits = PodLimits(memory_bytes=64 << 20, cpus=1.0)
        (pod,) = sandbox.start((plan(sandbox, 0, "true", limits=limits),))
        pod.wait()
        return pod.oom_kills(), sandbox.not_applied

    kills, lines = in_sandbox(ORDINARY_UID, body)
    assert kills is None
    assert [line.split(":")[0] for line in lines] == ["memory limits", "cpu limits"]


@both
def test_many_rounds_leak_nothing(uid: int) -> None:
    mark = f"{os.getpid()}009"
    traces = Traces(mark)

    def body(sandbox: Sandbox) -> Any:
        limits = PodLimits(memory_bytes=1 << 28)
        counts = set()
        for _ in range(ROUNDS):
            plans = tuple(plan(sandbox, i, f"sleep 1000 {mark}", limits=limits) for i in (0, 1))
            for pod in sandbox.start(plans):
                pod.release()
            mounts = Path("/proc/self/mountinfo").read_text().count("/run/mpi-trainer.pods")
            files = len(list(Path("/run/mpi-trainer.pods").iterdir()))
            counts.add((len(os.listdir("/proc/self/fd")), mounts, files))  # noqa: PTH208
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        sandbox.close()
        sandbox.close()
        groups = isolation.probe().cgroups.memory
        if groups is not None:
            assert not list(Path(groups).glob(f"mpi-trainer.{os.getpid()}.*"))
        return counts

    assert len(in_sandbox(uid, body)) == 1
    traces.assert_gone()
