"""A web server over real files that speaks as much of the Hugging Face hub as a client needs, and
misbehaves on purpose: it cuts answers, is slow, redirects, and lies. It remembers who asked what.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c0ffee00" * 5
_BLOCK = 256 << 10


class DataServer:
    """`rate`: bytes a second of each answer. `cut`: bytes after which an answer ends early.
    `total`: what answers with a part say of the whole. `tags`: whether answers say by ETag which
    version of a file they are of; `dates`: the Last-Modified of one answer after the other.
    `redirects`: path -> address. `lfs`: files from that size on are answered from `elsewhere`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rate = 0.0
        self.cut = 0
        self.ranges = True
        self.length = True
        self.total = ""
        self.tags = True
        self.dates: Iterator[str] = iter(())
        self.token = ""
        self.redirects: dict[str, str] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.lfs = 1 << 20
        self.elsewhere = ""
        self.listed: list[dict[str, Any]] | None = None
        self.next_page = ""
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.sent = 0
        self.lock = threading.Lock()
        self.url = ""

    def authorizations(self) -> set[str]:
        return {headers.get("authorization", "") for _, headers in self.requests}

    def tree(self, folder: str) -> list[dict[str, Any]]:
        """The hub's listing of a repository."""
        if self.listed is not None:
            return self.listed
        base = self.root / folder
        return [
            self._entry(path, str(path.relative_to(base)))
            for path in sorted(base.rglob("*"))
            if path.is_file()
        ]

    def _entry(self, path: Path, name: str) -> dict[str, Any]:
        data = path.read_bytes()
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        entry: dict[str, Any] = {"type": "file", "path": name, "size": len(data), "oid": blob}
        if len(data) >= self.lfs:
            sha256 = hashlib.sha256(data).hexdigest()
            entry["lfs"] = {"oid": sha256, "size": len(data), "pointerSize": 130}
        return entry


@contextmanager
def serving(root: Path) -> Iterator[DataServer]:
    data = DataServer(root)

    class Handler(_Handler):
        server_data = data

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    data.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield data
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_data: DataServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        data = self.server_data
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        with data.lock:
            data.requests.append((self.path, headers))
        if path in data.redirects:
            self._redirect(data.redirects[path])
        elif path in data.answers:
            status, body = data.answers[path]
            self._send(status, body)
        elif data.token and headers.get("authorization") != f"Bearer {data.token}":
            self._send(401, f"no: {headers.get('authorization', '')}".encode())
        elif path.startswith("/api/"):
            self._api(path, parse_qs(parts.query))
        else:
            self._resolve(path)

    def _api(self, path: str, query: dict[str, list[str]]) -> None:
        data = self.server_data
        match = re.fullmatch(
            r"/api/(models|datasets)/([^/]+/[^/]+)/(revision|tree)/([^/]+)(?:/(.*))?", path
        )
        if match is None or not (data.root / match[2]).is_dir():
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif match[4] not in ("main", COMMIT):
            self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        elif match[3] == "revision":
            self._send(200, json.dumps({"id": match[2], "sha": COMMIT, "siblings": []}).encode())
        else:
            entries = data.tree(match[2])
            if match[5]:
                entries = [one for one in entries if one["path"].startswith(match[5] + "/")]
            more = {"Link": f'<{data.next_page}>; rel="next"'} if data.next_page else {}
            self._send(200, json.dumps(entries).encode(), more)

    def _resolve(self, path: str) -> None:
        data = self.server_data
        match = re.fullmatch(r"/(?:datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.*)", path)
        file = data.root / (f"{match[1]}/{match[3]}" if match else path.lstrip("/"))
        if not file.is_file():
            self._send(404, b"")
        elif match and data.elsewhere and file.stat().st_size >= data.lfs:
            self._redirect(f"{data.elsewhere}/{match[1]}/{match[3]}?X-Amz-Signature=s3cr3t")
        else:
            self._file(file)

    def _file(self, file: Path) -> None:
        data = self.server_data
        size = file.stat().st_size
        start, end, status = 0, size, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and data.ranges:
            start, status = int(asked[1]), 206
            end = min(int(asked[2]) + 1, size) if asked[2] else size
        self.send_response(status)
        if data.length:
            self.send_header("Content-Length", str(end - start))
        else:
            self.close_connection = True
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{data.total or size}")
        if data.tags:
            self.send_header("ETag", f'"{size}-{file.stat().st_mtime_ns}"')
        for date in itertools.islice(data.dates, 1):
            self.send_header("Last-Modified", date)
        self.end_headers()
        stop = min(end, start + data.cut) if data.cut else end
        with file.open("rb") as source:
            source.seek(start)
            while start < stop:
                block = source.read(min(_BLOCK, stop - start))
                try:
                    self.wfile.write(block)
                except OSError:
                    return
                start += len(block)
                with data.lock:
                    data.sent += len(block)
                if data.rate:
                    time.sleep(len(block) / data.rate)
        if stop < end:
            self.close_connection = True

    def _redirect(self, address: str) -> None:
        self._send(302, b"", {"Location": address})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
