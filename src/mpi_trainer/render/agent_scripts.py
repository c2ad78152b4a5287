"""The ConfigMap with the agent's scripts: one for all jobs of a namespace, named by its content.

Two versions have two names, so a job keeps the scripts that it began with. It is immutable:
whoever has seen its content once knows it by its uid, and kubelets need not watch it. It belongs to
no job; the controller makes it before pods need it and removes it after the last of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache

import msgspec

from mpi_trainer.api.kinds.annotations import AGENT_SCRIPTS
from mpi_trainer.api.kinds.labels import LABEL_AGENT_SCRIPTS
from mpi_trainer.layout.agent import scripts
from mpi_trainer.layout.model import PodLayout
from mpi_trainer.render.frame import Object

_NAME = "mpi-agent-{}"
_A_VERSION = re.compile(r"[0-9a-f]{12}")


def data() -> Mapping[str, str]:
    return scripts.everything()


@cache
def version() -> str:
    return hashlib.sha256(msgspec.json.encode(data(), order="deterministic")).hexdigest()[:12]


def name() -> str:
    return _NAME.format(version())


def config_map(namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name(),
            "namespace": namespace,
            "labels": {LABEL_AGENT_SCRIPTS: version()},
        },
        "immutable": True,
        "data": dict(data()),
    }


def mark(launcher: PodLayout) -> dict[str, str]:
    """The annotation of the object whose pod this is; none where it mounts no scripts."""
    return {AGENT_SCRIPTS: version()} if any(file.shared for file in launcher.files) else {}


def used(annotations: Mapping[str, str]) -> str:
    """The ConfigMap that a mark names, "" where there is none. Users can write annotations, and
    what is named here is deleted one day: so it is one with scripts, or nothing."""
    given = annotations.get(AGENT_SCRIPTS, "")
    return _NAME.format(given) if _A_VERSION.fullmatch(given) else ""
