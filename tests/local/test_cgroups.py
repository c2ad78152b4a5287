"""Limits: version 1 for real where this machine has it, version 2 as the files it would write."""

import os
from pathlib import Path

import pytest

from mpi_trainer.local.pods import cgroups
from mpi_trainer.local.pods.cgroups import JobGroups, Support, detect, start_time, sweep
from mpi_trainer.local.pods.pod import PodLimits
from tests.local.scenario import in_child, needs_root, until

needs_v1 = pytest.mark.skipif(detect().kind != "v1", reason="no writable cgroup v1 here")


def proc(tmp_path: Path, cgroup: str, mountinfo: str) -> str:
    (tmp_path / "cgroup").write_text(cgroup)
    (tmp_path / "mountinfo").write_text(mountinfo)
    return str(tmp_path)


def unified(tmp_path: Path, delegated: str) -> Path:
    """A directory that looks like the kernel's: slice/scope, the caller in the scope."""
    scope = tmp_path / "fs" / "slice" / "scope"
    scope.mkdir(parents=True)
    for place in (scope, scope.parent, scope.parent.parent):
        (place / "cgroup.controllers").write_text("cpu memory pids\n")
        (place / "cgroup.subtree_control").write_text("\n")
        (place / "cgroup.type").write_text("domain\n")
    (scope.parent / "cgroup.subtree_control").write_text(delegated)
    return scope


def detected(tmp_path: Path, delegated: str) -> tuple[Support, Path]:
    scope = unified(tmp_path, delegated)
    mount = f"30 23 0:26 / {tmp_path}/fs rw - cgroup2 cgroup2 rw,nsdelegate\n"
    return detect(proc(tmp_path, "0::/slice/scope\n", mount)), scope


def test_v2_uses_the_parent_that_has_controllers_for_its_children(tmp_path: Path) -> None:
    support, scope = detected(tmp_path, "memory cpu\n")
    place = str(scope.parent)
    assert support == Support("v2", memory=place, cpu=place)


def test_v2_without_delegation_says_so(tmp_path: Path) -> None:
    support, scope = detected(tmp_path, "pids\n")
    assert support == Support("none", f"{scope}: no memory controller is delegated to this user")


def test_no_cgroups_at_all_is_said(tmp_path: Path) -> None:
    assert detect(proc(tmp_path, "", "")).reason == "no control groups are mounted"


def test_v1_in_a_container_is_found_relative_to_its_mount(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    mounts = f"35 31 0:32 /docker/abc {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
    support = detect(proc(tmp_path, "4:memory:/docker/abc\n", mounts))
    assert support == Support("v1", memory=str(tmp_path / "memory"), cpu=None)


def test_v2_writes_limits_then_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    support, scope = detected(tmp_path, "memory cpu\n")
    home = scope.parent / f"mpi-trainer.{os.getpid()}.{start_time(os.getpid())}"
    pod = home / "0.w0"
    made = Path.mkdir

    def like_the_kernel(self: Path) -> None:
        made(self)
        (self / "cgroup.controllers").write_text("cpu memory pids\n")
        for name in ("cgroup.subtree_control", "memory.max", "memory.swap.max", "cpu.max"):
            (self / name).write_text("")

    monkeypatch.setattr(Path, "mkdir", like_the_kernel)
    groups = JobGroups.make(support, "job")
    group = groups.add("w0", 4711, PodLimits(memory_bytes=1 << 30, cpus=1.5))
    assert group is not None
    assert (home / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert (pod / "memory.max").read_text() == str(1 << 30)
    assert (pod / "memory.swap.max").read_text() == "0"
    assert (pod / "cpu.max").read_text() == "150000 100000"
    assert (pod / "cgroup.procs").read_text() == "4711"
    (pod / "memory.events").write_text("low 0\noom 2\noom_kill 1\n")
    (pod / "memory.peak").write_text("12345\n")
    assert (group.oom_kills(), group.peak_memory()) == (1, 12345)


@needs_root
@needs_v1
def test_v1_limits_hold_and_close_removes_them() -> None:
    def body() -> tuple[str, str, list[str]]:
        support = detect()
        assert support.memory is not None
        assert support.cpu is not None
        groups = JobGroups.make(support, "job")
        group = groups.add("w0", os.getpid(), PodLimits(memory_bytes=1 << 30, cpus=0.5))
        part = f"mpi-trainer.{os.getpid()}.{start_time(os.getpid())}"
        memory, cpu = Path(support.memory, part), Path(support.cpu, part)
        limit = (memory / "0.w0" / "memory.limit_in_bytes").read_text().strip()
        quota = (cpu / "0.w0" / "cpu.cfs_quota_us").read_text().strip()
        for base in (support.memory, support.cpu):
            Path(base, "cgroup.procs").write_text(str(os.getpid()))
        assert group is not None
        group.close()
        groups.close()
        return limit, quota, [str(p) for p in (memory, cpu) if p.exists()]

    assert in_child(0, body) == (str(1 << 30), "50000", [])


@needs_root
@needs_v1
def test_sweep_removes_groups_of_the_dead_and_keeps_those_of_the_living() -> None:
    def body() -> str:
        groups = JobGroups.make(detect(), "job")
        groups.add("w0", os.getpid(), PodLimits(memory_bytes=1 << 30))
        assert sweep() == ()
        return f"mpi-trainer.{os.getpid()}.{start_time(os.getpid())}"

    left = in_child(0, body)
    memory = detect().memory
    assert memory is not None
    assert Path(memory, left).exists()
    assert left in {Path(p).name for p in sweep()}
    until(lambda: not Path(memory, left).exists(), "the group is removed")


def test_a_recycled_pid_is_not_taken_for_the_supervisor() -> None:
    own = start_time(os.getpid())
    assert own is not None
    assert cgroups.is_alive(f"mpi-trainer.{os.getpid()}.{own}")
    assert not cgroups.is_alive(f"mpi-trainer.{os.getpid()}.{own - 1}")
    assert not cgroups.is_alive("mpi-trainer.x.y")
