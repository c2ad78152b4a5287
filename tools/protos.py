"""Writes the Python code of proto/, and refuses to where it would break the programs of others.

    python -m tools.protos                 from the .proto files
    python -m tools.protos --check         whether the code is what they make
    python -m tools.protos --breaking      also where something is taken away or changed

What may be done: a new method, message, field or value of an enum. What the committed code says is
what others have; it holds the whole description.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

ROOT: Final = Path(__file__).parents[1]
PROTO: Final = "mpitrainer/v1/mpijobs.proto"
PACKAGE: Final = "mpi_trainer.server.rpc.v1"
FOLDER: Final = ROOT / "src" / PACKAGE.replace(".", "/")
MODULE: Final = "mpijobs_pb2"
HEADER: Final = f"# Made from proto/{PROTO} by `make docs` (tools/protos.py); not to be edited.\n"


def generated(scratch: Path) -> tuple[FileDescriptorProto, Mapping[str, str]]:
    """What the .proto file says, and the code by the names of its files."""
    described = scratch / "described"
    words = [
        "protoc",
        f"-I{ROOT / 'proto'}",
        f"-I{Path(protoc.__file__).parent / '_proto'}",
        f"--descriptor_set_out={described}",
        *(f"--{kind}_out={scratch}" for kind in ("python", "pyi", "grpc_python")),
        PROTO,
    ]
    if protoc.main(words):
        raise SystemExit(f"error: {PROTO} cannot be read; see above")
    (file,) = FileDescriptorSet.FromString(described.read_bytes()).file
    folder = (scratch / PROTO).parent
    return file, {path.name: _ours(path.read_text()) for path in sorted(folder.iterdir())}


def _ours(text: str) -> str:
    """Imports by the place where the code is."""
    return HEADER + text.replace("from mpitrainer.v1 import", f"from {PACKAGE} import")


def committed() -> FileDescriptorProto:
    made = FileDescriptorProto()
    import_module(f"{PACKAGE}.{MODULE}").DESCRIPTOR.CopyToProto(made)
    return made


def breaking(old: FileDescriptorProto, new: FileDescriptorProto) -> list[str]:
    """What a program that was written for `old` would trip over in `new`."""
    found = [f"package {old.package}: is {new.package} now"] if old.package != new.package else []
    found += _messages(old.message_type, new.message_type, "")
    found += _enums(old.enum_type, new.enum_type, "")
    services = {one.name: one for one in new.service}
    for service in old.service:
        found += _service(service, services.get(service.name))
    return found


def _messages(
    old: Sequence[DescriptorProto], new: Sequence[DescriptorProto], outer: str
) -> Iterator[str]:
    after = {one.name: one for one in new}
    for before in old:
        place = f"{outer}{before.name}"
        if before.name not in after:
            yield f"message {place}: is gone"
            continue
        now = after[before.name]
        yield from _fields(before, now, place)
        yield from _messages(before.nested_type, now.nested_type, f"{place}.")
        yield from _enums(before.enum_type, now.enum_type, f"{place}.")


def _fields(old: DescriptorProto, new: DescriptorProto, place: str) -> Iterator[str]:
    after = {one.name: one for one in new.field}
    for before in old.field:
        now = after.get(before.name)
        if now is None:
            yield f"{place}.{before.name}: is gone"
            continue
        if before.number != now.number:
            yield f"{place}.{before.name}: number {before.number} became {now.number}"
        if _type(before, old) != _type(now, new):
            yield f"{place}.{before.name}: {_type(before, old)} became {_type(now, new)}"


def _type(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    """As it stands in the file, nearly."""
    name = field.type_name or FieldDescriptorProto.Type.Name(field.type).lower()
    label = FieldDescriptorProto.Label.Name(field.label).removeprefix("LABEL_").lower()
    group = ""
    if field.proto3_optional:
        group = " that can be missing"
    elif field.HasField("oneof_index"):
        group = f" of oneof {message.oneof_decl[field.oneof_index].name}"
    return f"{label} {name}{group}"


def _enums(
    old: Sequence[EnumDescriptorProto], new: Sequence[EnumDescriptorProto], outer: str
) -> Iterator[str]:
    after = {one.name: one for one in new}
    for before in old:
        place = f"{outer}{before.name}"
        if before.name not in after:
            yield f"enum {place}: is gone"
            continue
        numbers = {value.name: value.number for value in after[before.name].value}
        for value in before.value:
            if numbers.get(value.name) != value.number:
                yield f"{place}.{value.name}: is gone, or has another number"


def _service(old: ServiceDescriptorProto, new: ServiceDescriptorProto | None) -> Iterator[str]:
    if new is None:
        yield f"service {old.name}: is gone"
        return
    after = {one.name: one for one in new.method}
    for before in old.method:
        now = after.get(before.name)
        if now is None:
            yield f"{old.name}.{before.name}: is gone"
            continue
        for field in ("input_type", "output_type", "client_streaming", "server_streaming"):
            if getattr(before, field) != getattr(now, field):
                yield f"{old.name}.{before.name}: its {field.replace('_', ' ')} is another"


def stale(files: Mapping[str, str]) -> list[str]:
    """Names of files that are not as they would be made."""
    there = {path.name: path.read_text() for path in FOLDER.glob("*_pb2*")}
    return sorted(name for name in {*files, *there} if files.get(name) != there.get(name))


def main(words: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        new, files = generated(Path(scratch))
    if "--check" in words:
        old = stale(files)
        if old:
            print(f"error: not as proto/{PROTO} makes them: {', '.join(old)}")
            print("\nhint: make docs")
        return 1 if old else 0
    if (FOLDER / f"{MODULE}.py").exists() and "--breaking" not in words:
        found = breaking(committed(), new)
        if found:
            print("error: this breaks programs of others:\n  " + "\n  ".join(found))
            print("\nhint: add beside what is there; --breaking writes it all the same")
            return 1
    for name, text in files.items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
