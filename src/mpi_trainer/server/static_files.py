"""The dashboard's files: what `make dashboard` built, or a page that says how to build it.

The pages are one program in the browser, so every address outside of the API answers with the same
index.html; only what lies in assets/, whose names change with their content, may be kept by a
browser. Danger: a name in an address must never lead out of the folder; only plain names of files
are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aiohttp import web

from mpi_trainer.server.page import PAGE
from mpi_trainer.server.problems import refused

BUILT: Final = Path(__file__).with_name("static")
ROUTE: Final = r"/{page:(?!api(?:/|$)|healthz$).*}"
"""every address but those of the API"""

_FILE = re.compile(r"(?:assets/)?[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}\.[a-z0-9]{1,8}")
# FileResponse sends NAME.gz, which the build writes, to who takes it.
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_ASKED_AGAIN: Final = {"Cache-Control": "no-cache"}
# Not what this machine's tables say of a suffix: with nosniff, a wrong type is a blank page.
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_POLICY: Final = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "form-action 'self'",
        )
    )
}


def answer(page: str, folder: Path) -> web.StreamResponse:
    """What is at this address, which has no leading slash."""
    if page.startswith("assets/") or (_FILE.fullmatch(page) and page != "index.html"):
        return _file(page, folder)
    index = folder / "index.html"
    if not index.is_file():
        return web.Response(text=PAGE, content_type="text/html")
    return _sent(index, _ASKED_AGAIN | _POLICY)


def _file(name: str, folder: Path) -> web.StreamResponse:
    found = folder / name
    if not _FILE.fullmatch(name) or not found.is_file():
        raise refused(
            404, "no-path", "there is no such file", "Reload the page: the server has changed."
        )
    kept = _KEPT if name.startswith("assets/") else _ASKED_AGAIN
    return _sent(found, kept)


def _sent(file: Path, headers: Mapping[str, str]) -> web.FileResponse:
    known = _TYPES.get(file.suffix)
    return web.FileResponse(file, headers={**headers, **({"Content-Type": known} if known else {})})
