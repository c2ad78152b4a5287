"""Archives of strangers: what is hostile is refused, in bounded time and memory."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from mpi_trainer.sdk.code.archives import files_of
from mpi_trainer.sdk.code.bundle import LARGEST, MOST_BYTES, MOST_FILES, bundle
from mpi_trainer.sdk.code.uploads import CodeFile, bundle_of, file_name
from mpi_trainer.sdk.errors import NotShippable

Change = Callable[[tarfile.TarInfo], None]


def tar(names: dict[str, bytes], change: Change | None = None, form: int = 2) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", format=form) as archive:
        for name, data in names.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            if change:
                change(entry)
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def zipped(
    names: dict[str, bytes], change: Callable[[zipfile.ZipInfo], None] | None = None
) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in names.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o755) << 16
            if change:
                change(entry)
            archive.writestr(entry, data)
    return made.getvalue()


def refused(data: bytes, why: str) -> NotShippable:
    with pytest.raises(NotShippable, match=why) as caught:
        files_of(data)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_form_of_tar_is_read_with_long_names_and_modes(form: int) -> None:
    deep = "/".join(["a" * 60] * 3) + "/train.py"
    found = files_of(tar({"./run.sh": b"#!/bin/sh\n", deep: b"print(1)", "ä.txt": b""}, form=form))
    assert found == (
        CodeFile("run.sh", b"#!/bin/sh\n", True),
        CodeFile(deep, b"print(1)", True),
        CodeFile("ä.txt", b"", True),
    )


def test_a_zip_and_a_tar_of_the_same_files_make_the_same_code() -> None:
    names = {"src/b.py": b"b" * 9000, "a.sh": b"#!/bin/sh"}
    code = bundle_of(files_of(tar(names)))
    assert code == bundle_of(files_of(zipped(dict(reversed(names.items())))))
    assert code.files == 2 and code.size == 9009
    with tarfile.open(fileobj=io.BytesIO(code.data)) as archive:
        assert [(one.name, one.mode) for one in archive] == [("a.sh", 0o755), ("src/b.py", 0o755)]


def test_code_that_is_sent_is_the_same_as_the_folder_that_is_shipped(tmp_path: object) -> None:
    folder = tmp_path / "code"  # type: ignore[operator]
    (folder / "src").mkdir(parents=True)
    names = {"src/train.py": b"print(1)\n", "x.txt": b"x", ".env": b"secret", ".odhignore": b"x.*"}
    for name, data in names.items():
        (folder / name).write_bytes(data)
    assert bundle_of([CodeFile(name, data) for name, data in names.items()]) == bundle(folder)


def test_patterns_that_would_be_compared_for_minutes_are_refused() -> None:
    rules = CodeFile(".odhignore", ("*" + "a" * 200 + "b\n").encode() * 70)
    files = [rules, *(CodeFile(f"{number:05}{'a' * 250}", b"") for number in range(5000))]
    with pytest.raises(NotShippable, match="too many patterns"):
        bundle_of(files)
    plain = [CodeFile(".odhignore", b"*.log\n*.ckpt\n" * 20), *files[1:]]
    assert bundle_of(plain).files == 5000


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../evil", "leads out of the folder"),
        ("a/../../evil", "leads out of the folder"),
        ("/etc/passwd", "begins at the root"),
        ("C:/x", "begins at the root"),
        ("a\\..\\b", "should not have"),
        ("a\nb", "should not have"),
        ("a\x1b[2Jb", "should not have"),
        ("/".join("a" * 40), "too long or too deep"),
        ("x" * 2000, "longer than 1024"),
    ],
)
def test_a_name_leads_nowhere_but_into_the_folder(name: str, why: str) -> None:
    refused(tar({name: b"x"}), why)
    refused(zipped({name: b"x"}), why)


def test_names_that_are_no_utf8_are_refused() -> None:
    refused(tar({"b\udcff": b""}), "UTF-8")
    with pytest.raises(NotShippable, match="UTF-8"):
        file_name(b"\xff.py")


@pytest.mark.parametrize(
    ("kind", "word"),
    [(tarfile.SYMTYPE, "a link"), (tarfile.LNKTYPE, "a link"), (tarfile.CHRTYPE, "a device"),
     (tarfile.BLKTYPE, "a device"), (tarfile.FIFOTYPE, "a pipe"), (b"S", "no plain file")],
)  # fmt: skip
def test_links_and_devices_are_refused(kind: bytes, word: str) -> None:
    def change(entry: tarfile.TarInfo) -> None:
        entry.type, entry.linkname = kind, "/etc/passwd"

    refused(tar({"x": b""}, change), f"'x' in the archive is {word}")


def test_a_link_in_a_zip_is_refused() -> None:
    def link(entry: zipfile.ZipInfo) -> None:
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16

    refused(zipped({"x": b"/etc/passwd"}, link), "a link")


def test_the_same_name_twice_and_a_file_as_a_folder_are_refused() -> None:
    for names in (["a", "a"], ["a", "a/b"], ["a/b", "a"]):
        with pytest.raises(NotShippable, match=r"is there twice|is a file and a folder"):
            bundle_of([CodeFile(name, b"") for name in names])


def within(seconds: float, megabytes: float, work: Callable[[], object]) -> None:
    tracemalloc.start()
    began = time.process_time()
    work()
    took = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert took < seconds and peak < megabytes, (took, peak)


def test_a_bomb_is_found_at_its_bound() -> None:
    """128 MiB of zeros in 128 KiB: no more than what may travel is ever held."""
    zeros = gzip.compress(bytes(1 << 20), 9)
    assert len(zeros) < 2000
    sized = io.BytesIO()
    with gzip.GzipFile(fileobj=sized, mode="wb", compresslevel=6) as out:
        out.write(_header(b"x", 1 << 30))
        for _ in range(128):
            out.write(bytes(1 << 20))
    within(10, 250, lambda: refused(sized.getvalue(), "too large to travel"))
    packed = zipped({"x": bytes(MOST_BYTES + 1)})
    within(10, 250, lambda: refused(packed, "too large to travel"))


def test_a_size_that_is_a_lie_is_found() -> None:
    refused(gzip.compress(_header(b"x", 1 << 40) + bytes(2048)), "ends before its time")
    data = bytearray(zipped({"x": b"y" * 1000}))
    end = data.rfind(b"PK\5\6")
    struct.pack_into("<I", data, end + 12, 0x7FFFFFF0)
    refused(bytes(data), "too large")


def _header(name: bytes, size: int) -> bytes:
    entry = tarfile.TarInfo(name.decode())
    entry.size = size
    return entry.tobuf(tarfile.GNU_FORMAT)


def test_huge_counts_are_refused_before_they_cost_anything() -> None:
    many = b"".join(_header(b"%d" % n, 0) for n in range(MOST_FILES + 1)) + bytes(1024)
    within(10, 60, lambda: refused(gzip.compress(many), "more than 10000 files"))
    folders = bytearray(_header(b"d/", 0))
    folders[156:157] = b"5"
    total = sum(folders) - sum(folders[148:156]) + 8 * 32
    folders[148:156] = b"%06o\0 " % total
    within(10, 60, lambda: refused(gzip.compress(bytes(folders) * 20_001), "more than 10000 files"))
    listed = zipped({str(n): b"" for n in range(2 * MOST_FILES + 1)})
    within(10, 60, lambda: refused(listed, "more than 10000 files"))


def test_hostile_notes_of_pax_are_read_in_linear_time() -> None:
    def notes(count: int) -> bytes:
        body = b"6 a=b\n" * count
        head = bytearray(_header(b"x", len(body)))
        head[156:157] = b"x"
        total = sum(head) - sum(head[148:156]) + 8 * 32
        head[148:156] = b"%06o\0 " % total
        return bytes(head) + body + bytes(-len(body) % 512)

    one = notes(10_000)
    for times in (1, 20):
        began = time.process_time()
        refused(gzip.compress(one * times), "ends before its time")
        assert time.process_time() - began < 0.05 * times + 1
    for bad in (b"99 a=b\n", b"0 a=b\n", b"x a=b\n", b"aaaaaaaaaaaaaaaaaaaaa"):
        head = notes(0)[:512]
        fixed = bytearray(head)
        fixed[124:136] = b"%011o\0" % len(bad)
        fixed[148:156] = b"%06o\0 " % (sum(fixed) - sum(fixed[148:156]) + 256)
        refused(gzip.compress(bytes(fixed) + bad + bytes(512 - len(bad) + 1024)), "notes on a file")


@pytest.mark.parametrize("data", [b"", b"PK", b"\x1f\x8b", b"text", b"PK\3\4" + bytes(100)])
def test_what_is_no_archive_is_told(data: bytes) -> None:
    refused(data, r"neither tar\.gz nor zip|cannot be read")


def test_an_archive_cut_anywhere_is_refused() -> None:
    for whole in (tar({"a.py": b"x" * 700, "b.py": b"y"}), zipped({"a.py": b"x" * 700, "b": b"y"})):
        assert len(files_of(whole)) == 2
        for length in range(len(whole)):
            with pytest.raises(NotShippable):
                files_of(whole[:length])


def test_code_that_does_not_pack_small_is_refused_by_its_largest_files() -> None:
    import random

    noise = random.Random(0).randbytes(LARGEST)
    with pytest.raises(NotShippable, match=r"its largest files are big.bin \(768 KiB\)"):
        bundle_of([CodeFile("big.bin", noise), CodeFile("train.py", b"x")])
    with pytest.raises(NotShippable, match="holds no file"):
        bundle_of([CodeFile(".git/config", b"x")])
