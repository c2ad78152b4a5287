"""multipart/form-data (RFC 7578) read from bytes: a job, and the files that go with it. Pure.

Every byte is looked at a fixed number of times, whatever the boundary; a part is not copied before
it is known to be wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn
from urllib.parse import unquote_to_bytes

import msgspec

from mpi_trainer.sdk.code.bundle import MOST_FILES
from mpi_trainer.server.problems import refused

MEDIA_TYPE: Final = "multipart/form-data"
_LONGEST_HEAD: Final = 8 * 1024
_BOUNDARY: Final = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_PARAMETER: Final = re.compile(rb';\s{0,8}([a-zA-Z*]{1,16})=(?:"((?:[^"\\]|\\.)*+)"|([^\s;"]*+))')
_ESCAPES: Final = ((b"%22", b'"'), (b"%0D", b"\r"), (b"%0A", b"\n"))
"""what browsers write for these three in a name, and for nothing else"""


class Part(msgspec.Struct, frozen=True):
    """`file_name` as it was sent; None where the part is no file."""

    name: str
    file_name: bytes | None
    media_type: str
    content: memoryview


def boundary(content_type: str) -> bytes:
    found = _BOUNDARY.search(content_type[:1024])
    if found is None:
        _malformed("its Content-Type names no boundary")
    return (found[1] or found[2]).encode()


def parts(body: bytes, limit: bytes) -> Iterator[Part]:
    """Each part, in its order."""
    mark, view = b"\r\n--" + limit, memoryview(body)
    position = len(mark) - 2 if body.startswith(mark[2:]) else _after(body, mark, 0)
    count = 0
    while not body.startswith(b"--", position):
        count += 1
        if count > MOST_FILES + 1:
            _malformed(f"it has more than {MOST_FILES} parts")
        start = body.find(b"\r\n", position, position + 64)
        if start < 0 or body[position:start].strip(b" \t"):
            _malformed("something stands behind a boundary")
        end = body.find(b"\r\n\r\n", start, start + _LONGEST_HEAD)
        if end < 0:
            _malformed("the head of a part has no end, or is too long")
        following = _after(body, mark, end + 2)
        yield _part(body[start + 2 : end], view[end + 4 : following - len(mark)])
        position = following


def _after(body: bytes, mark: bytes, start: int) -> int:
    found = body.find(mark, start)
    if found < 0:
        _malformed("it ends before its last boundary")
    return found + len(mark)


def _part(head: bytes, content: memoryview) -> Part:
    fields: dict[bytes, bytes] = {}
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
    disposition = fields.get(b"content-disposition", b"")
    given = {m[1].lower(): m[2] if m[2] is not None else m[3] for m in _matches(disposition)}
    if not disposition.lower().startswith(b"form-data") or b"name" not in given:
        _malformed("a part has no Content-Disposition with a name")
    media_type = fields.get(b"content-type", b"").decode(errors="replace").partition(";")[0].strip()
    return Part(given[b"name"].decode(errors="replace"), _file_name(given), media_type, content)


def _matches(disposition: bytes) -> Iterator[re.Match[bytes]]:
    return _PARAMETER.finditer(disposition)


def _file_name(given: dict[bytes, bytes]) -> bytes | None:
    """RFC 5987's form goes first, where it is UTF-8's."""
    charset, mark, text = given.get(b"filename*", b"").partition(b"''")
    if mark and charset.lower() == b"utf-8":
        return unquote_to_bytes(text)
    name = given.get(b"filename")
    if name is None:
        return None
    for written, meant in _ESCAPES:
        name = name.replace(written, meant)
    return re.sub(rb'\\(["\\])', rb"\1", name)


def _malformed(why: str) -> NoReturn:
    raise refused(
        400,
        "bad-request",
        f"the form that was sent cannot be read: {why}",
        "Send it as `curl -F job=@mpijob.yaml -F 'files=@train.py;filename=src/train.py'` does.",
    )
