"""/dev/shm as large as the pod's memory, where ranks run and the template has none (CTL-14).

Container runtimes give 64 MiB, on which MPI and NCCL fail in obscure ways. There is no size of its
own: kubelets then take the pod's memory limit, or the node's memory where it has none, and what is
stored there counts against the container's limit either way; so it is no more dangerous than
`malloc`. All containers of the pod get the same volume, because without it they would share the
runtime's. A pod with the host's IPC has the host's /dev/shm and keeps it.
"""

from __future__ import annotations

from mpi_trainer.render import names
from mpi_trainer.render.frame import Object
from mpi_trainer.render.volumes import mounted

PATH = "/dev/shm"


def add(spec: Object, main: Object) -> None:
    """Adds the volume to a pod spec whose container `main` runs ranks."""
    if spec.get("hostIPC") or PATH in mounted(main):
        return
    volumes = spec.setdefault("volumes", [])
    name = names.unused(names.label(PATH), {volume.get("name") for volume in volumes})
    volumes.append({"name": name, "emptyDir": {"medium": "Memory"}})
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        if PATH not in mounted(container):
            own = container.get("volumeMounts") or []
            container["volumeMounts"] = [*own, {"name": name, "mountPath": PATH}]
