"""A pod of the job: its template as it came, and beside it what the Layout and the job's kind ask.

Both roles' pods are made here and nowhere else, so what must be on every pod (a gang scheduler's
marks, for one) belongs into `pod`. What the user wrote wins wherever a job can run with it: an
own /dev/shm, probe, Istio setting, service account. Names, labels, the restart policy and the
environment of MPI are ours, as upstream's are. Restarting is the controller's business, by
attempts; a kubelet that restarted a container would hide a failure from it.
"""

from __future__ import annotations

from typing import Any

from mpi_trainer.layout.model import PodLayout
from mpi_trainer.render import names, preparation, sharedmemory
from mpi_trainer.render.frame import Frame, Object
from mpi_trainer.render.volumes import folders

ISTIO = "sidecar.istio.io/inject"
MOST_SEARCHES = 32
LONGEST_SEARCHES = 2048


def pod(layout: PodLayout, frame: Frame) -> Object:
    """Metadata (labels, annotations) and spec, for a Pod or for a Job's template."""
    content = layout.template.content
    spec: Object = content.get("spec") or {}
    _fill_main(spec, layout, frame)
    spec["restartPolicy"] = "Never"
    spec["hostname"] = layout.hostname
    spec["subdomain"] = layout.subdomain
    _resolve_names(spec, frame.search)
    if not _asks_for_token(spec):
        spec["automountServiceAccountToken"] = False
    if layout.name in frame.rank_pods:
        sharedmemory.add(spec)
    return {"metadata": metadata(content.get("metadata") or {}, layout, frame), "spec": spec}


def metadata(given: Object, layout: PodLayout, frame: Frame) -> Object:
    labels = {**(given.get("labels") or {}), **layout.labels}
    annotations = {**(given.get("annotations") or {}), names.ATTEMPT: str(frame.facts.attempt)}
    if ISTIO not in annotations and ISTIO not in labels:
        annotations[ISTIO] = "false"
    return {"labels": labels, "annotations": annotations}


def _fill_main(spec: Object, layout: PodLayout, frame: Frame) -> None:
    """What the first container gets: command, variables, files, probe."""
    main: Object = spec["containers"][0]
    own = folders(layout, frame, spec)
    main["env"] = _variables(main.get("env") or [], layout)
    spec["volumes"] = [*(spec.get("volumes") or ()), *own.volumes]
    main["volumeMounts"] = [*(main.get("volumeMounts") or ()), *own.mounts]
    if layout.prepare:
        spec["initContainers"] = preparation.init_containers(spec, layout.prepare)
    main["volumeMounts"] = [*main["volumeMounts"], *own.overlays]
    if layout.command != (*(main.get("command") or ()), *(main.get("args") or ())):
        main["command"] = list(layout.command)
        main.pop("args", None)
    if layout.ready_port and not (main.get("readinessProbe") or main.get("startupProbe")):
        main["startupProbe"] = _ready_at(layout.ready_port)


def _ready_at(port: int) -> Object:
    """Ready from the first answer on; asked no more then, since sshd logs every such visit."""
    return {
        "tcpSocket": {"port": port},
        "periodSeconds": 1,
        "timeoutSeconds": 1,
        "failureThreshold": 600,
    }


def _variables(given: list[Any], layout: PodLayout) -> list[Any]:
    """Ours win. They take the place of the template's own, so that `$(NAME)` still finds them."""
    ours = {name: {"name": name, "value": value} for name, value in layout.env}
    replaced = set(ours)
    kept = (ours.pop(v["name"], None) if v.get("name") in replaced else v for v in given)
    return [*(v for v in kept if v is not None), *ours.values()]


def _resolve_names(spec: Object, search: str) -> None:
    if spec.get("hostNetwork"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    config = spec.get("dnsConfig") or {}
    searches = config.get("searches") or []
    wanted = searches if search in searches else [*searches, search]
    if len(wanted) <= MOST_SEARCHES and len(" ".join(wanted)) <= LONGEST_SEARCHES:
        spec["dnsConfig"] = {**config, "searches": wanted}


def _asks_for_token(spec: Object) -> bool:
    """Who names an account wants its rights; who says yes or no means it."""
    return (
        spec.get("automountServiceAccountToken") is not None
        or bool(spec.get("serviceAccountName"))
        or bool(spec.get("serviceAccount"))
    )
