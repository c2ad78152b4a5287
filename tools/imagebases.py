"""The public images that `images/` begins with: `images/bases.env`, one `NAME=REFERENCE` a line.

`python -m tools.imagebases` asks their registries, with skopeo, what the tags stand for now, and
writes that behind them; `--check` only says which are not pinned.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = Path(__file__).parents[1] / "images" / "bases.env"
_LINE: Final = re.compile(
    r"(?P<name>[A-Z_]+)=(?P<tagged>[a-z0-9.-]+/[a-z0-9._/-]+:[A-Za-z0-9._-]+)"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


class Base(msgspec.Struct, frozen=True):
    name: str
    tagged: str
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.tagged}{'@' if self.digest else ''}{self.digest}"


def read(text: str | None = None) -> dict[str, Base]:
    """By name; ValueError where a line is none, or names no tag."""
    return {base.name: base for base in map(_base, (text or FILE.read_text()).splitlines()) if base}


def _base(line: str) -> Base | None:
    if not line.strip() or line.startswith("#"):
        return None
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise ValueError(f"{line!r} is not NAME=REGISTRY/IMAGE:TAG or ...:TAG@sha256:DIGEST")
    return Base(found["name"], found["tagged"], found["digest"] or "")


def pinned(text: str, digest_of: Callable[[str], str]) -> str:
    """The file with the digests of today; all else of it stays."""
    lines = []
    for line in text.splitlines():
        base = _base(line)
        lines.append(line if base is None else str(_now(base, digest_of)))
    return "\n".join(lines) + "\n"


def _now(base: Base, digest_of: Callable[[str], str]) -> Base:
    return msgspec.structs.replace(base, digest=digest_of(base.tagged))


def _asked(tagged: str) -> str:
    command = ["skopeo", "inspect", "--no-tags", "--format={{.Digest}}", f"docker://{tagged}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("error: there is no skopeo\n\nhint: Install it, or write the digests by hand.")
    if answer.returncode:
        sys.exit(f"error: {tagged}: {answer.stderr.strip()}")
    return answer.stdout.strip()


def main() -> None:
    if "--check" in sys.argv[1:]:
        loose = [base.tagged for base in read().values() if not base.digest]
        sys.exit(f"error: not pinned: {', '.join(loose)}; run `make image-digests`" if loose else 0)
    FILE.write_text(pinned(FILE.read_text(), _asked))


if __name__ == "__main__":
    main()
