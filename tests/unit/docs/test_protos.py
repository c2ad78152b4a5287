"""The committed code is what proto/ makes, and what would break programs of others is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1
from tools import protos

Change = Callable[[FileDescriptorProto], object]


def message(file: FileDescriptorProto, name: str) -> Any:
    return next(one for one in file.message_type if one.name == name)


def field(file: FileDescriptorProto, name: str) -> FieldDescriptorProto:
    kind, _, wanted = name.partition(".")
    found: FieldDescriptorProto = next(
        one for one in message(file, kind).field if one.name == wanted
    )
    return found


def always_there(one: FieldDescriptorProto) -> None:
    one.proto3_optional = False
    one.ClearField("oneof_index")


def test_the_committed_code_is_what_the_file_makes(tmp_path: Path) -> None:
    made, files = protos.generated(tmp_path)
    assert protos.stale(files) == []
    assert all(text.startswith("# Made from proto/") for text in files.values())
    assert protos.breaking(protos.committed(), made) == []
    assert protos.stale({name: f"{text}#" for name, text in files.items()}) == [*files]


CHANGES: list[tuple[str, Change]] = [
    ("MPIJob.uid: is gone", lambda f: message(f, "MPIJob").field.pop(2)),
    ("MPIJob.uid: number 3 became 99", lambda f: setattr(field(f, "MPIJob.uid"), "number", 99)),
    (
        "Rank.rank: optional type_int32 became optional type_string",
        lambda f: setattr(field(f, "Rank.rank"), "type", FieldDescriptorProto.TYPE_STRING),
    ),
    (
        "MPIJob.command: repeated type_string became optional type_string",
        lambda f: setattr(field(f, "MPIJob.command"), "label", FieldDescriptorProto.LABEL_OPTIONAL),
    ),
    (
        "MPIJobStatus.launcher: optional .mpitrainer.v1.Replicas became optional .x.Y",
        lambda f: setattr(field(f, "MPIJobStatus.launcher"), "type_name", ".x.Y"),
    ),
    (
        "Rank.signal: optional type_int32 that can be missing became optional type_int32",
        lambda f: always_there(field(f, "Rank.signal")),
    ),
    ("message JobKey: is gone", lambda f: f.message_type.remove(message(f, "JobKey"))),
    (
        "JobState.JOB_STATE_FAILED: is gone, or has another number",
        lambda f: f.enum_type[0].value.pop(),
    ),
    ("enum JobState: is gone", lambda f: f.enum_type.pop()),
    ("MPIJobs.GetMPIJobLogs: is gone", lambda f: f.service[0].method.pop()),
    (
        "MPIJobs.GetMPIJobLogs: its server streaming is another",
        lambda f: setattr(f.service[0].method[-1], "server_streaming", False),
    ),
    ("service MPIJobs: is gone", lambda f: f.service.pop()),
    (
        "package mpitrainer.v1: is mpitrainer.v2 now",
        lambda f: setattr(f, "package", "mpitrainer.v2"),
    ),
]


@pytest.mark.parametrize(("said", "change"), CHANGES, ids=[said for said, _ in CHANGES])
def test_a_change_that_breaks_programs_of_others_is_refused(said: str, change: Change) -> None:
    old, new = protos.committed(), protos.committed()
    change(new)
    assert protos.breaking(old, new) == [said]


def test_what_is_added_breaks_nothing() -> None:
    old, new = protos.committed(), protos.committed()
    new.message_type.add(name="More")
    new.message_type[0].field.add(name="more", number=99, type=FieldDescriptorProto.TYPE_STRING)
    new.service[0].method.add(name="More", input_type=".mpitrainer.v1.JobKey")
    new.enum_type[0].value.add(name="JOB_STATE_MORE", number=9)
    assert protos.breaking(old, new) == []
    assert v1.DESCRIPTOR.name == protos.PROTO
