"""Facts about single fields of rendered pods that the goldens do not single out."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.kinds.annotations import bound
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout.agent import paths
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob.children import Facts, Object, children, secret
from tests.unit.render.jobs import (
    RESTRICTED,
    UID,
    changed_spec,
    job,
    rendered,
    replace,
    with_agent,
)


def worker_spec(**spec: Any) -> Object:
    """A worker's spec whose template has these fields."""
    one = job()
    plan = layout(one)
    plan = replace(plan, workers=(changed_spec(plan.workers[0], **spec),))
    made: Object = children(plan, one, Facts()).workers[0]["spec"]
    return made


def test_pods_and_launcher_job_tell_their_attempt() -> None:
    """CTL-11."""
    made = rendered(job(), Facts(attempt=3))
    marked = (made.workers[0], made.launcher_job, made.launcher_job["spec"]["template"])
    assert {o["metadata"]["annotations"]["mpi-trainer.opendatahub.io/attempt"] for o in marked} == {
        "3"
    }


def test_every_child_is_the_jobs_own() -> None:
    """CTL-1: all go with the job, and only it controls them."""
    one = job()
    for made in (*rendered(one), secret(layout(one), one, {})):
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (UID, True, True)


def test_a_job_without_uid_owns_nothing() -> None:
    one = job()
    one = replace(one, metadata=replace(one.metadata, uid=""))
    assert all("ownerReferences" not in o["metadata"] for o in rendered(one))


def test_launcher_pod_stays_until_its_end_is_recorded() -> None:
    """AC-15: the finalizer is on the pod, not on the Job."""
    made = rendered(job()).launcher_job
    assert made["spec"]["template"]["metadata"]["finalizers"] == [
        "mpi-trainer.opendatahub.io/evidence"
    ]
    assert "finalizers" not in made["metadata"]


def test_launcher_job_carries_the_labels_that_are_watched() -> None:
    labels = rendered(job()).launcher_job["metadata"]["labels"]
    assert labels["training.kubeflow.org/operator-name"] == "mpi-operator"
    assert labels["training.kubeflow.org/job-name"] == "j"


@pytest.mark.parametrize(
    "asked",
    [
        {"automountServiceAccountToken": True},
        {"automountServiceAccountToken": False},
        {"serviceAccountName": "reporter"},
        {"serviceAccount": "reporter"},
    ],
)
def test_who_asks_about_the_token_is_heard(asked: dict[str, Any]) -> None:
    """CTL-7."""
    spec = worker_spec(**asked)
    assert spec.get("automountServiceAccountToken") == asked.get("automountServiceAccountToken")


def test_null_is_no_answer_about_the_token() -> None:
    assert worker_spec(automountServiceAccountToken=None)["automountServiceAccountToken"] is False


def test_fields_that_are_null_in_the_template_take_ours() -> None:
    spec = worker_spec(volumes=None, dnsConfig=None, initContainers=None)
    assert [v["name"] for v in spec["volumes"]] == ["ssh-auth", "dev-shm"]
    assert spec["dnsConfig"] == {"searches": ["j.ns.svc.cluster.local"]}


def test_more_searches_than_kubernetes_takes_are_left_as_they_are() -> None:
    full = [f"s{n}.example.com" for n in range(32)]
    assert worker_spec(dnsConfig={"searches": full})["dnsConfig"]["searches"] == full


@pytest.mark.parametrize("kind", ["readinessProbe", "startupProbe"])
def test_own_probe_stays_where_we_start_sshd_too(kind: str) -> None:
    probe = {"exec": {"command": ["true"]}}
    one = job(worker={kind: probe})
    made = children(with_agent(layout(one)), one, Facts())
    main = made.workers[0]["spec"]["containers"][0]
    assert {name: main[name] for name in main if name.endswith("Probe")} == {kind: probe}


def test_a_probe_is_added_only_where_we_start_sshd() -> None:
    """One that ends with its first success: sshd logs every visit."""
    one = job()
    made = children(with_agent(layout(one)), one, Facts())
    main = made.workers[0]["spec"]["containers"][0]
    assert main["startupProbe"]["tcpSocket"] == {"port": 2222}
    assert "readinessProbe" not in main
    assert "startupProbe" not in made.launcher_job["spec"]["template"]["spec"]["containers"][0]
    assert "startupProbe" not in rendered(one).workers[0]["spec"]["containers"][0]


def launcher_probes(one: MPIJob) -> dict[str, Any]:
    made = children(layout(one), one, Facts()).launcher_job
    main = made["spec"]["template"]["spec"]["containers"][0]
    return {name: main[name] for name in main if name.endswith("Probe")}


def test_a_launcher_tells_by_its_readiness_that_its_ranks_seem_stuck() -> None:
    one = job(agent="full")
    probe = launcher_probes(one)["readinessProbe"]
    assert probe["exec"] == {"command": ["/bin/sh", "-c", f"test ! -e {paths.QUIET}"]}
    own = {"exec": {"command": ["true"]}}
    kept = job(launcher={"readinessProbe": own}, agent="full")
    assert launcher_probes(kept) == {"readinessProbe": own}
    never = replace(one.metadata, annotations={bound("suspect"): "0"})
    assert launcher_probes(replace(one, metadata=never)) == {}
    assert launcher_probes(job(agent="environment")) == {}


def test_a_wrapped_command_takes_the_place_of_command_and_args() -> None:
    one = job(launcher={"command": ["mpirun"], "args": ["x"]})
    made = children(with_agent(layout(one)), one, Facts()).launcher_job
    main = made["spec"]["template"]["spec"]["containers"][0]
    assert main["command"] == ["/bin/sh", "/etc/mpi-agent/run.sh", paths.NAMES, "mpirun", "x"]
    assert "args" not in main


def test_a_command_that_is_left_alone_keeps_its_args_apart() -> None:
    one = job(worker={"command": ["sshd"], "args": ["-De"]})
    main = rendered(one).workers[0]["spec"]["containers"][0]
    assert (main["command"], main["args"]) == (["sshd"], ["-De"])


def test_rendering_changes_no_template() -> None:
    one = job(worker={"securityContext": RESTRICTED})
    before = one.worker.template.json
    rendered(one)
    assert one.worker.template.json == before


def test_a_variable_of_ours_stands_once_and_where_the_template_had_it() -> None:
    ours = [{"name": "K_MPI_JOB_ROLE", "value": text} for text in ("a", "b")]
    refers = {"name": "ROLE", "value": "$(K_MPI_JOB_ROLE)"}
    spec = worker_spec(containers=[{"name": "m", "image": "i", "env": [ours[0], refers, ours[1]]}])
    assert spec["containers"][0]["env"] == [{"name": "K_MPI_JOB_ROLE", "value": "worker"}, refers]
