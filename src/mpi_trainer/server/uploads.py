"""A job that comes with its code, out of a form: `job`, and `files` or one `archive`. Pure."""

from __future__ import annotations

from typing import Final

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.sdk.code.archives import files_of
from mpi_trainer.sdk.code.bundle import Bundle
from mpi_trainer.sdk.code.uploads import CodeFile, bundle_of, checked_room, file_name
from mpi_trainer.server import bodies, multipart
from mpi_trainer.server.endpoint import JSON, LARGEST_BODY, YAML
from mpi_trainer.server.multipart import Part
from mpi_trainer.server.problems import Refused, refused

LARGEST_UPLOAD: Final = 16 * 1024 * 1024
"""bytes of a form; more code than this never packs into what travels with a job"""


def job_with_code(body: bytes, content_type: str, namespace: str) -> tuple[MPIJob, Bundle]:
    """The job, and the code as it will travel."""
    job: Part | None = None
    archive: Part | None = None
    files: list[CodeFile] = []
    size = 0
    for part in multipart.parts(body, multipart.boundary(content_type)):
        if part.name == "files":
            size += len(part.content)
            checked_room(len(files) + 1, size)
            files.append(_file(part))
        elif part.name == "job" and job is None:
            job = part
        elif part.name == "archive" and archive is None:
            archive = part
        else:
            raise _form(f"it has a part {part.name[:100]!r} too many, or that is not known")
    if job is None:
        raise _form("it has no part `job`")
    if bool(files) == (archive is not None):
        raise _form("it must have either parts `files` or one part `archive`")
    made = bodies.job(_job_text(job), _media_type(job), MPIJob, namespace)
    return made, bundle_of(files_of(bytes(archive.content)) if archive else files)


def _file(part: Part) -> CodeFile:
    """Forms know no modes: what begins as a script does can be run."""
    content = bytes(part.content)
    return CodeFile(file_name(part.file_name or b""), content, executable=content.startswith(b"#!"))


def _job_text(part: Part) -> bytes:
    if len(part.content) > LARGEST_BODY:
        raise refused(413, "too-large", "the part `job` is larger than 1 MiB, which no job is")
    return bytes(part.content)


def _media_type(part: Part) -> str:
    """That of the part, else what its file is called; YAML reads JSON too."""
    if part.media_type in (JSON, *YAML):
        return part.media_type
    return JSON if (part.file_name or b"").endswith(b".json") else YAML[0]


def _form(why: str) -> Refused:
    return refused(
        400,
        "bad-request",
        f"the form is not one of a job with its code: {why}",
        "Send one part `job`, and parts `files` or one part `archive` (tar.gz or zip).",
    )
