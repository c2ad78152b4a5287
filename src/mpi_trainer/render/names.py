"""What the children of a job are called, of both kinds. Upstream's names to the letter.

Pods have theirs from `layout.hosts`. Guarantee: for a validated MPIJob every name here is a DNS
label of at most 63 characters, since a worker's name, which validation measures, is never shorter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from posixpath import split

from mpi_trainer.api.kinds.annotations import DOMAIN
from mpi_trainer.layout.model import File, Layout

EVIDENCE = f"{DOMAIN}/evidence"
"""finalizer of the launcher pod: it stays until what it says of the job's end has been recorded"""
APP = "app"


def network_policy(job: str, pods: str) -> str:
    """`pods`: which of the job's it is for."""
    return f"{job}-{pods}"


def kept_names(job: str) -> frozenset[str]:
    """Of all objects that are kept as rendered, whichever of them the job has: its PodGroup and its
    NetworkPolicies. What has another name somebody else made."""
    return frozenset({job, *(network_policy(job, pods) for pods in ("workers", "launcher"))})


# --- of an MPIJob --------------------------------------------------------------------------------


def config_map(job: str) -> str:
    return f"{job}-config"


def secret(job: str) -> str:
    return f"{job}-ssh"


def service(job: str) -> str:
    return job


# --- of a TrainJob -------------------------------------------------------------------------------


def hostfile(job: str) -> str:
    return f"{job}-mpi-hostfile"


def ssh_secret(job: str) -> str:
    return f"{job}-mpi-ssh-auth"


def flux_config(job: str) -> str:
    return f"{job}-flux-entrypoint"


def flux_secret(job: str) -> str:
    return f"{job}-flux-curve"


def status_trust(job: str) -> str:
    """The ConfigMap by which a program trusts the status endpoint."""
    return f"{job}-tls-config"


def runtime_snapshot(job: str) -> str:
    return f"{job}-runtime-snapshot"


# --- inside of pods and ConfigMaps ---------------------------------------------------------------


def unused(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, or with the first number behind it that makes it unlike all of `taken`."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def label(path: str) -> str:
    """A path as a name for a volume: `/run/mpi-agent` is `run-mpi-agent`."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in path.lower())
    return plain[-50:].strip("-") or "root"


def config_map_keys(layout: Layout) -> Mapping[File, str]:
    """File → key in the job's own ConfigMap; shared files are elsewhere.

    A file's own name where that is free, as upstream's `hostfile` is; files of the same name but of
    another content or folder get longer keys. Two files of one content share a key; modes are a
    matter of the mount. Deterministic: the launcher's files come first.
    """
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
    longer = f"{label(folder)}.{name}"
    return longer if texts.get(longer, file.text) == file.text else unused(name, texts)
