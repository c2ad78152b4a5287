"""What the NetworkPolicies of a job let through, judged as a network plugin does (CTL-6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.kinds.annotations import NETWORK_EGRESS, NETWORK_POLICY
from mpi_trainer.api.kinds.network_isolation import IsolationDefault
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.frame import Endpoint, Facts
from mpi_trainer.render.network_policies import of_mpijob, of_trainjob
from tests.unit.api.trainers import runtime, train_job
from tests.unit.render.jobs import job, rendered

replace = msgspec.structs.replace
Object = dict[str, Any]
ENDPOINT = Endpoint("https://mpi-trainer-status.operators.svc:10443", "PEM")
STRANGER = {"app": "web"}


def closed(egress: str = "all", **more: Any) -> Any:
    one = job(**more)
    notes = {**one.metadata.annotations, NETWORK_POLICY: "restricted", NETWORK_EGRESS: egress}
    return replace(one, metadata=replace(one.metadata, annotations=notes))


def labels(one: Any, role: str) -> dict[str, str]:
    plan = layout(one)
    pod = plan.launcher if role == "launcher" else plan.workers[0]
    return dict(pod.labels)


def selects(selector: Object, given: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels") or {}
    others = selector.get("matchExpressions") or ()
    assert all(one["operator"] == "NotIn" for one in others)
    return wanted.items() <= given.items() and not any(
        given.get(one["key"]) in one["values"] for one in others
    )


def admits(ports: Any, port: int, protocol: str) -> bool:
    if ports is None:
        return True
    return any(
        one["protocol"] == protocol
        and ("port" not in one or one["port"] <= port <= one.get("endPort", one["port"]))
        for one in ports
    )


def lets_in(
    policies: Iterable[Object],
    source: dict[str, str],
    target: dict[str, str],
    port: int = 40_000,
    protocol: str = "TCP",
) -> bool:
    """Between pods of one namespace. A pod that no policy selects is open."""
    own = [one["spec"] for one in policies if selects(one["spec"]["podSelector"], target)]
    return not own or any(
        admits(rule.get("ports"), port, protocol)
        and any(selects(peer["podSelector"], source) for peer in rule["from"])
        for spec in own
        for rule in spec["ingress"]
    )


@pytest.mark.parametrize("protocol", ["TCP", "UDP", "SCTP"])
def test_workers_are_reached_by_launcher_and_workers_on_every_port(protocol: str) -> None:
    """CTL-6."""
    one = closed()
    made, worker = of_mpijob(one), labels(one, "worker")
    for port in (1, 22, 2222, 65_535):
        assert lets_in(made, labels(one, "launcher"), worker, port, protocol)
        assert lets_in(made, worker, worker, port, protocol)


def test_the_launcher_is_reached_by_its_workers_on_every_port_but_ssh_s() -> None:
    """CTL-6: MPI's daemons connect back to mpirun."""
    one = closed()
    made, worker, launcher = of_mpijob(one), labels(one, "worker"), labels(one, "launcher")
    shut = {p for p in range(1, 65_536) if not lets_in(made, worker, launcher, p)}
    assert shut == {22, 2222}
    assert lets_in(made, worker, launcher, 2222, "UDP")
    assert lets_in(made, worker, launcher, 2222, "SCTP")


def test_nobody_else_reaches_any_pod_of_the_job() -> None:
    """CTL-6, SC-009."""
    one, other = closed(), closed(name="other")
    made = of_mpijob(one)
    half = {"training.kubeflow.org/job-name": "j"}
    for source in (STRANGER, half, labels(other, "worker"), labels(other, "launcher")):
        for role in ("launcher", "worker"):
            assert not lets_in(made, source, labels(one, role)), (source, role)
    assert lets_in(made, STRANGER, STRANGER), "and other pods stay as they were"


def test_policies_select_the_pods_that_are_rendered() -> None:
    """CTL-6: by the labels that they really carry."""
    one = closed()
    made = rendered(one)
    workers, launcher = (spec["spec"]["podSelector"] for spec in made.network_policies)
    assert selects(workers, made.workers[0]["metadata"]["labels"])
    pod = made.launcher_job["spec"]["template"]["metadata"]["labels"]
    assert selects(launcher, pod)
    assert not selects(workers, pod)


def egress(policies: Iterable[Object]) -> list[Object] | None:
    found: list[list[Object] | None] = [one["spec"].get("egress") for one in policies]
    assert all(one == found[0] for one in found)
    return found[0]


def test_egress_is_free_unless_asked_for_otherwise() -> None:
    """CTL-6."""
    made = of_mpijob(closed())
    assert egress(made) is None
    assert all(one["spec"]["policyTypes"] == ["Ingress"] for one in made)


def test_with_no_egress_names_and_the_job_s_own_pods_stay_in_reach() -> None:
    """CTL-6: DNS at 53 and, as OpenShift has it, at 5353."""
    one = closed("none")
    made = of_mpijob(one)
    assert all(p["spec"]["policyTypes"] == ["Ingress", "Egress"] for p in made)
    found = egress(made)
    assert found is not None
    dns, own = found
    asked = {(port, protocol) for port in (53, 5353) for protocol in ("UDP", "TCP")}
    assert {(each["port"], each["protocol"]) for each in dns["ports"]} == asked
    (peer,) = own["to"]
    assert selects(peer["podSelector"], labels(one, "launcher"))
    assert selects(peer["podSelector"], labels(one, "worker"))
    assert not selects(peer["podSelector"], STRANGER)


def test_egress_to_the_cluster_or_to_ranges_is_added() -> None:
    """CTL-6."""
    assert (egress(of_mpijob(closed("cluster"))) or [])[2:] == [{"to": [{"namespaceSelector": {}}]}]
    ranges = [{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"ipBlock": {"cidr": "fd00::/8"}}]
    assert (egress(of_mpijob(closed("10.0.0.0/8,fd00::/8"))) or [])[2:] == [{"to": ranges}]


def test_an_open_job_has_no_policies_and_a_default_makes_them() -> None:
    """CTL-6: off by default."""
    one = job()
    assert of_mpijob(one) == ()
    assert rendered(one).network_policies == ()
    assert len(of_mpijob(one, IsolationDefault("restricted"))) == 2


def test_policies_belong_to_their_job() -> None:
    one = closed()
    for made in of_mpijob(one):
        (reference,) = made["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["uid"]) == ("MPIJob", one.metadata.uid)
        assert reference["controller"]


def train(egress: str = "all", **changes: Any) -> tuple[TrainJob, Runtime]:
    found, given = load.runtime(runtime()).value, load.train_job(train_job()).value
    assert isinstance(found, Runtime)
    assert isinstance(given, TrainJob)
    notes = {NETWORK_POLICY: "restricted", NETWORK_EGRESS: egress}
    return replace(given, metadata=replace(given.metadata, annotations=notes)), found


def test_pods_of_a_trainjob_are_told_apart_by_their_replicated_jobs() -> None:
    """CTL-6."""
    one, given = train()
    made = of_trainjob(one, effective(one, given), Facts())
    own = {"mpi-trainer.opendatahub.io/trainjob": one.name}
    launcher = {**own, "jobset.sigs.k8s.io/replicatedjob-name": "launcher"}
    node = {**own, "jobset.sigs.k8s.io/replicatedjob-name": "node"}
    forged = {"jobset.sigs.k8s.io/replicatedjob-name": "node"}
    assert lets_in(made, launcher, node, 2222)
    assert lets_in(made, node, node, 2222)
    assert lets_in(made, node, launcher)
    assert not lets_in(made, node, launcher, 2222)
    assert not lets_in(made, forged, launcher)
    assert not lets_in(made, STRANGER, node)


def test_the_status_endpoint_stays_in_reach_of_a_trainjob() -> None:
    """CTL-6."""
    one, given = train("none")
    made = of_trainjob(one, effective(one, given), Facts(endpoint=ENDPOINT))
    (rule,) = (egress(made) or [])[2:]
    (peer,) = rule["to"]
    names = {"kubernetes.io/metadata.name": "operators"}
    assert peer == {"namespaceSelector": {"matchLabels": names}}
    assert rule["ports"] == [{"protocol": "TCP", "port": 10443}]
