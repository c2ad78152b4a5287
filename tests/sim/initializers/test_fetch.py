"""What is fetched is whole or absent (CTL-9): kills, cuts, wrong checksums, full disks."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from mpi_trainer.diagnose.progress import Tracker
from mpi_trainer.initializers import folder, model, parts, report
from mpi_trainer.initializers.parts import Fetched
from tests.dataserver import DataServer
from tests.sim.initializers.fetching import Runner

MIB = 1 << 20


def data_of(size: int) -> bytes:
    """No two blocks of it are alike."""
    blocks = (hashlib.sha256(b"%d" % n).digest() * 2048 for n in range(-(-size // 65536)))
    return b"".join(blocks)[:size]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "CHUNK", 256 << 10)


def test_a_killed_download_goes_on_where_it_stopped(server: DataServer, runner: Runner) -> None:
    data = data_of(70 * MIB)
    (server.root / "train.bin").write_bytes(data)
    server.rate = 30 * MIB
    uri = f"{server.url}/train.bin#sha256={hashlib.sha256(data).hexdigest()}"
    first = runner.process(uri, PARALLEL="2")
    deadline = time.monotonic() + 60
    while not any(
        p.stat().st_size > 2 for p in runner.target.glob(".mpi-trainer-staging-*/*.done")
    ):
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.02)
    first.kill()
    first.communicate()
    assert runner.files == {}
    assert runner.marker is None
    server.rate, server.sent = 0, 0
    second = runner.process(uri)
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0, out
    assert runner.files == {"train.bin": data}
    assert server.sent <= len(data) - 32 * MIB + 1


def test_sigterm_ends_it_at_once_and_keeps_what_came(server: DataServer, runner: Runner) -> None:
    (server.root / "train.bin").write_bytes(data_of(4 * MIB))
    server.rate = MIB
    running = runner.process(f"{server.url}/train.bin")
    deadline = time.monotonic() + 60
    while not server.sent:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    out, _ = running.communicate(timeout=30)
    assert running.returncode == 143
    assert "stopped; what came so far is kept" in out
    assert runner.files == {}


def test_a_check_of_what_came_can_be_stopped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything has come, and is not fetched again."""
    item = model.Item("train.bin", 4 * MIB)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    asked: list[int] = []

    def stop() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise model.Interrupted

    monkeypatch.setattr(parts, "CHUNK", MIB)
    part = parts.Parts(descriptor).begun(0, item)
    for start, end in list(part.missing()):
        part.write(start, bytes((end or 0) - start))
        part.chunk_done(start)
    with pytest.raises(model.Interrupted):
        part.finished(stop)
    part.close()
    again = parts.Parts(descriptor).begun(0, item)
    assert list(again.missing()) == []
    again.finished(lambda: None)
    again.close()
    assert parts.Parts(descriptor).whole()[0].size == 4 * MIB
    os.close(descriptor)


def test_a_wrong_checksum_leaves_nothing(server: DataServer, runner: Runner) -> None:
    (server.root / "train.bin").write_bytes(b"damaged")
    wanted = hashlib.sha256(b"as it was").hexdigest()
    done = runner.here(f"{server.url}/train.bin#sha256={wanted}")
    assert done.status == 1
    assert f"not {wanted}" in done.err
    assert "hint: What the server has is damaged" in done.err
    assert (runner.files, runner.marker) == ({}, None)
    (server.root / "train.bin").write_bytes(b"as it was")
    assert runner.here(f"{server.url}/train.bin#sha256={wanted}").status == 0
    assert runner.files == {"train.bin": b"as it was"}


def test_an_answer_that_is_cut_goes_on_at_the_byte_that_came_last(
    server: DataServer, runner: Runner, no_pauses: None
) -> None:
    data = data_of(2 * MIB)
    (server.root / "train.bin").write_bytes(data)
    server.cut = 300 << 10
    assert runner.here(f"{server.url}/train.bin").status == 0
    assert runner.files == {"train.bin": data}
    assert server.sent < len(data) + 1024


def test_a_server_that_sends_nothing_is_given_up_with_the_reason(
    server: DataServer, runner: Runner, no_pauses: None
) -> None:
    server.answers["/train.bin"] = (503, b"later")
    done = runner.here(f"{server.url}/train.bin")
    assert done.status == 1
    assert "the server answers 503" in done.err
    assert "hint: See whether the server's address is right" in done.err


def test_a_server_without_ranges_begins_again_when_it_is_cut(
    server: DataServer, runner: Runner, no_pauses: None
) -> None:
    data = data_of(MIB)
    (server.root / "train.bin").write_bytes(data)
    server.ranges, server.cut = False, 700 << 10
    assert runner.here(f"{server.url}/train.bin").status == 1
    assert runner.files == {}
    server.cut = 0
    assert runner.here(f"{server.url}/train.bin").status == 0
    assert runner.files == {"train.bin": data}


def test_a_file_of_unknown_length_needs_a_checksum(server: DataServer, runner: Runner) -> None:
    (server.root / "train.bin").write_bytes(b"abc")
    server.ranges = server.length = False
    done = runner.here(f"{server.url}/train.bin")
    assert done.status == 1
    assert "does not say how long the file is" in done.err
    sha256 = hashlib.sha256(b"abc").hexdigest()
    assert runner.here(f"{server.url}/train.bin", SHA256=sha256).status == 0
    assert runner.files == {"train.bin": b"abc"}


def test_what_is_there_is_not_fetched_again_and_what_changed_is(
    tmp_path: Path, runner: Runner
) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "a").write_text("1")
    (source / "sub/b").write_text("2")
    uri = f"file://{source}"
    assert runner.here(uri).status == 0
    (runner.target / "own.txt").write_text("a user's own")
    assert "already" in runner.here(uri).out
    (source / "sub/b").unlink()
    (source / "a").write_text("changed")
    assert runner.here(uri).status == 0
    assert runner.files == {"a": b"changed", "own.txt": b"a user's own"}
    marker = runner.marker
    assert marker is not None
    assert marker.files == {"a": Fetched(7, hashlib.sha256(b"changed").hexdigest())}


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_kill_while_files_get_their_names_is_ended_without_fetching(
    server: DataServer, runner: Runner, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    repository = server.root / "ai/data"
    repository.mkdir(parents=True)
    for name in "abc":
        (repository / name).write_text(name)
    move, left = folder.Folder._move, [renames]

    def killed(*arguments: object) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        move(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(folder.Folder, "_move", killed)
        with pytest.raises(KeyboardInterrupt):
            runner.here("hf://ai/data", ENDPOINT=server.url)
    assert runner.marker is None
    assert len(runner.files) == renames
    server.sent = 0
    assert runner.here("hf://ai/data", ENDPOINT=server.url).status == 0
    assert runner.files == {"a": b"a", "b": b"b", "c": b"c"}
    assert runner.marker is not None
    assert server.sent == 0


@pytest.mark.parametrize("killed", ["_unlink", "_sync"])
def test_what_a_killed_run_would_have_removed_is_gone_after_the_source_has_changed_again(
    tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    """Or files of three versions of a dataset would be one folder, marked as whole."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("1")
    (source / "old").write_text("1")
    assert runner.here(f"file://{source}").status == 0
    (source / "old").unlink()
    (source / "a").write_text("22")
    (source / "new").write_text("22")
    with monkeypatch.context() as patched:
        patched.setattr(*_killing(killed))
        with pytest.raises(KeyboardInterrupt):
            runner.here(f"file://{source}")
    (source / "new").unlink()
    (source / "a").write_text("333")
    assert runner.here(f"file://{source}").status == 0
    assert runner.files == {"a": b"333"}
    assert list(runner.target.glob(".mpi-trainer-staging-*")) == []


def _killing(name: str) -> tuple[object, str, object]:
    unlink = folder._unlink

    def at_the_old(parent: int, path: str) -> None:
        if path == "old":
            raise KeyboardInterrupt
        unlink(parent, path)

    def at_once(*_: object) -> None:
        raise KeyboardInterrupt

    return (folder, name, at_the_old) if name == "_unlink" else (folder.Folder, name, at_once)


def test_names_planted_in_the_folder_move_and_remove_nothing_outside(
    server: DataServer, tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else who can write there says that files were getting their names."""
    (server.root / "a").write_text("fetched")
    (tmp_path / "victim").write_text("a user's own")
    with monkeypatch.context() as patched:
        patched.setattr(*_killing("_sync"))
        with pytest.raises(KeyboardInterrupt):
            runner.here(f"{server.url}/a")
    (runner.target / "a").unlink()
    (note,) = runner.target.glob(".mpi-trainer-staging-*/publishing.json")
    said = msgspec.json.decode(note.read_bytes())
    fetched = said["marker"]["files"]["a"]
    planted = note.parent / f"1-1-{hashlib.sha256(b'x').hexdigest()}"
    planted.write_text("x")
    sums = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    for files, stale in (({"../escaped": sums}, []), ({"c": sums}, ["../victim"])):
        said["marker"]["files"], said["stale"] = {"a": fetched, **files}, stale
        note.write_bytes(msgspec.json.encode(said))
        (note.parent / parts.part_name(0, Fetched(**fetched))).write_text("fetched")
        assert runner.here(f"{server.url}/a").status == 0
        assert runner.files == {"a": b"fetched"}
        assert sorted(path.name for path in tmp_path.iterdir()) == ["served", "target", "victim"]
        (runner.target / "a").unlink()
        note.parent.mkdir(exist_ok=True)
        planted.write_text("x")


def test_folders_planted_among_parts_are_told(
    server: DataServer, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (server.root / "a").write_text("fetched")
    planted = runner.target / f"{folder.STAGING}0"
    planted.mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.chdir(planted)
        for _ in range(1100):
            Path("d").mkdir()
            os.chdir("d")
    try:
        done = runner.here(f"{server.url}/a")
    finally:
        subprocess.run(["rm", "-rf", planted], check=True)
    assert (done.status, "\n\nhint: " in done.err) == (1, True)


@pytest.mark.parametrize("step", ["mkdir", "rename"])
def test_a_volume_that_fails_while_files_get_their_names_is_told(
    tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("1")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    runner.target.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, step, full)
        done = runner.here(f"file://{source}")
    assert done.status == 1
    assert f"error: dataset: {runner.target} is full" in done.err
    assert "\n\nhint: " in done.err
    assert runner.here(f"file://{source}").status == 0


def test_two_at_once_fetch_once(server: DataServer, runner: Runner) -> None:
    (server.root / "train.bin").write_bytes(data_of(MIB))
    server.rate = MIB
    both = [runner.process(f"{server.url}/train.bin") for _ in range(2)]
    outs = [one.communicate(timeout=60)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0], outs
    assert any("is in" in out and "already" in out for out in outs)
    assert server.sent <= MIB + 2


def test_the_folder_tells_whether_a_run_is_whole_file_by_file(
    tmp_path: Path, runner: Runner
) -> None:
    """Checksums beside the files, as `sha256sum` writes them."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("1")
    sums = hashlib.sha256(b"1").hexdigest()
    (source / "SHA256SUMS").write_text(f"{sums}  a\n{sums}  b\n")
    done = runner.here(f"file://{source}")
    assert done.status == 1
    assert "SHA256SUMS names 'b', which is not there" in done.err
    (source / "b").write_text("not 1")
    assert "b has the checksum" in runner.here(f"file://{source}").err
    assert runner.files == {}
    (source / "b").write_text("1")
    assert runner.here(f"file://{source}").status == 0
    assert sorted(runner.files) == ["SHA256SUMS", "a", "b"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_is_told_before_and_in_the_middle(
    server: DataServer, tmp_path: Path, runner: Runner
) -> None:
    (server.root / "train.bin").write_bytes(data_of(12 * MIB))
    runner.target.mkdir()
    script = 'mount -t tmpfs -o size=8m tmpfs "$TARGET_DIR" && exec "$@"'
    command = [sys.executable, "-m", "mpi_trainer.initializers", "dataset"]
    sha256 = hashlib.sha256((server.root / "train.bin").read_bytes()).hexdigest()

    def run() -> subprocess.CompletedProcess[str]:
        given = {
            "STORAGE_URI": f"{server.url}/train.bin",
            "TARGET_DIR": str(runner.target),
            "SHA256": sha256,
        }
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", *command],
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            timeout=60,
        )

    done = run()
    assert done.returncode == 1
    assert "has 8.0 MiB free, and 12.0 MiB are to be fetched" in done.stderr
    assert server.sent <= 1
    server.ranges = server.length = False
    done = run()
    assert done.returncode == 1
    assert "is full: " in done.stderr
    assert "hint: Use a larger volume" in done.stderr


def test_progress_is_read_from_its_lines(
    server: DataServer, runner: Runner, small_chunks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (server.root / "train.bin").write_bytes(data_of(2 * MIB))
    server.rate = 2 * MIB
    monkeypatch.setattr(report, "EVERY", 0.05)
    out = runner.here(f"{server.url}/train.bin", PARALLEL="1").out
    tracker = Tracker()
    seen: list[float] = []
    for n, line in enumerate(out.splitlines()):
        if tracker.see(float(n), line):
            assert tracker.progress is not None
            seen.append(tracker.progress.fraction or 0.0)
            assert tracker.progress.metrics == {}
    assert len(seen) > 2
    assert seen == sorted(seen)


def test_paths_that_leave_the_folder_are_refused() -> None:
    for path in ("../x", "a/../../x", "/x", "a//x", "a/./x", "", "a\0b", "a\\b", "a\nb",
                 ".mpi-trainer-complete.json", "x" * 256, "a/" * 600 + "x"):  # fmt: skip
        with pytest.raises(model.FetchError, match="has a file named"):
            model.checked([model.Item(path, 1)], "s3://b")
    with pytest.raises(model.FetchError, match="both a file 'a' and files in a folder"):
        model.checked([model.Item("a/b", 1), model.Item("a", 1)], "s3://b")


def test_a_listing_without_end_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MOST_FILES", 10)
    asked = 0

    def endless() -> object:
        nonlocal asked
        while True:
            asked += 1
            yield model.Item(f"{asked}", 1)

    with pytest.raises(model.FetchError, match="more than 10 files"):
        model.checked(endless(), "s3://b")  # type: ignore[arg-type]
    assert asked == 11


def test_a_link_that_was_planted_in_the_folder_is_not_followed(
    server: DataServer, tmp_path: Path, runner: Runner
) -> None:
    repository = server.root / "ai/data/sub"
    repository.mkdir(parents=True)
    (repository / "a").write_text("new")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("old")
    runner.target.mkdir()
    (runner.target / "sub").symlink_to(outside)
    done = runner.here("hf://ai/data", ENDPOINT=server.url)
    assert done.status == 1
    assert "is a link or a file, not a folder" in done.err
    assert (outside / "a").read_text() == "old"
    (runner.target / "sub").unlink()
    (runner.target / "sub").mkdir()
    (runner.target / "sub/a").symlink_to(outside / "a")
    assert runner.here("hf://ai/data", ENDPOINT=server.url).status == 0
    assert (runner.target / "sub/a").read_text() == "new"
    assert (outside / "a").read_text() == "old"


def test_a_link_out_of_a_folder_that_is_copied_is_refused(tmp_path: Path, runner: Runner) -> None:
    source = tmp_path / "source"
    (source / "blobs").mkdir(parents=True)
    (source / "blobs/1").write_text("inside")
    (source / "a").symlink_to("blobs/1")
    assert runner.here(f"file://{source}").status == 0
    assert runner.files == {"a": b"inside", "blobs/1": b"inside"}
    (source / "b").symlink_to("/etc/passwd")
    done = runner.here(f"file://{source}")
    assert (done.status, "is a link to what lies outside" in done.err) == (1, True)
    (source / "b").unlink()
    (source / "c").symlink_to("/etc")
    assert "is a link to a folder" in runner.here(f"file://{source}").err
    (source / "c").unlink()
    os.mkfifo(source / "pipe")
    assert "is no plain file" in runner.here(f"file://{source}").err


@pytest.mark.full
@pytest.mark.timeout(900)
def test_five_gigabytes_over_a_slow_link_need_little_memory(
    server: DataServer, runner: Runner
) -> None:
    """Killed in the middle, and resumed."""
    size = 5 << 30
    with (server.root / "train.bin").open("wb") as file:
        file.truncate(size)
        file.seek(size - 1)
        file.write(b"!")
    server.rate = 40 * MIB
    first = runner.process(f"{server.url}/train.bin")
    deadline = time.monotonic() + 400
    while server.sent < size // 2:
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.1)
    first.kill()
    first.communicate()
    assert runner.files == {}
    server.sent = 0
    second = runner.process(f"{server.url}/train.bin")
    assert second.stdout is not None
    out = second.stdout.read()
    _, status, used = os.wait4(second.pid, 0)
    second.stdout.close()
    second.returncode = status
    assert status == 0, out
    print(out.splitlines()[-1], f"{used.ru_maxrss >> 10} MiB", f"{server.sent >> 20} MiB sent")
    assert used.ru_maxrss < 200 << 10
    assert server.sent < size // 2 + 8 * 32 * MIB
    with (runner.target / "train.bin").open("rb") as file:
        assert file.seek(-1, os.SEEK_END) == size - 1
        assert file.read() == b"!"
