"""The NetworkPolicies of a job whose network is closed: who may connect to its pods, and whom they
may reach.

Into workers come the job's own pods on every port; into the launcher its workers on every port but
SSH's, since MPI's daemons connect back to mpirun. Out goes what the job's annotation says, and
always names (DNS) and the job's own pods. The labels by which pods are told apart are set by
controllers only, which admission sees to. Danger: policies add up, so any other policy of the
namespace may open what these close; and where no network plugin enforces them nothing is closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from mpi_trainer.api.effective.combine import LAUNCHER, Effective
from mpi_trainer.api.kinds.labels import (
    LABEL_JOB,
    LABEL_OPERATOR,
    LABEL_REPLICATED_JOB,
    LABEL_ROLE,
    LABEL_TRAINJOB,
    MPI_OPERATOR,
)
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.network_isolation import (
    ALL,
    CLUSTER,
    NO_DEFAULT,
    Isolation,
    IsolationDefault,
    isolation,
)
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.render import names
from mpi_trainer.render.frame import Endpoint, Facts, Object, Owner, metadata

DNS_PORTS = (53, 5353)
SSH_PORTS = (22, 2222)
"""of images made for the public operator, and of our own sshd"""
_LAST_PORT = 65535
NAMESPACE = "kubernetes.io/metadata.name"
"""which every namespace carries, and nobody can change"""


class _Pods(msgspec.Struct, frozen=True):
    """Selectors of a job's pods; `launcher` None where it has none of its own."""

    all: Object
    workers: Object
    launcher: Object | None = None


def of_mpijob(job: MPIJob, default: IsolationDefault = NO_DEFAULT) -> tuple[Object, ...]:
    """None where the job's network is open; `default` is the administrator's."""
    closed = isolation(job.metadata.annotations, default)
    if closed is None:
        return ()
    labels = {LABEL_OPERATOR: MPI_OPERATOR, LABEL_JOB: job.name}
    pods = _Pods(
        all={"matchLabels": labels},
        workers={"matchLabels": {**labels, LABEL_ROLE: "worker"}},
        launcher={"matchLabels": {**labels, LABEL_ROLE: "launcher"}},
    )
    return tuple(_policies(job, labels, pods, _egress(closed, pods, None)))


def of_trainjob(job: TrainJob, effective: Effective, facts: Facts) -> tuple[Object, ...]:
    """As `of_mpijob`. Where its programs report their progress stays in reach."""
    closed = isolation(job.metadata.annotations, facts.isolation)
    if closed is None:
        return ()
    labels = {LABEL_TRAINJOB: job.name}
    pods = _Pods(all={"matchLabels": labels}, workers={"matchLabels": labels})
    launcher = effective.job(LAUNCHER)
    if launcher is not None:
        others = {"key": LABEL_REPLICATED_JOB, "operator": "NotIn", "values": [launcher.name]}
        pods = _Pods(
            all=pods.all,
            workers={"matchLabels": labels, "matchExpressions": [others]},
            launcher={"matchLabels": {**labels, LABEL_REPLICATED_JOB: launcher.name}},
        )
    return tuple(_policies(job, labels, pods, _egress(closed, pods, facts.endpoint)))


def _policies(
    job: Owner, labels: dict[str, str], pods: _Pods, egress: list[Object] | None
) -> Iterator[Object]:
    into_workers = {"from": [{"podSelector": pods.all}]}
    yield _policy(job, "workers", labels, pods.workers, into_workers, egress)
    if pods.launcher is not None:
        into_launcher = {"from": [{"podSelector": pods.workers}], "ports": _all_but_ssh()}
        yield _policy(job, "launcher", labels, pods.launcher, into_launcher, egress)


def _policy(
    job: Owner,
    which: str,
    labels: dict[str, str],
    selector: Object,
    ingress: Object,
    egress: list[Object] | None,
) -> Object:
    spec: Object = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": [ingress]}
    if egress is not None:
        spec |= {"policyTypes": ["Ingress", "Egress"], "egress": egress}
    name = names.network_policy(job.metadata.name, which)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(job, name, labels=dict(labels)),
        "spec": spec,
    }


def _all_but_ssh() -> list[Object]:
    """A policy can only list what is allowed."""
    allowed: list[Object] = []
    first = 1
    for port in (*SSH_PORTS, _LAST_PORT + 1):
        allowed.append({"protocol": "TCP", "port": first, "endPort": port - 1})
        first = port + 1
    return [*allowed, {"protocol": "UDP"}, {"protocol": "SCTP"}]


def _egress(closed: Isolation, pods: _Pods, endpoint: Endpoint | None) -> list[Object] | None:
    """None: whatever they like."""
    if closed.egress == ALL:
        return None
    allowed: list[Object] = [
        {"ports": [{"protocol": p, "port": n} for n in DNS_PORTS for p in ("UDP", "TCP")]},
        {"to": [{"podSelector": pods.all}]},
    ]
    if endpoint is not None:
        allowed.append(_to_endpoint(endpoint))
    if closed.egress == CLUSTER:
        allowed.append({"to": [{"namespaceSelector": {}}]})
    if closed.ranges:
        allowed.append({"to": [{"ipBlock": {"cidr": one}} for one in closed.ranges]})
    return allowed


def _to_endpoint(endpoint: Endpoint) -> Object:
    """Its host is `SERVICE.NAMESPACE.svc`, and its pods listen on the port of the Service."""
    address = urlsplit(endpoint.address)
    namespace = (address.hostname or "").split(".")[1]
    return {
        "to": [{"namespaceSelector": {"matchLabels": {NAMESPACE: namespace}}}],
        "ports": [{"protocol": "TCP", "port": address.port}],
    }
