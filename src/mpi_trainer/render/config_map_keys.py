"""Which key of the job's own ConfigMap holds which file of which pod; shared files are elsewhere.

A file's own name where that is free, as upstream's `hostfile` is; files of the same name but of
another content or folder get longer keys. Deterministic: the launcher's files come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import split

from mpi_trainer.layout.model import File, Layout
from mpi_trainer.render import names


def keys(layout: Layout) -> Mapping[File, str]:
    """File → key. Two files of one content share a key; modes are a matter of the mount."""
    given: dict[File, str] = {}
    texts: dict[str, str] = {}
    for files in dict.fromkeys(pod.files for pod in layout.pods):
        for file in files:
            if file not in given and not file.shared:
                key = _key(file, texts)
                texts[key] = file.text
                given[file] = key
    return given


def _key(file: File, texts: Mapping[str, str]) -> str:
    folder, name = split(file.path)
    if texts.get(name, file.text) == file.text:
        return name
    longer = f"{names.label(folder)}.{name}"
    return longer if texts.get(longer, file.text) == file.text else names.unused(name, texts)
