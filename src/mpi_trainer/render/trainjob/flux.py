"""The objects of a TrainJob that Flux runs: what its pods get, a ConfigMap, and a key in a Secret.

Names, paths and mounts are upstream's. The key is made by chance and readable by any user of the
pod, and /dev/shm can be written.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.layout.policies import flux
from mpi_trainer.render import names
from mpi_trainer.render.containers import changed, merged
from mpi_trainer.render.frame import Object, metadata
from mpi_trainer.render.secrets import KeyPlan, Part

CURVE_PUBLIC: Part = "curve-public"
CURVE_PRIVATE: Part = "curve-private"


def with_flux(
    pods: Mapping[str, Object], job: TrainJob, effective: Effective, broker: flux.Broker
) -> dict[str, Object]:
    """The pod templates `pods`, by the names of their replicated jobs, with Flux in the nodes'."""
    given, nodes = dict(pods), flux.nodes(effective)
    if nodes is None:
        return given

    def led(container: Object) -> Object:
        bare = {key: value for key, value in container.items() if key != "args"}
        mounts = merged(container.get("volumeMounts"), _mounts(job), "mountPath")
        return {**bare, "command": list(broker.command), "volumeMounts": mounts}

    pod = changed(given[nodes.name], NODE_CONTAINER, led)
    spec: Object = pod["spec"]
    given[nodes.name] = {
        **pod,
        "spec": {
            **spec,
            "initContainers": [*(spec.get("initContainers") or ()), _installer(job, broker)],
            "volumes": merged(spec.get("volumes"), _volumes(job)),
        },
    }
    return given


def config_map(job: TrainJob, broker: flux.Broker) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, names.flux_config(job.name)),
        "data": dict(broker.files),
    }


def keys(job: TrainJob) -> KeyPlan:
    return KeyPlan(
        frozenset((CURVE_PUBLIC, CURVE_PRIVATE)),
        lambda parts: _secret(job, parts),
    )


def _secret(job: TrainJob, parts: Mapping[Part, str]) -> Object:
    """`parts` in Z85, as ZeroMQ reads them."""
    text = (
        "metadata\n"
        f'    name = "{job.name}"\n'
        "curve\n"
        f'    public-key = "{parts.get(CURVE_PUBLIC, "")}"\n'
        f'    secret-key = "{parts.get(CURVE_PRIVATE, "")}"\n'
    )
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(job, names.flux_secret(job.name)),
        "type": "Opaque",
        "data": {"curve.cert": base64.b64encode(text.encode()).decode()},
    }


def _installer(job: TrainJob, broker: flux.Broker) -> Object:
    return {
        "name": flux.INSTALLER,
        "image": broker.image,
        "command": list(flux.INIT),
        "volumeMounts": [
            {"name": "flux-install", "mountPath": "/mnt/flux"},
            {
                "name": names.flux_config(job.name),
                "mountPath": flux.CONFIG_FOLDER,
                "readOnly": True,
            },
        ],
    }


def _mounts(job: TrainJob) -> tuple[Object, ...]:
    return (
        {"name": "flux-install", "mountPath": "/mnt/flux"},
        {"name": "spack-install", "mountPath": "/opt/software"},
        {"name": names.flux_config(job.name), "mountPath": flux.CONFIG_FOLDER, "readOnly": True},
        {"name": "flux-curve", "mountPath": "/curve", "readOnly": True},
        {"name": "shared-memory", "mountPath": "/dev/shm"},
    )


def _volumes(job: TrainJob) -> tuple[Object, ...]:
    config = {"name": names.flux_config(job.name), "defaultMode": 0o755}
    return (
        {"name": "spack-install", "emptyDir": {}},
        {"name": "flux-install", "emptyDir": {}},
        {"name": names.flux_config(job.name), "configMap": config},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
        {
            "name": "flux-curve",
            "secret": {"secretName": names.flux_secret(job.name), "defaultMode": 0o444},
        },
    )
