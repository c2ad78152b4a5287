"""Where a job's files come from: one value per place that is shown in the pods.

Exactly one source is named; anything else is refused when the job is described, not when a pod
fails to start.
"""

from __future__ import annotations

from typing import Any

import msgspec


class VolumeMount(msgspec.Struct, frozen=True):
    """Shows a volume at `mount_path` in the launcher and every worker.

    Name one source: claim (a PersistentVolumeClaim), host_path (a directory of the machine),
    config_map, secret, or empty_dir=True (scratch space of each pod).
    """

    mount_path: str
    claim: str = ""
    host_path: str = ""
    config_map: str = ""
    secret: str = ""
    empty_dir: bool = False
    sub_path: str = ""
    read_only: bool = False


def volume_source(mount: VolumeMount) -> dict[str, Any]:
    """The volume as a pod spec has it, without its name."""
    named: dict[str, Any] = {
        "persistentVolumeClaim": mount.claim and {"claimName": mount.claim},
        "hostPath": mount.host_path and {"path": mount.host_path},
        "configMap": mount.config_map and {"name": mount.config_map},
        "secret": mount.secret and {"secretName": mount.secret},
    }
    sources = {kind: value for kind, value in named.items() if value}
    if mount.empty_dir:
        sources["emptyDir"] = {}
    if len(sources) != 1:
        raise ValueError(
            f"the volume at {mount.mount_path} names {len(sources)} sources; name exactly one "
            "of claim, host_path, config_map, secret and empty_dir"
        )
    return sources


def volume_mount(mount: VolumeMount, name: str) -> dict[str, Any]:
    """The mount as a container has it."""
    made: dict[str, Any] = {"name": name, "mountPath": mount.mount_path}
    if mount.sub_path:
        made["subPath"] = mount.sub_path
    if mount.read_only:
        made["readOnly"] = True
    return made
