"""Checksums that lie beside the files, as `sha256sum` prints and checks them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from mpi_trainer.initializers.model import SUMS, Checksum, FetchError, Item, Source

_LONGEST: Final = 64 << 20
_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?(.{1,1024})")


def read(source: Source, item: Item) -> dict[str, str]:
    """Path -> checksum. Raises FetchError."""
    text = bytearray()
    for data in source.read(item, 0, item.size):
        text += data
        if len(text) > _LONGEST:
            raise FetchError(f"{SUMS} has more than {_LONGEST >> 20} MiB", "Make it smaller.")
    found = {}
    for n, line in enumerate(text.decode(errors="replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise FetchError(
                f"line {n} of {SUMS} is not a checksum and a file's name: {line!r:.100}",
                "Write it anew with `sha256sum`, or remove the file.",
            )
        found[match[2]] = match[1]
    return found


def applied(items: list[Item], given: Mapping[str, str], listed: set[str]) -> list[Item]:
    """The items with those checksums. Raises FetchError where one contradicts the server's own,
    or names a file that is not listed: something is missing there."""
    if listed:
        missing = sorted(path for path in given if path not in listed)
        if missing:
            raise FetchError(
                f"{SUMS} names {missing[0]!r:.200}, which is not there",
                "The upload was not finished, or the file was removed: upload it again.",
            )
    done = []
    for item in items:
        wanted = given.get(item.path)
        if wanted is None:
            done.append(item)
            continue
        known = item.checksum
        if known is not None and known.algorithm == "sha256" and known.value != wanted:
            raise FetchError(
                f"{item.path} has the checksum {known.value} on the server, not {wanted}",
                "Correct the checksum, or see why the server has another file.",
            )
        done.append(replace(item, checksum=Checksum("sha256", wanted)))
    return done
