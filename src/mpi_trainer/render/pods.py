"""A pod of the job: its template as it came, and beside it what the Layout and the job's kind ask.

Every pod of MPI is made here and nowhere else, so what must be on each belongs into `filled`. What
the user wrote wins wherever a job can run with it: an own /dev/shm, probe, Istio setting, service
account. Names, labels, the restart policy and the environment of MPI are ours, as upstream's are;
so is the scheduler where gangs are scheduled. Restarting is the controller's business, by attempts;
a kubelet that restarted a container would hide a failure from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mpi_trainer.api.kinds.annotations import ATTEMPT
from mpi_trainer.api.kinds.labels import without_reserved
from mpi_trainer.layout.model import PodLayout
from mpi_trainer.render import init_container
from mpi_trainer.render.containers import main_container
from mpi_trainer.render.frame import Frame, Object
from mpi_trainer.render.volumes import add_shared_memory, folders

ISTIO = "sidecar.istio.io/inject"
MOST_SEARCHES = 32
LONGEST_SEARCHES = 2048


def pod(layout: PodLayout, frame: Frame) -> Object:
    """Metadata (labels, annotations) and spec of a pod that only its controller restarts."""
    own = {"restartPolicy": "Never", "hostname": layout.hostname, "subdomain": layout.subdomain}
    given = layout.template.content.get("metadata") or {}
    made = {"metadata": metadata(given, layout, frame), "spec": filled(layout, frame, own)}
    return frame.marks.on(made)


def filled(layout: PodLayout, frame: Frame, own: Object | None = None) -> Object:
    """The spec. Name and restarts are `own`, or come from whoever makes the pod."""
    spec: Object = layout.template.content.get("spec") or {}
    main = main_container(spec, layout.container)
    _fill_main(main, spec, layout, frame)
    spec |= own or {}
    _resolve_names(spec, frame.search)
    if not _asks_for_token(spec):
        spec["automountServiceAccountToken"] = False
    return spec


def metadata(given: Object, layout: PodLayout, frame: Frame) -> Object:
    annotations = without_reserved(given.get("annotations") or {}, ATTEMPT)
    annotations[ATTEMPT] = str(frame.facts.attempt)
    return marked({"labels": given.get("labels"), "annotations": annotations}, layout.labels)


def marked(given: Object, labels: Mapping[str, str]) -> Object:
    """Metadata with these labels, and Istio's sidecar off where nothing is said about it."""
    both = {**without_reserved(given.get("labels") or {}, *labels), **labels}
    annotations = {**(given.get("annotations") or {})}
    if ISTIO not in annotations and ISTIO not in both:
        annotations[ISTIO] = "false"
    return {**given, "labels": both, "annotations": annotations}


def _fill_main(main: Object, spec: Object, layout: PodLayout, frame: Frame) -> None:
    """What the container that runs the job gets: command, variables, files, probe."""
    own = folders(layout, frame, spec)
    given, mounts = main.get("env") or [], main.get("volumeMounts") or []
    main["env"] = _variables(given, layout.env)
    spec["volumes"] = [*(spec.get("volumes") or ()), *own.volumes]
    main["volumeMounts"] = [*mounts, *own.mounts, *own.overlays]
    if layout.name in frame.rank_pods:
        add_shared_memory(spec, main)
    if layout.prepare:
        env = _variables(given, init_container.variables(layout.env))
        twin = {**main, "env": env, "volumeMounts": [*mounts, *own.needed]}
        spec["initContainers"] = init_container.init_containers(spec, twin, layout.prepare)
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


def _variables(given: list[Any], added: Iterable[tuple[str, str]]) -> list[Any]:
    """Ours win. They take the place of the template's own, so that `$(NAME)` still finds them."""
    ours = {name: {"name": name, "value": value} for name, value in added}
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
