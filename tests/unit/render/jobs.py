"""Jobs and layouts to render, each as small as the fact that it is made for."""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.model import File, KeyFile, Layout, Overlay, PodLayout
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob.children import Children, Facts, children

replace = msgspec.structs.replace

UID = "3d0f6a52-1f6e-4c0e-9d2c-b7a0f6a2b111"
AGENT = "mpi-trainer.opendatahub.io/agent"
RESTRICTED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def job(
    launcher: dict[str, Any] | None = None,
    worker: dict[str, Any] | None = None,
    name: str = "j",
    agent: str = "off",
    **spec: Any,
) -> MPIJob:
    """A valid job with one worker; `launcher` and `worker` are added to their main container.

    Without the agent, unless asked for: what a pod can be given is then the test's own choice.
    """
    roles = {
        "Launcher": {"template": _template({"command": ["mpirun", "x"], **(launcher or {})})},
        "Worker": {"replicas": 1, "template": _template(worker or {})},
    }
    found = load.job(
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": UID,
                "annotations": {AGENT: agent},
            },
            "spec": {"mpiReplicaSpecs": roles, **spec},
        }
    )
    assert isinstance(found.value, MPIJob)
    assert not found.errors, found.errors
    return found.value


def _template(container: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "m", "image": "i", **container}]}}


def rendered(job: MPIJob, facts: Facts | None = None) -> Children:
    return children(layout(job), job, facts or Facts())


def with_agent(plan: Layout) -> Layout:
    """A layout with everything that a pod can be given, whatever today's agent asks for."""
    return replace(
        plan,
        launcher=_managed(plan.launcher, "private", "host-public"),
        workers=tuple(_managed(pod, "public", "host-private") for pod in plan.workers),
    )


def _managed(pod: PodLayout, *parts: Any) -> PodLayout:
    scripts = (
        File("/etc/mpi-agent/prepare.sh", 0o555, "#!/bin/sh\n"),
        File("/etc/mpi-agent/role", 0o444, f"{pod.role}\n"),
    )
    return replace(
        pod,
        files=(*(f for f in pod.files if f.path.startswith("/etc/mpi/")), *scripts),
        keys=tuple(KeyFile(f"/etc/mpi-keys/{part}", part, 0o440) for part in parts),
        command=("/bin/sh", "/etc/mpi-agent/run.sh", *pod.command),
        scratch=("/run/mpi-agent",),
        prepare=("/bin/sh", "/etc/mpi-agent/prepare.sh"),
        overlays=(Overlay("/run/mpi-agent/etc/passwd", "/etc/passwd"),),
        ready_port=2222 if pod.role == "worker" else 0,
    )


def changed_spec(plan: PodLayout, **fields: Any) -> PodLayout:
    """The pod with other fields in its template's spec."""
    content = plan.template.content
    content["spec"].update(fields)
    return replace(plan, template=PodTemplate.of(content))
