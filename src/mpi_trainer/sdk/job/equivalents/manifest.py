"""A job's manifest as text, and what is compared where two jobs are to be the same. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.api.defaults import mpijob_with_defaults, trainjob_with_defaults
from mpi_trainer.api.kinds import mpijob, trainjob
from mpi_trainer.api.kinds.mpijob import LAUNCHER, MPIJob, MPIJobStatus
from mpi_trainer.api.kinds.trainjob import TrainJob, TrainJobStatus
from mpi_trainer.api.yaml.written import written
from mpi_trainer.decide.mpijob import backoff
from mpi_trainer.sdk.backends.cluster.defaults import TAG_OPTION

Object = dict[str, Any]
replace = msgspec.structs.replace


def text(job: MPIJob | TrainJob) -> str:
    wire = trainjob.to_wire(job) if isinstance(job, TrainJob) else mpijob.to_wire(job)
    wire = {key: value for key, value in wire.items() if key != "status"}
    return f"{written(wire)}\n"


def comparable(job: MPIJob) -> Object:
    """The job with its defaults, less what makes no difference: names of volumes, how an amount is
    written, and what we ourselves add to launchers on a cluster."""
    full = mpijob_with_defaults(job)
    policy = replace(full.spec.run_policy, backoff_limit=backoff.limit(full))
    full = replace(full, spec=replace(full.spec, run_policy=policy), status=MPIJobStatus())
    wire: Object = msgspec.json.decode(msgspec.json.encode(mpijob.to_wire(full)))
    wire.pop("status", None)
    for role, replica in wire["spec"].get("mpiReplicaSpecs", {}).items():
        template = replica["template"]
        if not template.get("metadata"):
            template.pop("metadata", None)
        spec = template.get("spec") or {}
        for container in spec.get("containers") or ():
            _plain_container(container, tagged=role == LAUNCHER)
        _plain_volumes(spec)
    return wire


def comparable_trainjob(job: TrainJob) -> Object:
    """The same of a TrainJob, which names no volumes."""
    full = replace(trainjob_with_defaults(job), status=TrainJobStatus())
    wire: Object = msgspec.json.decode(msgspec.json.encode(trainjob.to_wire(full)))
    wire.pop("status", None)
    spec = wire["spec"]
    trainer = spec.setdefault("trainer", {})
    if trainer.get("resourcesPerNode"):
        trainer["resourcesPerNode"] = _plain_amounts(trainer["resourcesPerNode"])
    if not spec.get("suspend"):
        spec.pop("suspend", None)
    return wire


def _plain_container(container: Object, *, tagged: bool) -> None:
    variables = [
        one
        for one in container.get("env") or ()
        if not (tagged and isinstance(one, dict) and one.get("name") == TAG_OPTION)
    ]
    container.pop("env", None)
    if variables:
        container["env"] = variables
    if container.get("resources"):
        container["resources"] = _plain_amounts(container["resources"])
    else:
        container.pop("resources", None)


def _plain_amounts(given: Any) -> Any:
    """A request that is not said is the limit."""
    if not isinstance(given, dict) or not set(given) <= {"requests", "limits"}:
        return given
    limits = {name: str(amount) for name, amount in (given.get("limits") or {}).items()}
    requests = {name: str(amount) for name, amount in (given.get("requests") or {}).items()}
    return {"limits": limits, "requests": {**limits, **requests}}


def _plain_volumes(spec: Object) -> None:
    """Volumes by number. What does not look like volumes stays as it is."""
    volumes = [one for one in spec.get("volumes") or () if isinstance(one, dict)]
    names = {one.get("name"): f"volume-{number}" for number, one in enumerate(volumes)}
    for one in volumes:
        one["name"] = names[one.get("name")]
    for container in spec.get("containers") or ():
        for mount in container.get("volumeMounts") or ():
            if isinstance(mount, dict) and mount.get("name") in names:
                mount["name"] = names[mount["name"]]
                if mount.get("readOnly") is False:
                    del mount["readOnly"]
