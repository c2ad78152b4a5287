"""Whether a job's network is closed, and whom its pods may reach (CTL-6)."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.kinds.annotations import NETWORK_EGRESS, NETWORK_POLICY
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.network_isolation import (
    MOST_RANGES,
    Isolation,
    IsolationDefault,
    isolation,
)
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility, network
from mpi_trainer.api.yaml import load
from tests.unit.api.building import POD, changed, errors, warnings
from tests.unit.api.building import job as mpijob
from tests.unit.api.trainers import runtime, train_job

META = ("metadata", "annotations")
CLOSED = IsolationDefault("restricted", "none")


def asked(egress: str, policy: str = "restricted") -> dict[str, str]:
    return {NETWORK_POLICY: policy, NETWORK_EGRESS: egress}


def test_the_network_is_open_until_somebody_closes_it() -> None:
    assert isolation({}) is None
    assert isolation({NETWORK_POLICY: "none"}) is None
    assert isolation({NETWORK_POLICY: "restricted"}) == Isolation("all")


def test_an_administrator_s_default_holds_where_the_job_is_silent() -> None:
    assert isolation({}, CLOSED) == Isolation("none")
    assert isolation({NETWORK_EGRESS: "cluster"}, CLOSED) == Isolation("cluster")
    assert isolation({NETWORK_POLICY: "none"}, CLOSED) is None


def test_ranges_of_addresses_are_added_to_what_is_always_allowed() -> None:
    given = isolation(asked("10.0.0.0/8, fd00::/8,10.0.0.0/8"))
    assert given == Isolation("none", ("10.0.0.0/8", "fd00::/8"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "everything",
        "10.0.0.0",
        "10.0.0.1/8",
        "1.2.3.0/24,x/1",
        "fe80::%eth0/64",
        "fe80::%a\nb/64",
        "::ffff:10.0.0.0/104",
        "\u0661\u0660.0.0.0/8",
        "10.0.0.0/\u0668",
    ],
)
def test_what_cannot_be_read_is_refused_and_closes_more_not_less(text: str) -> None:
    assert "network-egress]: Invalid value" in errors((META, asked(text)))[0]
    assert isolation(asked(text)) == Isolation("none")
    assert isolation(asked("all", "from-another-version")) == Isolation("all")


def test_the_list_of_ranges_is_bounded() -> None:
    many = ",".join(f"10.0.{n}.0/24" for n in range(MOST_RANGES + 1))
    assert f"must be at most {MOST_RANGES} ranges" in errors((META, asked(many)))[0]


@pytest.mark.parametrize(
    "text", ["," * 250_000, "1.1.1.1/" + "1" * 250_000, ":" * 250_000 + "/1", "x" * 250_000 + "/1"]
)
def test_a_huge_list_is_refused_in_few_words(text: str) -> None:
    """The refusal is sent and stored."""
    assert isolation(asked(text)) == Isolation("none")
    (said,) = errors((META, asked(text)))
    assert len(said) < 500


def test_egress_alone_is_said_to_have_no_effect() -> None:
    (said,) = warnings((META, {NETWORK_EGRESS: "none"}))
    assert "no effect where the job's network is open" in said
    assert warnings((META, asked("none"))) == []


def test_a_closed_network_and_the_node_s_are_refused_with_path_and_remedy() -> None:
    """AC-13."""
    (said,) = errors((META, asked("all")), ((*POD, "hostNetwork"), True))
    assert said.startswith("spec.mpiReplicaSpecs.Worker.template.spec.hostNetwork: Forbidden")
    assert f"remove hostNetwork, or set {NETWORK_POLICY} to none" in said


def test_an_administrator_s_default_refuses_the_node_s_network_too() -> None:
    """AC-13."""
    job = load.job(mpijob(((*POD, "hostNetwork"), True))).value
    assert isinstance(job, MPIJob)
    (said,) = map(str, network.errors(job, CLOSED))
    assert "this cluster closes the network of every job without" in said
    assert list(network.errors(job)) == []


def test_no_template_is_read_in_full_to_know_whose_network_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller asks in each pass over a job that has no pods: one of 250 KB took 120 ms of
    every worker's and of the lease's time."""

    def refuse(*_: Any) -> None:
        raise AssertionError("read in full")

    closed, held = load.job(mpijob((META, asked("none")))).value, load.runtime(runtime()).value
    one = load.train_job(train_job((META, asked("none")))).value
    assert isinstance(closed, MPIJob)
    assert isinstance(held, Runtime)
    assert isinstance(one, TrainJob)
    together = effective(one, held)
    monkeypatch.setattr(network, "decode", refuse)
    assert list(network.errors(closed)) == []
    assert list(network.trainjob_errors(one, together)) == []


@pytest.mark.parametrize("odd", [None, "true", 1, [], {}])
def test_an_odd_value_for_the_node_s_network_is_not_taken_for_it(odd: Any) -> None:
    template = PodTemplate.of({"spec": {"hostNetwork": odd}})
    assert not network.on_node(template)
    assert not network.on_node(PodTemplate.of({"spec": None}))
    assert network.on_node(PodTemplate.of({"spec": {"hostNetwork": True, "containers": [odd]}}))


def test_a_runtime_in_the_node_s_network_is_refused_for_a_closed_trainjob() -> None:
    """AC-13."""
    pod = ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
    made = load.runtime(changed(runtime(), [((*pod, "hostNetwork"), True)])).value
    job = load.train_job(changed(train_job(), [(META, {NETWORK_POLICY: "restricted"})])).value
    assert isinstance(made, Runtime)
    assert isinstance(job, TrainJob)
    (said,) = map(str, compatibility.errors(job, made))
    assert said.startswith("spec.runtimeRef.name: Forbidden")
    assert "has hostNetwork" in said


def second_network(given: Any) -> list[str]:
    pod = ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template")
    notes = {"annotations": {"k8s.v1.cni.cncf.io/networks": "rdma"}}
    made = load.runtime(changed(runtime(), [((*pod, "metadata"), notes)])).value
    job = load.train_job(changed(train_job(), [(META, given)])).value
    assert isinstance(made, Runtime)
    assert isinstance(job, TrainJob)
    return [str(one) for one in compatibility.warnings(job, made)]


def test_a_second_network_of_a_closed_trainjob_is_a_warning() -> None:
    """AC-13."""
    (said,) = second_network({NETWORK_POLICY: "restricted"})
    assert "a second network lies outside NetworkPolicy" in said
    assert second_network({}) == []
