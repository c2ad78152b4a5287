"""How a training program tells its progress: what its pods get for it, by upstream's names.

Variables with the address, the certificate and the token of the status endpoint, in every container
of the pods that train (of MPI, the launcher's), and a ConfigMap with the authority's certificate.
The token is the pod's own, for this job's address and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mpi_trainer.api.effective.combine import TRAINER, Effective
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.render import names
from mpi_trainer.render.containers import merged
from mpi_trainer.render.frame import Endpoint, Object, metadata

FOLDER: Final = "/var/run/secrets/kubeflow/trainer"
VOLUME: Final = "kubeflow-trainer-token"
TOKEN_SECONDS: Final = 3600
_API: Final = "trainer.kubeflow.org/v1alpha1"


def path(namespace: str, name: str) -> str:
    return f"/apis/{audience(namespace, name)}"


def audience(namespace: str, name: str) -> str:
    """Whom a token is for that may tell of this job, and of no other."""
    return f"{_API}/namespaces/{namespace}/trainjobs/{name}/status"


def with_endpoint(
    pods: Mapping[str, Object], job: TrainJob, effective: Effective, endpoint: Endpoint
) -> dict[str, Object]:
    """The pod templates `pods`, by the names of their replicated jobs, with all of that."""
    given = dict(pods)
    trainer = next((one for one in effective.jobs if one.ancestor == TRAINER), None)
    if trainer is None:
        return given
    own = {one.get("name") for one in job.trainer.env}
    variables = [one for one in _variables(job, endpoint) if one["name"] not in own]
    mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
    spec: Object = given[trainer.name].get("spec") or {}
    containers = [
        {
            **one,
            "env": merged(one.get("env"), variables),
            "volumeMounts": merged(one.get("volumeMounts"), [mount], "mountPath"),
        }
        for one in spec.get("containers") or ()
    ]
    volumes = merged(spec.get("volumes"), [_volume(job)])
    whole = {**spec, "containers": containers, "volumes": volumes}
    given[trainer.name] = {**given[trainer.name], "spec": whole}
    return given


def config_map(job: TrainJob, endpoint: Endpoint) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, names.status_trust(job.name)),
        "data": {"ca.crt": endpoint.authority},
    }


def _variables(job: TrainJob, endpoint: Endpoint) -> tuple[Object, ...]:
    url = f"{endpoint.address}{path(job.namespace, job.name)}"
    return (
        {"name": "KUBEFLOW_TRAINER_SERVER_URL", "value": url},
        {"name": "KUBEFLOW_TRAINER_SERVER_CA_CERT", "value": f"{FOLDER}/ca.crt"},
        {"name": "KUBEFLOW_TRAINER_SERVER_TOKEN", "value": f"{FOLDER}/token"},
    )


def _volume(job: TrainJob) -> Object:
    token = {
        "audience": audience(job.namespace, job.name),
        "expirationSeconds": TOKEN_SECONDS,
        "path": "token",
    }
    authority = {
        "name": names.status_trust(job.name),
        "items": [{"key": "ca.crt", "path": "ca.crt"}],
    }
    sources = [{"serviceAccountToken": token}, {"configMap": authority}]
    return {"name": VOLUME, "projected": {"sources": sources}}
