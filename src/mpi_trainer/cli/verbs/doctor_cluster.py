"""What a cluster has for training jobs, what the caller may do there, and what fixes the rest.

Everything is asked with the caller's own rights and changes nothing: the one job that is sent is a
dry run. What the caller may not see is said to be unknown, never to be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from mpi_trainer.api.kinds.managers import MPI_OPERATOR
from mpi_trainer.cli.verbs.doctor import Check
from mpi_trainer.kube import requests
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import ApiError, Forbidden, KubeError, NotFound, Unauthorized
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    LEASES,
    MPIJOBS,
    NAMESPACES,
    RESOURCE_QUOTAS,
    SELF_SUBJECT_ACCESS_REVIEWS,
    SERVICES,
    TRAINJOBS,
    Resource,
)

Object = Mapping[str, Any]
_INSTALL: Final = "have an administrator install it (docs/install.md)"
LOCAL_QUEUES: Final = tuple(
    Resource("kueue.x-k8s.io", version, "localqueues", "LocalQueue")
    for version in ("v1beta2", "v1beta1")
)
SELF_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
# What people do with jobs, the rights that it takes, and the role of ours that has them.
RIGHTS: Final = (
    ("submit jobs", (("create", "mpijobs"),), "mpijob-user"),
    ("suspend, resume and delete jobs", (("patch", "mpijobs"), ("delete", "mpijobs")),
     "mpijob-user"),
    ("see jobs", (("get", "mpijobs"), ("list", "mpijobs"), ("watch", "mpijobs")), "mpijob-viewer"),
    ("read logs", (("list", "pods"), ("get", "pods/log")), "mpijob-viewer"),
    ("see events", (("list", "events"),), "mpijob-viewer"),
    ("send code along", (("create", "configmaps"),), "mpijob-user"),
    ("enter pods (exec, cp, stack)", (("create", "pods/exec"),), "mpijob-admin"),
)  # fmt: skip
# Of ours, alone or beside the public operator; the public operator has the first too.
_LEASES: Final = ("mpi-operator", "mpi-trainer")
_SILENT: Final = timedelta(minutes=1)
"""a controller renews its lease every few seconds and answers a new job at once"""
_DNS: Final = (("kube-system", "kube-dns"), ("openshift-dns", "dns-default"))


def examine(config: Config) -> Iterator[Check]:
    """From the address inwards; nothing more where the first step fails."""
    with OneShot(config) as server:
        try:
            version = server.call(Request("GET", "/version"))
            groups = {g["name"] for g in server.call(Request("GET", "/apis"))["groups"]}
        except KubeError as error:
            yield Check("cluster", "missing", str(error), _reach(error))
            return
        yield Check("cluster", "ok", f"{config.server}, Kubernetes {version['gitVersion']}")
        yield _identity(server, config)
        yield _namespace(server, config)
        yield from _kinds(server, groups)
        if "kubeflow.org" in groups:
            yield _admission(server, config)
            yield _controller(server, config)
        yield from _rights(server, config)
        if "trainer.kubeflow.org" in groups:
            yield _runtimes(server)
        yield _queues(server, config, groups)
        yield from _quotas(server, config)
        yield _dns(server)
        yield _constraints(server, config, groups)


def _reach(error: KubeError) -> str:
    if isinstance(error, Unauthorized):
        return "log in again: `oc login`, or renew the token in your kubeconfig"
    return "check the address and your network, or choose another cluster with --context"


def _identity(server: OneShot, config: Config) -> Check:
    body = {"apiVersion": SELF_REVIEWS.api_version, "kind": SELF_REVIEWS.kind}
    try:
        answer = server.call(requests.create(SELF_REVIEWS, "", body))
    except KubeError as error:
        return Check("login", "limited", f"who you are cannot be asked: {error}")
    user = answer["status"]["userInfo"].get("username", "")
    if user == "system:anonymous":
        return Check("login", "missing", "the server does not know you", "log in to the cluster")
    return Check("login", "ok", f"{user}, by {config.source}")


def _namespace(server: OneShot, config: Config) -> Check:
    name = config.namespace
    try:
        found = server.call(requests.get(NAMESPACES, "", name))
    except NotFound:
        fix = f"make it (`kubectl create namespace {name}`), or name another with -n"
        return Check("namespace", "missing", f"{name} does not exist", fix)
    except KubeError:
        return Check("namespace", "ok", f"{name} (its settings are not yours to see)")
    level = _labels(found).get("pod-security.kubernetes.io/enforce", "")
    return Check("namespace", "ok", name + (f", pods must be {level}" if level else ""))


def _kinds(server: OneShot, groups: set[str]) -> Iterator[Check]:
    needs = {
        MPIJOBS: "MPIJobs cannot be submitted",
        TRAINJOBS: "TrainJobs cannot be submitted",
    }
    for kind, without in needs.items():
        if _served(server, kind):
            yield Check(kind.kind, "ok", f"{kind.api_version} is served")
        else:
            level = "missing" if kind is MPIJOBS else "limited"
            fix = f"{_INSTALL}: `kubectl apply -k manifests/crds`"
            yield Check(kind.kind, level, f"is not defined here: {without}", fix)
    if "trainer.kubeflow.org" in groups and "jobset.x-k8s.io" not in groups:
        yield Check("JobSet", "limited", "is not defined here, and TrainJobs need it", _INSTALL)


def _served(server: OneShot, kind: Resource) -> bool:
    try:
        found = server.call(Request("GET", f"/apis/{kind.api_version}"))
    except KubeError:
        return False
    return any(each.get("name") == kind.plural for each in found.get("resources") or ())


def _admission(server: OneShot, config: Config) -> Check:
    """A job that every schema takes and only our admission refuses: no pod could have its name."""
    container = {"name": "c", "image": "i", "command": ["true"]}
    template = {"template": {"spec": {"containers": [container]}}}
    body = {
        "apiVersion": MPIJOBS.api_version,
        "kind": MPIJOBS.kind,
        "metadata": {"name": "x" * 64, "namespace": config.namespace},
        "spec": {"mpiReplicaSpecs": {"Launcher": template, "Worker": {"replicas": 1, **template}}},
    }
    what = "admission"
    try:
        server.call(requests.create(MPIJOBS, config.namespace, body, dry_run=True), None)
    except ApiError as error:
        if "failed calling webhook" in error.message:
            fix = "have an administrator look at the pods of the webhook; nothing gets in till then"
            return Check(what, "missing", f"its webhook does not answer: {error.message}", fix)
        if "denied the request" in error.message:
            return Check(what, "ok", "jobs are checked before they are taken")
        return Check(what, "limited", f"cannot be tried with your rights: {error.message}")
    except KubeError as error:
        return Check(what, "limited", str(error))
    fix = "install it (docs/install.md); until then check files with `odh validate`"
    return Check(what, "limited", "no webhook checks jobs: mistakes show only later", fix)


def _controller(server: OneShot, config: Config) -> Check:
    """A job that nobody has answered proves that none runs, a lease that is renewed that one does;
    few may see leases."""
    what, fix = "controller", "have an administrator look at its Deployment and pods"
    waiting = _unanswered(server, config)
    if waiting:
        says = f"none has answered job {waiting[0]}, which is more than a minute old"
        return Check(what, "missing", says, fix)
    try:
        leases = [
            lease
            for name in _LEASES
            for lease in server.call(
                requests.list_page(LEASES, fields=f"metadata.name={name}", limit=0)
            ).get("items")
            or ()
        ]
    except KubeError:
        return Check(what, "ok", f"is not yours to see; no job in {config.namespace} waits for it")
    if not leases:
        says = "no lease of one is found; where it runs without, jobs are answered all the same"
        return Check(what, "limited", says, fix)
    newest = max(leases, key=lambda lease: _renewed(lease) or "")
    namespace, holder = newest["metadata"]["namespace"], newest["spec"].get("holderIdentity")
    if not holder or _older(_renewed(newest), _SILENT):
        says = f"none runs: nobody renews the lease in namespace {namespace}"
        return Check(what, "missing", f"{says}, so jobs stay as they are", fix)
    return Check(what, "ok", f"{holder} leads, in namespace {namespace}")


def _unanswered(server: OneShot, config: Config) -> list[str]:
    try:
        page = server.call(requests.list_page(MPIJOBS, config.namespace))
    except KubeError:
        return []
    return [
        job["metadata"]["name"]
        for job in page.get("items") or ()
        if not (job.get("status") or {}).get("conditions")
        and _older(job["metadata"].get("creationTimestamp"), _SILENT)
        and not _of_others((job.get("spec") or {}).get("runPolicy") or {})
    ]


def _of_others(policy: Object) -> bool:
    """Whether nobody is to answer a job yet, or a controller of another kind."""
    return bool(policy.get("suspend")) or policy.get("managedBy") not in (None, MPI_OPERATOR)


def _renewed(lease: Object) -> str | None:
    found: str | None = lease["spec"].get("renewTime")
    return found


def _older(moment: str | None, span: timedelta) -> bool:
    return moment is None or datetime.now(UTC) - datetime.fromisoformat(moment) > span


def _rights(server: OneShot, config: Config) -> Iterator[Check]:
    well = []
    for what, needed, role in RIGHTS:
        missing = [f"{v} {r}" for v, r in needed if not _may(server, v, r, config.namespace)]
        if missing:
            says = f"you may not {what} in {config.namespace}: no right to {', '.join(missing)}"
            fix = f"ask an administrator for the role {role} in this namespace"
            yield Check("rights", "limited", says, fix)
        else:
            well.append(what)
    if well:
        yield Check("rights", "ok", f"you may {', '.join(well)} in {config.namespace}")


def _may(server: OneShot, verb: str, resource: str, namespace: str) -> bool:
    plural, _, sub = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": MPIJOBS.group if plural == MPIJOBS.plural else "",
        "resource": plural,
        "subresource": sub,
        "namespace": namespace,
    }
    review = {
        "apiVersion": SELF_SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SELF_SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    try:
        answer = server.call(requests.create(SELF_SUBJECT_ACCESS_REVIEWS, "", review))
    except KubeError:
        return False
    return bool(answer["status"]["allowed"])


def _runtimes(server: OneShot) -> Check:
    try:
        page = server.call(requests.list_page(CLUSTER_TRAINING_RUNTIMES, limit=0))
    except Forbidden:
        fix = "ask for `list` on clustertrainingruntimes"
        return Check("runtimes", "limited", "are not yours to see", fix)
    except KubeError as error:
        return Check("runtimes", "limited", str(error))
    names = [item["metadata"]["name"] for item in page.get("items") or ()]
    if not names:
        fix = "have an administrator apply ours: `kubectl apply -k manifests/runtimes`"
        return Check("runtimes", "limited", "there are none, so no TrainJob can run", fix)
    return Check("runtimes", "ok", ", ".join(sorted(names)))


def _queues(server: OneShot, config: Config, groups: set[str]) -> Check:
    if "kueue.x-k8s.io" not in groups:
        return Check("queues", "ok", "Kueue is not here: jobs start as soon as they fit")
    for resource in LOCAL_QUEUES:
        try:
            page = server.call(requests.list_page(resource, config.namespace, limit=0))
        except NotFound:
            continue
        except KubeError as error:
            return Check("queues", "limited", f"cannot be listed: {error}")
        return _queue_words(page.get("items") or (), config.namespace)
    return Check("queues", "limited", "this Kueue's version is not known to us")


def _queue_words(items: Iterable[Object], namespace: str) -> Check:
    shown, idle = [], []
    for item in items:
        name, status = item["metadata"]["name"], item.get("status") or {}
        active = _condition(status, "Active")
        waiting = status.get("pendingWorkloads", 0)
        shown.append(f"{name} ({waiting} waiting, {status.get('admittedWorkloads', 0)} admitted)")
        if active is not None and active.get("status") == "False":
            idle.append(f"{name}: {active.get('message', '')}")
    if idle:
        says, fix = f"not in use: {'; '.join(idle)}", "have an administrator fix its ClusterQueue"
        return Check("queues", "limited", says, fix)
    if not shown:
        return Check("queues", "ok", f"Kueue has no queue in {namespace}: jobs need none there")
    return Check("queues", "ok", ", ".join(shown))


def _quotas(server: OneShot, config: Config) -> Iterator[Check]:
    try:
        page = server.call(requests.list_page(RESOURCE_QUOTAS, config.namespace, limit=0))
    except KubeError:
        return
    for item in page.get("items") or ():
        status = item.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        says = ", ".join(f"{used.get(name, '0')} of {hard[name]} {name}" for name in hard)
        yield Check("quota", "ok", f"{item['metadata']['name']}: {says} in use")


def _dns(server: OneShot) -> Check:
    hidden = False
    for namespace, name in _DNS:
        try:
            server.call(requests.get(SERVICES, namespace, name), None)
        except NotFound:
            continue
        except KubeError:
            hidden = True
            continue
        return Check("dns", "ok", f"service {name} in {namespace}")
    if hidden:
        return Check("dns", "ok", "is not yours to see; a job says where a name is not found")
    fix = "have an administrator install cluster DNS: workers find each other by name"
    return Check("dns", "missing", "there is no service for names", fix)


def _constraints(server: OneShot, config: Config, groups: set[str]) -> Check:
    if "security.openshift.io" not in groups:
        return Check("user ids", "ok", "no OpenShift: images choose the user that they run as")
    try:
        found = server.call(requests.get(NAMESPACES, "", config.namespace))
    except KubeError:
        return Check("user ids", "ok", "OpenShift gives every namespace a range of its own")
    span = _notes(found).get("openshift.io/sa.scc.uid-range", "")
    if not span:
        fix = "have an administrator make it as a project (`oc new-project`)"
        return Check("user ids", "limited", "the namespace has no range of user ids", fix)
    return Check("user ids", "ok", f"{span}: any of them works, images need no root")


def _labels(found: Object) -> Mapping[str, str]:
    return found["metadata"].get("labels") or {}


def _notes(found: Object) -> Mapping[str, str]:
    return found["metadata"].get("annotations") or {}


def _condition(status: Object, kind: str) -> Object | None:
    return next((c for c in status.get("conditions") or () if c.get("type") == kind), None)
