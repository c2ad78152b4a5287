"""The PodGroup of a job: who is counted, what they need, what their pods carry (CTL-5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
import yaml

from mpi_trainer.api.defaults import AT_STARTUP, WAIT_FOR_WORKERS_READY
from mpi_trainer.api.effective.combine import effective
from mpi_trainer.api.kinds.mpijob import SchedulingPolicy
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.gang.model import GangSettings
from mpi_trainer.render.gang.pod_groups import SCHEDULERS, of_mpijob, of_trainjob
from mpi_trainer.render.trainjob.children import rendered as trainjob_rendered
from tests.unit.api.trainers import JOBS, runtime, torch, train_job
from tests.unit.render.jobs import job, rendered

DEFINITIONS = Path(__file__).parents[2] / "podgroups"
SERVED = frozenset(one.group for one in SCHEDULERS)
CPU = {"resources": {"requests": {"cpu": 1}}}
GPU = {"resources": {"limits": {"nvidia.com/gpu": 2, "cpu": 4}}}
Object = dict[str, Any]
replace = msgspec.structs.replace


def facts(scheduler: str = "gangs", timeout: int = 300) -> Facts:
    return Facts(gang=GangSettings(scheduler, SERVED, timeout))


def many(workers: int = 4, policy: Object | None = None, **spec: Any) -> Any:
    made = job(CPU, GPU, **spec)
    roles = dict(made.spec.mpi_replica_specs or {})
    roles["Worker"] = replace(roles["Worker"], replicas=workers)
    asked = msgspec.convert(policy or {}, SchedulingPolicy)
    run_policy = replace(made.spec.run_policy, scheduling_policy=asked)
    changed = replace(made.spec, mpi_replica_specs=roles, run_policy=run_policy)
    return replace(made, spec=changed)


def spec(one: Any, given: Facts | None = None) -> Object:
    planned = of_mpijob(one, given or facts())
    assert planned is not None
    check(planned.pod_group)
    made: Object = planned.pod_group["spec"]
    return made


def check(pod_group: Object) -> None:
    """Against the definition that its project publishes; unknown fields are errors."""
    group = pod_group["apiVersion"].partition("/")[0]
    definition = yaml.safe_load((DEFINITIONS / f"{group}_podgroups.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    assert pod_group["apiVersion"] == f"{group}/{version['name']}"
    asked = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    jsonschema.validate(pod_group["spec"], {**asked, "additionalProperties": False})


def test_a_pods_overhead_counts_among_its_resources() -> None:
    file = Path(__file__).parents[2] / "golden/render/gang-coscheduling/in.yaml"
    given = yaml.safe_load(file.read_text())
    asked = []
    for overhead in ({}, {"overhead": {"cpu": "250m"}}):
        given["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"] |= overhead
        [read] = load.jobs(yaml.safe_dump(given), "in.yaml").jobs
        asked.append(spec(read)["minResources"]["cpu"])
    assert asked == ["5", "5500m"]


def test_the_launcher_is_counted_with_its_workers() -> None:
    """CTL-5, AC-2: both are made at once, whoever is there first."""
    for one in (many(4), many(4, launcherCreationPolicy=AT_STARTUP)):
        made = spec(one)
        assert made["minMember"] == 5
        assert made["minResources"] == {"cpu": "17", "nvidia.com/gpu": "8"}


def test_a_launcher_that_comes_after_its_workers_is_not_waited_for() -> None:
    """AC-2: workers that waited for its pod would never run, and it comes only when they do."""
    made = spec(many(4, launcherCreationPolicy=WAIT_FOR_WORKERS_READY))
    assert made["minMember"] == 4
    assert made["minResources"] == {"cpu": "16", "nvidia.com/gpu": "8"}
    asked = spec(many(4, {"minAvailable": 5}, launcherCreationPolicy=WAIT_FOR_WORKERS_READY))
    assert asked["minMember"] == 4, "whatever the job asks for"


def test_a_job_that_can_do_with_fewer_says_so() -> None:
    """CTL-5: resources are those of the launcher and of as many workers as are counted."""
    made = spec(many(4, {"minAvailable": 3}))
    assert made["minMember"] == 3
    assert made["minResources"] == {"cpu": "9", "nvidia.com/gpu": "4"}
    own = spec(many(4, {"minResources": {"cpu": "2"}}))
    assert own["minResources"] == {"cpu": "2"}
    assert spec(many(4, {"minAvailable": 0}))["minMember"] == 1, "as few as the definition lets"


@pytest.mark.parametrize("policy", [AT_STARTUP, WAIT_FOR_WORKERS_READY])
def test_a_launcher_without_workers_is_a_gang_of_one(policy: str) -> None:
    alone = many(0, runLauncherAsWorker=True, launcherCreationPolicy=policy)
    assert spec(alone)["minMember"] == 1


@pytest.mark.parametrize(
    ("name", "written", "canonical"),
    [
        ("cpu", "0.5", "500m"),
        ("cpu", 2, "2"),
        ("cpu", "1000m", "1"),
        ("memory", "1024Mi", "1Gi"),
        ("memory", "1073741824", "1Gi"),
        ("nvidia.com/gpu", "1e60", "9223372036854775807"),
    ],
)
def test_amounts_are_written_as_every_program_writes_them(
    name: str, written: str | int, canonical: str
) -> None:
    """Volcano writes groups back as a whole, with amounts in its own words: each time they would
    be put right, and its next write meet a conflict."""
    given = spec(many(4, {"minResources": {name: written}}))
    assert given["minResources"] == {name: canonical}


def test_the_group_follows_the_number_of_workers() -> None:
    """CTL-5."""
    assert [spec(many(n))["minMember"] for n in (1, 2, 8)] == [2, 3, 9]


def test_only_a_timeout_that_the_job_asks_for_is_the_scheduler_s() -> None:
    """AC-16: with 0 coscheduling gives up at once; with our long default two halves of two gangs
    would hold each other up for minutes."""
    assert spec(many(2, {"scheduleTimeoutSeconds": 45}))["scheduleTimeoutSeconds"] == 45
    for seconds in (0, 300):
        assert "scheduleTimeoutSeconds" not in spec(many(2, {"scheduleTimeoutSeconds": seconds}))


def test_volcano_gets_queue_and_priority_and_coscheduling_does_not() -> None:
    """CTL-5, CTL-10."""
    one = many(2, {"queue": "research", "priorityClass": "high"})
    made = spec(one, facts("volcano"))
    assert (made["queue"], made["priorityClassName"]) == ("research", "high")
    assert not {"queue", "priorityClassName"} & spec(one).keys()
    assert "queue" not in spec(many(2), facts("volcano")), "which the namespace may then choose"


def test_pods_carry_what_their_scheduler_looks_for() -> None:
    """CTL-5."""
    made = rendered(many(2), facts())
    for pod in (*made.workers, made.launcher_job["spec"]["template"]):
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "j"
        assert pod["spec"]["schedulerName"] == "gangs"
    made = rendered(many(2), facts("volcano"))
    for pod in (*made.workers, made.launcher_job["spec"]["template"]):
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "j"
        assert pod["spec"]["schedulerName"] == "volcano"


def test_without_the_flag_or_the_definition_pods_are_as_ever() -> None:
    """CTL-5: pods of a scheduler that is not there would wait for ever."""
    for given in (Facts(), Facts(gang=GangSettings("", SERVED)), Facts(gang=GangSettings("gangs"))):
        made = rendered(many(2), given)
        assert made.pod_group is None
        assert made == rendered(many(2))


# --- of a TrainJob -------------------------------------------------------------------------------


def planned(given: Object, policy: Object) -> Any:
    given["spec"]["podGroupPolicy"] = policy
    three = train_job((("spec", "trainer"), {"numNodes": 3}))
    made, one = load.runtime(given).value, load.train_job(three).value
    assert isinstance(made, Runtime)
    assert isinstance(one, TrainJob)
    found = of_trainjob(one, effective(one, made), made, facts(""))
    assert found is not None
    check(found.pod_group)
    return found


def test_a_launcher_that_waits_for_ready_nodes_is_not_waited_for_by_them() -> None:
    """CTL-5: upstream counts it, and nothing ever runs."""
    given = runtime()
    made = planned(given, {"coscheduling": {"scheduleTimeoutSeconds": 90}})
    assert made.pod_group["spec"] == {"minMember": 2, "scheduleTimeoutSeconds": 90}
    free = runtime(((*JOBS, 1, "dependsOn"), []))
    assert planned(free, {"coscheduling": {}}).pod_group["spec"]["minMember"] == 3


def test_jobs_that_start_in_order_wait_for_the_first_alone() -> None:
    """CTL-5."""
    order = ("spec", "template", "spec", "startupPolicy")
    given = runtime((order, {"startupPolicyOrder": "InOrder"}), ((*JOBS, 1, "dependsOn"), []))
    assert planned(given, {"coscheduling": {}}).pod_group["spec"]["minMember"] == 2


def test_the_nodes_of_a_framework_are_a_gang() -> None:
    """CTL-5."""
    given = torch()
    topology = {"networkTopology": {"highestTierAllowed": 1}}
    made = planned(given, {"volcano": topology})
    assert made.pod_group["spec"]["minMember"] == 3
    assert made.pod_group["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 1}
    assert planned(given, {"volcano": {"networkTopology": {}}}) is not None


def test_a_gang_s_marks_are_on_the_pods_of_the_jobset() -> None:
    """CTL-5: and the template's scheduler stays where no flag names one."""
    given = torch()
    given["spec"]["podGroupPolicy"] = {"coscheduling": {}}
    made, one = load.runtime(given).value, load.train_job(train_job()).value
    assert isinstance(made, Runtime)
    assert isinstance(one, TrainJob)
    children = trainjob_rendered(one, made, facts("")).children
    (node,) = children.job_set["spec"]["replicatedJobs"]
    pod = node["template"]["spec"]["template"]
    assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == one.name
    assert "schedulerName" not in pod["spec"]
    named = trainjob_rendered(one, made, facts("gangs")).children
    (node,) = named.job_set["spec"]["replicatedJobs"]
    assert node["template"]["spec"]["template"]["spec"]["schedulerName"] == "gangs"
