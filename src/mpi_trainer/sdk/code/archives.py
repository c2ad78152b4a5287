"""Archives that somebody sends (tar.gz or zip), read into files. Pure.

Guarantee: whatever the bytes are, reading takes time and memory in proportion to what comes in and
to `MOST_BYTES`, never to what the archive claims; nothing but plain files comes out, with names
that `uploads` has checked. Links and devices are refused, not followed. tar is read here and not by
the standard library, whose reader goes through headers more than once and believes sizes.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple, NoReturn

from mpi_trainer.sdk.code.bundle import MOST_BYTES, MOST_FILES
from mpi_trainer.sdk.code.uploads import CodeFile, checked_room, file_name
from mpi_trainer.sdk.errors import NotShippable

_BLOCK: Final = 512
_LONGEST_HEADER: Final = 64 * 1024
_MOST_ENTRIES: Final = 2 * MOST_FILES
"""folders too"""
_MOST_TAR: Final = MOST_BYTES + 4 * _BLOCK * _MOST_ENTRIES
_FILES: Final = (b"0", b"\0", b"7")
_EXTENDED, _LONG_NAME, _FOLDER = b"x", b"L", b"5"
_ABOUT_NEXT: Final = (_EXTENDED, _LONG_NAME, b"K", b"g")
"""entries that say something of the next one, or of all"""
_WHAT: Final = {b"1": "a link", b"2": "a link", b"3": "a device", b"4": "a device", b"6": "a pipe"}
_END: Final = b"PK\5\6"
_END_BYTES: Final = 22
_LONGEST_COMMENT: Final = 65_535
_LOCATOR: Final = b"PK\6\7"
_LOCATOR_BYTES: Final = 20
_DIRECTORY_BYTES: Final = 8 << 20
_READ: Final = 64 * 1024


def files_of(data: bytes) -> tuple[CodeFile, ...]:
    """The archive's files, in its order."""
    if data[:2] == b"\x1f\x8b":
        return tuple(_tar(_expanded(data)))
    if data[:2] == b"PK":
        return tuple(_zip(data))
    raise NotShippable(
        "the archive is neither tar.gz nor zip",
        "Pack the folder with `tar -czf code.tar.gz -C FOLDER .`, or with zip.",
    )


def _damaged(why: str) -> NoReturn:
    raise NotShippable(f"the archive cannot be read: {why}", "Pack it again, and send it whole.")


def _expanded(data: bytes) -> memoryview:
    """One gzip member; bounded while it grows, so that a bomb is found at its bound."""
    reader = zlib.decompressobj(wbits=31)
    try:
        found = reader.decompress(data, _MOST_TAR + 1)
    except zlib.error as error:
        _damaged(str(error))
    if len(found) > _MOST_TAR or reader.unconsumed_tail:
        checked_room(0, MOST_BYTES + 1)
    if not reader.eof:
        _damaged("it ends before its time")
    if reader.unused_data.strip(b"\0"):
        _damaged("something follows its end")
    return memoryview(found)


def _tar(data: memoryview) -> Iterator[CodeFile]:
    count, size = 0, 0
    for entry in _entries(data):
        if entry.kind == _FOLDER or entry.name.endswith(b"/"):
            continue  # a slash is how archives before POSIX mark a folder
        if entry.kind not in _FILES:
            _refuse(entry.name, _WHAT.get(entry.kind, "no plain file"))
        count, size = count + 1, size + len(entry.content)
        checked_room(count, size)
        yield CodeFile(file_name(entry.name), bytes(entry.content), bool(entry.mode & 0o100))


class _Entry(NamedTuple):
    name: bytes
    kind: bytes
    mode: int
    content: memoryview


def _entries(data: memoryview) -> Iterator[_Entry]:
    """What is in the archive, each with the name that headers before its own give it."""
    position, name, size = 0, b"", -1
    for _ in range(_MOST_ENTRIES):
        header = bytes(data[position : position + _BLOCK])
        if len(header) < _BLOCK:
            _damaged("it ends before its time")
        if not header.strip(b"\0"):
            return
        kind, length = header[156:157], _checked_size(header)
        about_next = kind in _ABOUT_NEXT
        length = length if size < 0 or about_next else size
        start, position = position + _BLOCK, position + _BLOCK + -(-length // _BLOCK) * _BLOCK
        content = data[start : start + length]
        if len(content) < length:
            _damaged("it ends before its time")
        if about_next:
            name, size = _said(kind, content, name, size)
        else:
            yield _Entry(name or _plain_name(header), kind, _number(header[100:108]), content)
            name, size = b"", -1
    checked_room(MOST_FILES + 1, 0)


def _said(kind: bytes, content: memoryview, name: bytes, size: int) -> tuple[bytes, int]:
    """Name and size of the entry that follows, where this one says them."""
    if len(content) > _LONGEST_HEADER:
        _damaged("a name or its notes are too long")
    if kind == _LONG_NAME:
        return bytes(content).rstrip(b"\0"), size
    return _notes(bytes(content), name) if kind == _EXTENDED else (name, size)


def _plain_name(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return b"%s/%s" % (prefix, name) if prefix else name


def _checked_size(header: bytes) -> int:
    """What the header says of its content, where the header's own sum is right."""
    total = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if _number(header[148:156]) != total:
        _damaged("a header's sum is wrong")
    return _number(header[124:136])


def _number(field: bytes) -> int:
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:])
    text = field.strip(b" \0")
    if not all(b"0"[0] <= one <= b"7"[0] for one in text):
        _damaged("a number in a header is none")
    return int(text or b"0", 8)


def _notes(content: bytes, name: bytes) -> tuple[bytes, int]:
    """Name and size out of the records of an extended header, `LENGTH KEY=VALUE` and a newline;
    each is looked at once."""
    position, size = 0, -1
    while position < len(content):
        blank = content.find(b" ", position, position + 8)
        digits = content[position:blank] if blank > 0 else b""
        if not digits.isdigit() or not 0 < int(digits) <= len(content) - position:
            _damaged("the notes on a file are none")
        end = position + int(digits)
        key, _, value = content[blank + 1 : end - 1].partition(b"=")
        if key == b"path":
            name = value
        elif key == b"size" and value.isdigit() and len(value) <= len(str(_MOST_TAR)):
            size = int(value)
        elif key in (b"size", b"GNU.sparse.major", b"GNU.sparse.name", b"GNU.sparse.size"):
            _damaged("it holds a sparse file, or one of a strange size")
        position = end
    return name, size


def _zip(data: bytes) -> Iterator[CodeFile]:
    _check_directory(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_ENTRIES:
                checked_room(MOST_FILES + 1, 0)
            count, size = 0, 0
            for entry in entries:
                raw = _zip_name(entry)
                _check_entry(entry, raw)
                if entry.is_dir():
                    continue
                content = _content(archive, entry, MOST_BYTES - size)
                count, size = count + 1, size + len(content)
                checked_room(count, size)
                mode = entry.external_attr >> 16
                yield CodeFile(file_name(raw), content, bool(mode & 0o100))
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError) as error:
        if isinstance(error, NotShippable):
            raise
        _damaged(str(error))
    except (NotImplementedError, RuntimeError):
        _damaged("it is encrypted, or packed in a way that is not known here")


def _check_directory(data: bytes) -> None:
    """The list of files at the end is read as a whole, so its size is looked at before."""
    begin = max(0, len(data) - _END_BYTES - _LONGEST_COMMENT)
    end = data.rfind(_END, begin)
    if end < 0 or end + _END_BYTES > len(data):
        _damaged("it has no list of its files")
    if data[max(0, end - _LOCATOR_BYTES) : end].startswith(_LOCATOR):
        checked_room(MOST_FILES + 1, 0)
    (entries, size) = struct.unpack_from("<HI", data, end + 10)
    if entries > _MOST_ENTRIES or size > _DIRECTORY_BYTES:
        checked_room(MOST_FILES + 1, 0)
    if len(data) - end != _END_BYTES + struct.unpack_from("<H", data, end + 20)[0]:
        _damaged("something follows its end")


def _zip_name(entry: zipfile.ZipInfo) -> bytes:
    """As it is in the archive: UTF-8 where the flag says so, else taken for it."""
    utf8 = entry.flag_bits & 0x800
    try:
        return entry.orig_filename.encode("utf-8" if utf8 else "cp437")
    except UnicodeEncodeError:
        _damaged("a name is not UTF-8")


def _check_entry(entry: zipfile.ZipInfo, raw: bytes) -> None:
    kind = entry.external_attr >> 28
    if kind and kind not in (0o10, 0o4):
        _refuse(raw, "a link" if kind == 0o12 else "a device")
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        _refuse(raw, "encrypted, or packed in a way that is not known here")


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, room: int) -> bytes:
    """Read up to what there is room for, whatever size is claimed."""
    with archive.open(entry) as opened:
        parts: list[bytes] = []
        held = 0
        while part := opened.read(_READ):
            held += len(part)
            if held > room:
                checked_room(0, MOST_BYTES + 1)
            parts.append(part)
    return b"".join(parts)


def _refuse(name: bytes, what: str) -> NoReturn:
    shown = repr(name[:100].decode(errors="backslashreplace"))
    raise NotShippable(
        f"{shown} in the archive is {what}",
        "Pack plain files and folders alone; `tar -h` packs what links point to.",
    )
