"""Nobody works in another user's folders: not in a planted one in /tmp, not in another's store."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.local import paths
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.jobs.jobdir import Damaged, JobDir, JobState
from mpi_trainer.local.pods import loopback
from mpi_trainer.local.pods.cgroups import Support
from mpi_trainer.local.pods.isolation import Isolation
from mpi_trainer.local.pods.loopback import Loopback
from mpi_trainer.sdk.job.new import NewJob
from tests.local.ordinary import UID as ATTACKER
from tests.local.scenario import in_child, needs_root

VICTIM = 23456
ISOLATION = Isolation("loopback", "as asked for", False, Support("none", "no groups"))
STATE = JobState(
    created=datetime(2026, 1, 1, tzinfo=UTC), workers=1, slots=1, implementation="MPICH"
)

pytestmark = needs_root


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp: everybody writes, nobody removes what is another's."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


def planted(shared: Path, kind: str, pid: int) -> None:
    """The attacker's own folder under the name that this process would choose first."""
    trap = shared / "attackers"
    trap.mkdir()
    trap.chmod(0o777)
    name = shared / loopback._home_of(pid)
    if kind == "symlink":
        name.symlink_to(trap)
    else:
        trap.rename(name)


@pytest.mark.parametrize("kind", ["symlink", "folder"])
@pytest.mark.parametrize("victim", [0, VICTIM])
def test_a_planted_home_in_tmp_is_not_used(shared: Path, kind: str, victim: int) -> None:
    """S-9: the workers' keys and scripts are written there."""

    def enter() -> Any:
        tempfile.tempdir = str(shared)
        os.write(tell, b"!")
        os.read(go, 1)
        host = Loopback.enter(ISOLATION, "test")
        home = Path(host.paths("w0").share).parents[1]
        seen = home.lstat()
        host.close()
        return seen.st_uid, seen.st_mode & 0o7777, home.is_symlink()

    (ready, tell), (go, release) = os.pipe(), os.pipe()
    helper = os.fork()
    if helper == 0:  # waits for the victim to exist, and plants what the victim is to use
        os.read(ready, 1)
        children = Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split()
        others = [int(pid) for pid in children if int(pid) != os.getpid()]
        os.setuid(ATTACKER)
        planted(shared, kind, others[-1])
        os.write(release, b"!")
        os._exit(0)
    try:
        assert in_child(victim, enter) == (victim, 0o700, False)
    finally:
        assert os.waitpid(helper, 0)[1] == 0
        for end in (ready, tell, go, release):
            os.close(end)
    assert {p.lstat().st_uid for p in shared.iterdir()} == {ATTACKER}, "only the trap is left"


@pytest.fixture
def store(shared: Path) -> Path:
    """The attacker's store, with a job that has lost its supervisor: whoever looks repairs it."""
    base = shared / "state"

    def make() -> None:
        folder = JobDir(base / paths.PRODUCT / "jobs/default/trap")
        folder.path.mkdir(parents=True)
        folder.write_job(mpijob_with_defaults(NewJob("trap", ("true",)).mpijob()))
        folder.write_settings(LocalSettings(cwd="/", env=()))
        folder.write_state(STATE)
        for name in (".state.json.new", "edit.lock", "events.jsonl"):
            (folder.path / name).symlink_to(shared / "precious")

    in_child(ATTACKER, make)
    (shared / "precious").write_text("old")
    (shared / "precious").chmod(0o600)
    return base


ODH = (sys.executable, "-c", "from mpi_trainer.cli.main import main; main()")


@pytest.mark.parametrize(
    "verb", [("get", "trap"), ("list",), ("list", "-A"), ("delete", "trap"), ("describe", "trap")]
)
def test_root_does_not_work_in_another_users_store(store: Path, verb: tuple[str, ...]) -> None:
    """S-9: `sudo` that keeps HOME; a planted link would have been written through as root."""
    env = {**os.environ, "XDG_STATE_HOME": str(store), "ODH_BACKEND": "local"}
    done = subprocess.run(
        [*ODH, "mpijob", *verb], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2, done
    assert f"belongs to user {ATTACKER}, and this is user 0" in done.stderr
    assert "hint: Run as that user, or use a folder of your own" in done.stderr
    assert (store.parent / "precious").read_text() == "old"
    assert (store / paths.PRODUCT / "jobs/default/trap/state.json").exists()


def test_another_users_store_is_refused_to_ordinary_users_too(store: Path) -> None:
    def look() -> str:
        os.environ["XDG_STATE_HOME"] = str(store)
        with pytest.raises(LocalError) as caught:
            paths.jobs_dir()
        return caught.value.problem

    assert f"belongs to user {ATTACKER}, and this is user {VICTIM}" in in_child(VICTIM, look)


@pytest.mark.parametrize("link", ["state.json", "events.jsonl", "edit.lock", "alive.lock"])
def test_no_link_in_a_jobs_folder_is_followed(tmp_path: Path, link: str) -> None:
    """S-9: the second door, should the folder be ours and writable for others."""
    target = tmp_path / "target"
    folder = JobDir(tmp_path / "job")
    folder.path.mkdir()
    (folder.path / link).symlink_to(target)
    with pytest.raises((OSError, Damaged), match="symbolic link"):
        if link == "events.jsonl":
            folder.events()
        elif link == "edit.lock":
            with folder.edited():
                pass
        elif link == "alive.lock":
            folder.lock_alive()
        else:
            folder.state()
    assert not target.exists()


def test_a_link_in_the_place_of_a_new_file_is_replaced(tmp_path: Path) -> None:
    """S-9: `.state.json.new` was written through."""
    target = tmp_path / "target"
    target.write_text("old")
    folder = JobDir(tmp_path)
    (tmp_path / ".state.json.new").symlink_to(target)
    folder.write_state(STATE)
    assert (folder.state(), target.read_text()) == (STATE, "old")
    assert not (tmp_path / "state.json").is_symlink()


def test_root_runs_no_program_out_of_another_users_folder(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S-9's class: MPI and sshd come from the data folder, and root would run them."""
    home = shared / "home"
    in_child(ATTACKER, home.mkdir)
    (home / ".local/share").mkdir(parents=True)  # root's: an earlier `sudo` made it
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    for place in (paths.data_dir, paths.jobs_dir, paths.claims_dir):
        with pytest.raises(LocalError, match=f"{home} belongs to user {ATTACKER}"):
            place()
    monkeypatch.setenv("HOME", "/root")
    assert paths.jobs_dir() == Path("/root/.local/state/mpi-trainer/jobs")


def test_what_an_administrator_installed_is_for_everybody(shared: Path) -> None:
    def look() -> str:
        os.environ["XDG_DATA_HOME"] = str(shared)
        return str(paths.data_dir())

    assert in_child(VICTIM, look) == str(shared / paths.PRODUCT)


def test_a_file_server_that_gives_all_files_to_one_user_is_no_attack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New files belong to the folder's owner there, and so does the folder."""
    monkeypatch.setattr(os, "geteuid", lambda: VICTIM)
    paths.demand_own(tmp_path, tmp_path)


def test_the_folder_of_jobs_is_closed_to_others_whatever_the_umask(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mpi_trainer.local.jobs import store

    monkeypatch.setenv("XDG_STATE_HOME", str(shared / "own"))
    folder = JobDir(paths.jobs_dir() / "default" / "job")
    before = os.umask(0)
    try:
        job = mpijob_with_defaults(NewJob("job", ("true",)).mpijob())
        with store._prepared(folder, job, LocalSettings(cwd="/", env=())):
            modes = [p.stat().st_mode & 0o777 for p in (folder.path.parent, paths.jobs_dir())]
    finally:
        os.umask(before)
    assert modes == [0o700, 0o700]
