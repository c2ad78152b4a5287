"""Admission of TrainJobs and runtimes by a real API server (CTL-13, issue 9 Shows 5)."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from tests.api.admission.serving import Server, quota
from tests.cluster import Kubectl, eventually
from tests.unit.api.building import changed
from tests.unit.api.traincases import (
    EXTRA,
    KUEUE,
    PATCHES,
    REFUSED,
    RUNTIMES,
    RUNTIMES_REFUSED,
    RUNTIMES_TAKEN,
    SCHEMA,
    TAKEN,
    Refused,
    Taken,
    case_job,
)
from tests.unit.api.trainers import patch, plain, runtime, train_job

COMPLETE = {
    "type": "Complete",
    "status": "True",
    "reason": "JobsCompleted",
    "message": "",
    "lastTransitionTime": "2026-11-16T12:00:00Z",
}
DENIED = re.compile(r"(?=Error from server|The TrainJob |The ClusterTrainingRuntime |error: )")


def tried(kubectl: Kubectl, *objects: dict[str, Any]) -> str:
    """What kubectl says of objects that are created for a try only."""
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    answer = kubectl.attempt(
        "create", "--dry-run=server", "--validate=false", "-f", "-",
        data=json.dumps(document), seconds=110,
    )  # fmt: skip
    return answer.stdout + answer.stderr


def numbered(n: int, one: Refused | Taken) -> dict[str, Any]:
    made = case_job(one)
    del made["metadata"]["namespace"]
    if not any(path[:2] == ("metadata", "name") for path, _ in one.changes):
        made["metadata"]["name"] = f"case-{n}"
    return made


def stored(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return changed(copy.deepcopy(value), [(("metadata", "name"), name)])


@pytest.fixture(scope="module")
def runtimes(webhook: Server, api_server: Any) -> Any:
    """The runtimes that the table names, created through the webhook."""
    kubectl = Kubectl(api_server)
    eventually("served", lambda: not kubectl.attempt("get", "clustertrainingruntimes").returncode)
    made = [stored(name, value) for name, value in RUNTIMES.items()]
    kubectl.apply(*made)
    yield
    kubectl("delete", "clustertrainingruntimes", *RUNTIMES)


@pytest.fixture
def plain_namespace(namespace: Kubectl, runtimes: Any) -> Kubectl:
    """Without Pod Security: the table is about jobs, not about what a namespace allows."""
    label = "pod-security.kubernetes.io/enforce=privileged"
    namespace("label", "--overwrite", "namespace", namespace.namespace, label)
    eventually("account", lambda: not namespace.attempt("get", "sa", "default").returncode)
    return namespace


def test_every_bad_job_is_refused_with_field_problem_and_remedy(plain_namespace: Kubectl) -> None:
    jobs = [numbered(n, one) for n, one in enumerate(REFUSED)]
    said = DENIED.split(tried(plain_namespace, *jobs))[1:]
    assert len(said) == len(REFUSED), said
    for one, text in zip(REFUSED, said, strict=True):
        if one.by == SCHEMA:
            assert "denied the request" not in text, text
        else:
            assert one.words in text, (one, text)
            lines = [line for line in text.splitlines() if line.startswith("* ")]
            assert lines, text
            assert all("; " in line and ": " in line for line in lines), text


def test_every_sound_job_is_taken(plain_namespace: Kubectl) -> None:
    said = tried(plain_namespace, *(numbered(n, one) for n, one in enumerate(TAKEN)))
    assert "rror" not in said
    assert said.count("created (server dry run)") == len(TAKEN)


def test_every_bad_runtime_is_refused(plain_namespace: Kubectl) -> None:
    made = [stored(f"bad-{n}", value) for n, (value, _, _) in enumerate(RUNTIMES_REFUSED)]
    said = DENIED.split(tried(plain_namespace, *made))[1:]
    assert len(said) == len(RUNTIMES_REFUSED)
    for (_, words, by), text in zip(RUNTIMES_REFUSED, said, strict=True):
        assert by == SCHEMA or words in text, text


def test_every_sound_runtime_is_taken(plain_namespace: Kubectl) -> None:
    made = [stored(f"good-{n}", value) for n, value in enumerate(RUNTIMES_TAKEN)]
    said = tried(plain_namespace, *made)
    assert said.count("created (server dry run)") == len(RUNTIMES_TAKEN)
    assert "Warning: " in said
    assert "the runtime is deprecated" in said


def test_runtime_that_is_not_looked_at_is_taken(plain_namespace: Kubectl) -> None:
    """As upstream's own label says."""
    label = {"trainer.kubeflow.org/webhook-validation": "disabled"}
    skipped = plain((("spec", "mlPolicy", "numNodes"), -1), (("metadata", "labels"), label))
    assert "created" in tried(plain_namespace, stored("skipped", skipped))


def test_missing_runtime_is_named_with_its_kind(plain_namespace: Kubectl) -> None:
    lost = train_job((("spec", "runtimeRef", "name"), "lost"))
    lost["metadata"].pop("namespace")
    said = tried(plain_namespace, lost)
    assert "spec.runtimeRef.name: Invalid value: " in said
    assert "there is no ClusterTrainingRuntime of this name; create it first" in said
    near = changed(lost, [(("spec", "runtimeRef", "kind"), "TrainingRuntime")])
    assert f"in the namespace {plain_namespace.namespace}" in tried(plain_namespace, near)


def test_pods_that_the_namespace_forbids_are_told_before_anything_is_made(
    namespace: Kubectl, runtimes: Any
) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    namespace("label", "--overwrite", "namespace", namespace.namespace, label)
    eventually("account", lambda: not namespace.attempt("get", "sa", "default").returncode)
    said = tried(namespace, numbered(0, Taken("mpi")))
    assert "in the pods of `node`, securityContext: the namespace allows restricted pods" in said


def test_more_nodes_than_the_quota_are_refused_with_the_numbers(plain_namespace: Kubectl) -> None:
    """CTL-4 area 8."""
    quota(plain_namespace, {"requests.nvidia.com/gpu": "8"})
    gpus = {"limits": {"nvidia.com/gpu": 2}}
    big = changed(
        numbered(0, Taken("mpi")),
        [(("spec", "trainer", "numNodes"), 8), (("spec", "trainer", "resourcesPerNode"), gpus)],
    )
    said = tried(plain_namespace, big)
    assert "spec.trainer.numNodes: Forbidden: quota exceeded: asks for 16 " in said
    assert "quota `team` allows 8, 0 in use by 0 jobs, 8 left; use at most" in said
    assert "created" in tried(plain_namespace, changed(big, [(("spec", "suspend"), True)]))


def test_job_lives_as_kueue_needs_it(plain_namespace: Kubectl) -> None:
    """CTL-13: held with an empty patch, written back without zeros, started and stopped."""
    held = numbered(
        0,
        Taken(
            "mpi",
            (
                (("spec", "suspend"), True),
                (PATCHES, [KUEUE]),
                (("spec", "trainer", "env"), [{"name": "A", "value": ""}]),
            ),
        ),
    )
    plain_namespace.apply(held)
    first = plain_namespace.get("trainjob", "case-0")
    assert first["spec"]["runtimePatches"][0]["time"]
    bound = patch("node", "kueue.x-k8s.io/manager", nodeSelector={"pool": "a"})
    started = copy.deepcopy(first)
    started["spec"] |= {"suspend": False, "runtimePatches": [bound]}
    started["spec"]["trainer"]["env"] = [{"name": "A"}]
    plain_namespace("replace", "-f", "-", data=json.dumps(started))
    now = plain_namespace.get("trainjob", "case-0")
    moved = changed(copy.deepcopy(now), [((*PATCHES, 0), patch("node", nodeSelector={"b": "c"}))])
    answer = plain_namespace.attempt("replace", "-f", "-", data=json.dumps(moved))
    assert "suspend the job in the same change" in answer.stderr
    stopped = changed(copy.deepcopy(now), [(("spec", "suspend"), True), (PATCHES, [KUEUE])])
    plain_namespace("replace", "-f", "-", data=json.dumps(stopped))
    grown = json.dumps({"spec": {"trainer": {"numNodes": 9}}})
    answer = plain_namespace.attempt("patch", "trainjob", "case-0", "--type=merge", "-p", grown)
    assert "spec.trainer: Forbidden: a job keeps it for good; make a new job" in answer.stderr


def test_job_outlives_its_runtime(plain_namespace: Kubectl) -> None:
    """Upstream then refuses every change, even one that only suspends."""
    near = changed(runtime(), [(("kind",), "TrainingRuntime"), (("metadata", "name"), "near")])
    plain_namespace.apply(near)
    job = numbered(1, Taken("near", ((("spec", "runtimeRef", "kind"), "TrainingRuntime"),)))
    plain_namespace.apply(job)
    plain_namespace("delete", "trainingruntime", "near")
    for change in ({"spec": {"suspend": True}}, {"metadata": {"labels": {"a": "b"}}}):
        plain_namespace("patch", "trainjob", "case-1", "--type=merge", "-p", json.dumps(change))


def test_editing_a_runtime_in_use_warns_and_is_done(plain_namespace: Kubectl) -> None:
    """CTL-13"""

    def edited(image: str) -> str:
        made = stored("in-use", plain())
        pod = made["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        pod["spec"]["containers"][0]["image"] = image
        answer = plain_namespace.attempt("apply", "-f", "-", data=json.dumps(made))
        assert not answer.returncode, answer.stderr
        return answer.stdout + answer.stderr

    try:
        assert "Warning" not in edited("a"), "it is new"
        assert "Warning" not in edited("b"), "nobody uses it"
        job = changed(train_job(), [(("spec", "runtimeRef", "name"), "in-use")])
        del job["metadata"]["namespace"]
        plain_namespace("create", "-f", "-", data=json.dumps(job))
        said = edited("c")
        assert "this runtime is in use: by 1 TrainJob in 1 namespace" in said
        assert "they keep the version that they began with" in said
        assert "Warning" not in edited("c"), "nothing has changed"
        ended = {"conditions": [COMPLETE]}
        plain_namespace(
            "patch", "trainjob", job["metadata"]["name"], "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": ended}),
        )  # fmt: skip
        assert "Warning" not in edited("d"), "its only user has ended"
    finally:
        plain_namespace.attempt("delete", "clustertrainingruntime", "in-use", "--wait=false")


def test_user_without_the_right_gets_no_other_account(plain_namespace: Kubectl) -> None:
    """A job's pods are made by a controller that may do more than its user."""
    plain_namespace("create", "serviceaccount", "admin")
    plain_namespace("create", "serviceaccount", "eve")
    role = ["--verb=create,get", "--resource=trainjobs.trainer.kubeflow.org"]
    plain_namespace("create", "role", "jobs", *role)
    account = f"--serviceaccount={plain_namespace.namespace}:eve"
    plain_namespace("create", "rolebinding", "jobs", "--role=jobs", account)
    eve = f"--as=system:serviceaccount:{plain_namespace.namespace}:eve"
    job = numbered(2, Taken("mpi", ((PATCHES, [patch("node", serviceAccountName="admin")]),)))
    answer = plain_namespace.attempt(
        "create", eve, "--validate=false", "-f", "-", data=json.dumps(job)
    )
    assert "the pods would act as this service account" in answer.stderr
    assert "created" in tried(plain_namespace, job)


def test_service_account_that_comes_later_is_warned_about(plain_namespace: Kubectl) -> None:
    """U-4: Kubeflow's trainer takes such a job."""
    job = numbered(3, Taken("mpi", ((PATCHES, [patch("node", serviceAccountName="late")]),)))
    said = tried(plain_namespace, job)
    assert "created" in said
    assert "in the pods of `node`, serviceAccountName: there is no such service account" in said


def test_table_says_where_it_goes_beyond_upstream() -> None:
    assert len(REFUSED) + len(TAKEN) >= 60
    assert 10 <= sum(one.by == EXTRA for one in REFUSED) <= 40
