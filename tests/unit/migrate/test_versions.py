"""API-4: one stored MPIJob in every version, and back, whatever stands in it."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpi_trainer.api.kinds import mpijob
from mpi_trainer.api.kinds.annotations import AS_WRITTEN, CONVERSION
from mpi_trainer.migrate.versions import edits
from mpi_trainer.migrate.versions.convert import HUB, KNOWN, converted
from mpi_trainer.migrate.versions.edits import LARGEST
from tests.unit.migrate.cases import base, mpijobs
from tests.unit.migrate.test_hostile import VALUES, changed, places
from tests.unit.migrate.test_legacy import ALPHA, V1

OLD = "kubeflow.org/v1"
ALPHA1 = "kubeflow.org/v1alpha1"
ODD: Any = st.sampled_from([None, "", 0, "Running", {}, []])


def old(**spec: Any) -> dict[str, Any]:
    """The v1 job of the other tests, with these fields of its spec."""
    job: dict[str, Any] = copy.deepcopy(V1)
    job["spec"] |= spec
    return job


def note(job: dict[str, Any]) -> str:
    return str(job["metadata"].get("annotations", {}).get(CONVERSION, ""))


@st.composite
def v1_jobs(draw: st.DrawFn) -> dict[str, Any]:
    """What v1 had in all its combinations, empty and null ones too."""
    job = old()
    spec = job["spec"]
    for name in ("cleanPodPolicy", "backoffLimit", "activeDeadlineSeconds", "mainContainer",
                 "mpiDistribution", "slotsPerWorker"):  # fmt: skip
        spec.pop(name, None)
        if draw(st.booleans()):
            words = st.sampled_from(["mpi", "sidecar", "absent", "Intel", "IntelMPI", "OpenMPI", 3])
            spec[name] = draw(words | ODD)
    if draw(st.booleans()):
        names = st.sampled_from(["cleanPodPolicy", "backoffLimit", "suspend"])
        spec["runPolicy"] = draw(st.none() | st.dictionaries(names, ODD, max_size=3))
    for role in list(spec["mpiReplicaSpecs"]):
        kept = draw(st.integers(0, 9))
        if kept == 0:
            del spec["mpiReplicaSpecs"][role]
            continue
        one = spec["mpiReplicaSpecs"][role]
        one["restartPolicy"] = draw(st.sampled_from(["Always", "ExitCode", "Never", "OnFailure"]))
        containers = one["template"]["spec"]["containers"]
        if draw(st.booleans()):
            containers.reverse()
        containers[0]["command"] = draw(
            st.sampled_from([["sleep", "1d"], ["sh", "-c", "sleep 9"], ["tail", "-f"], ["x"], []])
        )
        agent = {"name": "OMPI_MCA_plm_rsh_agent", "value": "/etc/mpi/kubexec.sh"}
        if draw(st.booleans()):
            containers[0].setdefault("env", []).insert(0, agent)
    return job


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(job=v1_jobs())
def test_v1_comes_back_from_v2beta1_as_it_was(job: dict[str, Any]) -> None:
    """Issue 31, Shows 2: nothing is lost, and what was given is not changed in place."""
    before = copy.deepcopy(job)
    there = converted(job, HUB)
    assert job == before
    assert there["apiVersion"] == HUB
    assert converted(there, OLD) == before
    assert there["metadata"].keys() == before["metadata"].keys()
    for gone in ("mainContainer", "mpiDistribution", "cleanPodPolicy", "backoffLimit"):
        assert gone not in there["spec"]


@pytest.mark.parametrize("by_way_of", [one for one in KNOWN if one != HUB])
def test_v2beta1_comes_back_from_every_older_version_as_it_was(by_way_of: str) -> None:
    for name, job in mpijobs().items():
        assert converted(converted(job, by_way_of), HUB) == job, name


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(job=v1_jobs(), by_way_of=st.sampled_from([one for one in KNOWN if one != HUB]))
def test_any_job_of_v2beta1_comes_back(job: dict[str, Any], by_way_of: str) -> None:
    """Also one that carries what a v1 job left there."""
    there = converted(job, HUB)
    again = converted(converted(there, by_way_of), HUB)
    assert again["spec"] == there["spec"]
    plain = {**there, "metadata": {"name": "x"}}
    assert converted(converted(plain, by_way_of), HUB) == plain


def test_a_worker_that_sleeps_on_purpose_is_marked_on_its_way_through_v1() -> None:
    job = base()
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"] = [
        "sleep", "1d"
    ]  # fmt: skip
    through = converted(job, OLD)
    assert note(through) == AS_WRITTEN
    assert through["spec"] == job["spec"]
    assert converted(through, HUB) == job


def test_v1alpha1_comes_back_with_the_workers_that_it_asked_for() -> None:
    there = converted(ALPHA, HUB)
    assert there["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    assert converted(there, ALPHA1) == ALPHA


def test_what_the_api_server_fills_in_does_not_keep_an_old_job_from_coming_back() -> None:
    """As its definition's defaults do, in a job that was read and stored again."""
    for job, version in ((V1, OLD), (ALPHA, ALPHA1)):
        there = converted(job, HUB)
        there["spec"] |= {"runLauncherAsWorker": False, "sshAuthMountPath": "/root/.ssh"}
        back = converted(there, version)
        assert job["spec"].items() <= back["spec"].items()
        assert converted(back, HUB)["spec"].items() <= there["spec"].items()


@pytest.mark.parametrize(
    ("word", "kind"), [("Succeeded", "Succeeded"), ("Failed", "Failed"), ("Active", "Running")]
)
def test_a_job_of_v1alpha1_that_has_ended_has_ended_in_v2beta1(word: str, kind: str) -> None:
    """Without a condition a controller would run it again."""
    job = copy.deepcopy(ALPHA)
    job["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    job["status"] = {"launcherStatus": word, "workerReplicas": 2}
    there = converted(job, HUB)
    assert there["status"]["conditions"][-1]["type"] == kind
    assert bool(there["status"].get("completionTime")) is (kind != "Running")
    assert converted(there, ALPHA1)["status"]["launcherStatus"] == word


def test_the_status_of_v1_is_that_of_v2beta1() -> None:
    job = old() | {"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}}
    assert converted(job, HUB)["status"] == job["status"]
    assert converted(converted(job, HUB), OLD) == job


def test_a_change_in_v2beta1_counts_and_what_is_still_true_of_v1_stays() -> None:
    there = converted(old(), HUB)
    there["spec"]["slotsPerWorker"] = 8
    there["spec"]["runPolicy"]["cleanPodPolicy"] = "All"
    back = converted(there, OLD)
    assert back["spec"]["slotsPerWorker"] == 8
    assert back["spec"]["mainContainer"] == "mpi"
    assert back["spec"]["mpiReplicaSpecs"]["Worker"]["restartPolicy"] == "ExitCode"
    assert converted(back, HUB)["spec"] == there["spec"]
    assert back["spec"].get("cleanPodPolicy") in (None, "All")


POD = ["mpiReplicaSpecs", "Launcher", "template", "spec"]
LIES = [
    [[{"op": "set", "path": [*POD, "hostNetwork"], "value": True}]],
    [[{"op": "set", "path": [*POD, "containers"], "value": [{"name": "evil"}]}]],
    [[{"op": "unset", "path": ["mpiReplicaSpecs"]}]],
    [[{"op": "set", "path": ["slotsPerWorker"], "value": 99}]],
    [[{"op": "set", "path": ["cleanPodPolicy"], "value": "All"}, {"op": "unset",
      "path": ["runPolicy"]}]],
    [[{"op": "insert", "path": [*POD, "containers", 0], "value": {"name": "evil"}}]],
    [[{"op": "move", "path": [*POD, "containers"], "to": 1}]],
    [[{"op": "set", "path": ["x"] * 9, "value": 1}]],
    [[{"op": "insert", "path": [*POD, "containers", -1], "value": 1}]],
]  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_an_annotation_changes_nothing_that_v2beta1_shows(lie: Any) -> None:
    """A user wrote it: what a reader of v1 sees converts to what a reader of v2beta1 sees."""
    there = converted(old(), HUB)
    for version in ("kubeflow.org/v1", ALPHA1):
        told = {"from": version, "undo": lie, "spec": {"gpus": 64, "template": {}}}
        there["metadata"]["annotations"][CONVERSION] = json.dumps(told)
        for to in (OLD, ALPHA1):
            back = converted(there, to)
            assert converted(back, HUB)["spec"] == there["spec"]
            assert "evil" not in json.dumps(back)


@pytest.mark.parametrize(
    "text",
    ["", "x", "{", "[]", "null", '{"from": 3}', '{"from": "a", "more": 1}', "[" * 9000,
     '{"from":"kubeflow.org/v1","undo":[[{"op":"move","path":[],"to":-1}]]}',
     '{"from":"kubeflow.org/v1","undo":' + "[" * 200 + "]" * 200 + "}",
     '{"from":"kubeflow.org/v1","undo":[[' + ",".join(['{"op":"unset","path":["x"]}'] * 200)
     + "]]}", '{"from":"kubeflow.org/v1","spec":{"a":"' + "x" * 2 * LARGEST + '"}}', "\ud800"],
)  # fmt: skip
def test_an_annotation_that_is_none_of_ours_is_as_good_as_none(text: str) -> None:
    there = converted(old(), HUB)
    there["metadata"]["annotations"][CONVERSION] = text
    back = converted(there, OLD)
    assert converted(back, HUB)["spec"] == there["spec"]
    assert note(back) == ""


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_stored_has_an_answer_in_every_version(data: st.DataObject) -> None:
    """An API server that gets none fails the list of every user's jobs."""
    source = data.draw(st.sampled_from([V1, ALPHA, base()]))
    path = data.draw(st.sampled_from([one for one in places(source) if one[0] == "spec"]))
    job = changed(source, path, data.draw(VALUES))
    for to in KNOWN:
        there = converted(job, to)
        assert there["apiVersion"] == to
        for back in KNOWN:
            assert converted(there, back)["metadata"]["name"] == source["metadata"]["name"]


def test_what_is_kept_is_bounded_and_the_annotations_stay_within_those_of_kubernetes() -> None:
    long = converted(old(mainContainer="x" * 100_000), HUB)
    assert len(note(long)) <= LARGEST
    assert "mainContainer" not in note(long) and "ExitCode" in note(long)
    full = old()
    full["metadata"]["annotations"]["mine"] = "x" * (256 * 1024 - 300)
    assert note(converted(full, HUB)) == ""


def test_time_grows_with_the_size_of_the_job_and_no_faster() -> None:
    def spent(count: int) -> float:
        job = old()
        launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
        launcher["containers"] += [
            {"name": f"c{n}", "env": [{"name": f"v{m}", "value": "x"} for m in range(20)]}
            for n in range(count)
        ]
        begin = time.process_time()
        converted(converted(job, HUB), OLD)
        return time.process_time() - begin

    spent(10)
    few = min(spent(100) for _ in range(3))
    assert spent(800) < few * 8 * 5


def test_an_edit_that_does_not_fit_leaves_the_spec_alone() -> None:
    spec = {"a": {"b": [1, 2]}}
    for wrong in (
        edits.Edit("set", ("a", "b", 0), 1),
        edits.Edit("unset", ("no", "b")),
        edits.Edit("insert", ("a", "b", 9), 1),
        edits.Edit("move", ("a", "b"), to=2),
        edits.Edit("move", ("a",), to=0),
    ):
        assert edits.applied(spec, (wrong,)) is None
    assert spec == {"a": {"b": [1, 2]}}
    assert mpijob.API_VERSION == HUB
