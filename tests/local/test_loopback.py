"""Pods of plain processes, for machines that forbid namespaces."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.local.errors import PodError, StartError
from mpi_trainer.local.pods import loopback
from mpi_trainer.local.pods.cgroups import Support
from mpi_trainer.local.pods.isolation import Isolation
from mpi_trainer.local.pods.loopback import Loopback
from mpi_trainer.local.pods.pod import ExitStatus, PodFile, PodLimits, PodMount, PodPlan
from tests.local.scenario import ROUNDS, Traces, in_child, output, read_line, until

ISOLATION = Isolation("loopback", "namespaces are forbidden", False, Support("none", "no groups"))


def in_loopback(body: Callable[[Loopback], Any]) -> Any:
    def run() -> Any:
        os.setsid()
        host = Loopback.enter(ISOLATION, "test")
        try:
            return body(host)
        finally:
            host.close()

    return in_child(os.getuid(), run)


def plan(host: Loopback, index: int, script: str, **changes: Any) -> PodPlan:
    made = PodPlan(
        name=f"w{index}",
        hostname=f"w{index}",
        address=host.address(index),
        argv=("/bin/sh", "-c", script),
        env=(("PATH", "/usr/local/bin:/usr/bin:/bin"),),
        cwd="/",
    )
    return replace(made, **changes)


def test_pod_has_its_own_tmpdir_files_and_share() -> None:
    def body(host: Loopback) -> Any:
        paths = host.paths("w0")
        file = PodFile("/etc/mpi/hostfile", 0o640, b"w0\n")
        script = f"echo $TMPDIR; cat {paths.file(file.path)}; echo ok > {paths.share}/done"
        (pod,) = host.start((plan(host, 0, script, files=(file,)),))
        text = output(pod)
        pod.wait()
        mode = Path(paths.file(file.path)).stat().st_mode & 0o777
        return text, paths.tmp, mode, Path(pod.share, "done").read_text()

    text, tmp, mode, done = in_loopback(body)
    assert text == f"{tmp}\nw0\n"
    assert (mode, done) == (0o640, "ok\n")
    assert not Path(tmp).exists()


def test_addresses_are_loopback_and_distinct() -> None:
    host = Loopback(None, "/nowhere", None)  # type: ignore[arg-type]
    assert [host.address(i) for i in (0, 1, 254)] == ["127.0.0.2", "127.0.0.3", "127.0.1.0"]


def test_what_cannot_be_applied_is_listed() -> None:
    def body(host: Loopback) -> Any:
        limits = PodLimits(memory_bytes=1 << 28)
        mount = PodMount("/usr", "/usr", read_only=True)
        asked = plan(host, 0, "true", limits=limits, mounts=(mount,), shm_bytes=1 << 20)
        host.start((asked,))[0].wait()
        with pytest.raises(PodError, match="mountPath /data: needs namespaces"):
            host.start((plan(host, 1, "true", mounts=(PodMount("/usr", "/data"),)),))
        return host.not_applied

    lines = [line.split(":")[0] for line in in_loopback(body)]
    assert lines == ["mountPath /usr", "/dev/shm", "memory limits"]


def test_end_of_main_ends_children_in_sessions_of_their_own() -> None:
    mark = f"{os.getpid()}101"
    traces = Traces(mark)

    def body(host: Loopback) -> Any:
        script = f"setsid sleep 1000 {mark} & sleep 0.05; exit 3"
        return host.start((plan(host, 0, script),))[0].wait(), traces.processes()

    assert in_loopback(body) == (ExitStatus(code=3), [])


def test_kill_and_terminate_end_the_pod() -> None:
    mark = f"{os.getpid()}102"
    traces = Traces(mark)

    def body(host: Loopback) -> Any:
        script = f"setsid sleep 1000 {mark} & sleep 1000 {mark}"
        one, two = host.start(tuple(plan(host, i, script) for i in (0, 1)))
        one.kill()
        two.terminate()
        return one.wait(), two.wait(), traces.processes()

    killed, stopped, left = in_loopback(body)
    assert killed == ExitStatus(signal=signal.SIGKILL)
    assert stopped == ExitStatus(signal=signal.SIGTERM)
    assert left == []


def test_start_error_names_the_program() -> None:
    def body(host: Loopback) -> str:
        with pytest.raises(StartError) as caught:
            host.start((plan(host, 0, "", argv=("/no/such",)),))
        return str(caught.value)

    assert in_loopback(body) == "pod w0: start: /no/such: No such file or directory"


@pytest.mark.parametrize("victim", ["supervisor", "shim"])
def test_kill_9_ends_the_processes_and_the_directory_is_swept(victim: str) -> None:
    mark = f"{os.getpid()}{103 + len(victim)}"
    traces = Traces(mark)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            host = Loopback.enter(ISOLATION, "test")
            script = f"setsid sleep 1000 {mark} & sleep 1000 {mark} & : {mark}; sleep 1000"
            (pod,) = host.start((plan(host, 0, script),))
            os.write(writer, f"{pod.shim}\n".encode())
            pod.wait()
            os.write(writer, b"gone\n")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    shim = int(read_line(reader))
    until(lambda: len(traces.processes()) >= 3, "all processes run")
    if victim == "shim":
        os.kill(shim, signal.SIGKILL)
        assert read_line(reader) == "gone"
        assert traces.processes() == []
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reader)
    traces.assert_gone()
    assert any(f"mpi-trainer.{pid}." in place for place in loopback.sweep())
    assert not any(f"mpi-trainer.{pid}." in place for place in loopback.sweep())


def test_many_rounds_leak_no_descriptor_or_process() -> None:
    def body(host: Loopback) -> int:
        counts = set()
        for _ in range(ROUNDS):
            for pod in host.start(tuple(plan(host, i, "sleep 1000") for i in (0, 1))):
                pod.release()
            counts.add(len(list(Path("/proc/self/fd").iterdir())))
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        return len(counts)

    assert in_loopback(body) == 1
