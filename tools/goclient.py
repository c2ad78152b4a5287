"""Writes the Go code of proto/ for the example in examples/clients/go, by the plugins that its
go.mod names.

    python -m tools.goclient               from the .proto file; needs Go
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_tools import protoc

from tools.protos import PROTO, ROOT

MODULE: Final = ROOT / "examples/clients/go"
PACKAGE: Final = "mpitrainerv1"
_NAME: Final = f"mpi-trainer/examples/clients/go/{PACKAGE}"
_PLUGINS: Final = {
    "protoc-gen-go": "google.golang.org/protobuf/cmd/protoc-gen-go",
    "protoc-gen-go-grpc": "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
}
_DESCRIBED: Final = re.compile(r'_rawDesc = "" \+\n((?:\t"(?:[^"\\]|\\.)*"(?: \+)?\n)+)')
_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|.)")
_PLAIN: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v"}


def generated(scratch: Path) -> Mapping[str, str]:
    """The code by the names of its files."""
    for name, package in _PLUGINS.items():
        words = ["go", "build", "-o", str(scratch / name), package]
        subprocess.run(words, cwd=MODULE, check=True)
    options = f"module={_NAME.rpartition('/')[0]},M{PROTO}={_NAME}"
    words = [
        "protoc",
        f"-I{ROOT / 'proto'}",
        f"-I{Path(protoc.__file__).parent / '_proto'}",
        *(f"--plugin={name}={scratch / name}" for name in _PLUGINS),
        *(f"--{kind}_out={scratch}" for kind in ("go", "go-grpc")),
        *(f"--{kind}_opt={options}" for kind in ("go", "go-grpc")),
        PROTO,
    ]
    if protoc.main(words):
        raise SystemExit(f"error: {PROTO} cannot be read; see above")
    return {path.name: path.read_text() for path in sorted((scratch / PACKAGE).iterdir())}


def described() -> FileDescriptorProto:
    """What the committed code says of the API; without Go."""
    (path,) = (MODULE / PACKAGE).glob("*[!c].pb.go")
    found = _DESCRIBED.search(path.read_text())
    assert found is not None, f"{path.name} has no description"
    return FileDescriptorProto.FromString(b"".join(map(_bytes, _TEXT.findall(found[1]))))


def _bytes(text: str) -> bytes:
    """The value of an interpreted string of Go."""
    parts, last = [], 0
    for found in _ESCAPED.finditer(text):
        parts += [text[last : found.start()].encode(), _one(found[1])]
        last = found.end()
    return b"".join([*parts, text[last:].encode()])


def _one(escape: str) -> bytes:
    if escape[0] == "x":
        return bytes([int(escape[1:], 16)])
    if escape[0] == "u":
        return chr(int(escape[1:], 16)).encode()
    return _PLAIN.get(escape, escape.encode())


def main() -> int:
    os.environ.setdefault("GOFLAGS", "-mod=mod")
    with tempfile.TemporaryDirectory() as scratch:
        files = generated(Path(scratch))
    (MODULE / PACKAGE).mkdir(exist_ok=True)
    for name, text in files.items():
        (MODULE / PACKAGE / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
