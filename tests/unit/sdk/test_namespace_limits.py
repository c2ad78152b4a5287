"""A job from a few words fits the namespace that it is sent to (W-5)."""

from __future__ import annotations

from typing import Any

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.sdk.backends.cluster.namespace_limits import RESTRICTED, Demands, adjusted, demands
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.sdk.job.specs import ResourceRequirements

ALL = {"limits.cpu": "40", "limits.memory": "80Gi", "requests.cpu": "40", "requests.memory": "80Gi"}


def quota(hard: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"items": [{"metadata": {"name": "team"}, "spec": {"hard": hard, **spec}}]}


def limit_range(**item: Any) -> dict[str, Any]:
    return {"items": [{"spec": {"limits": [{"type": "Container", **item}]}}]}


def asked(hard: dict[str, str], limits: dict[str, Any] | None = None, **spec: Any) -> Demands:
    return demands({}, quota(hard, **spec), limits or {})


def job(**fields: Any) -> MPIJob:
    return NewJob(name="j", command=("x",), image="i", **fields).mpijob()


def resources(made: MPIJob, role: str = "Worker") -> Any:
    (container,) = (made.spec.mpi_replica_specs or {})[role].template.content["spec"]["containers"]
    return container.get("resources")


def both(cpu: str, memory: str) -> dict[str, Any]:
    return {kind: {"cpu": cpu, "memory": memory} for kind in ("requests", "limits")}


def test_nothing_is_added_where_nothing_is_demanded() -> None:
    for free in (demands({}, {}, {}), asked({"pods": "4", "requests.nvidia.com/gpu": "2"})):
        found = adjusted(job(), free)
        assert found.job == job()
        assert found.notes == ()


def test_what_a_quota_counts_is_said() -> None:
    found = adjusted(job(slots=2), asked(ALL))
    assert resources(found.job) == both("2", "2Gi")
    assert resources(found.job, "Launcher") == both("500m", "512Mi")
    (note,) = found.notes
    assert note == (
        "quota `team` asks every container for resources, so the job gets: the launcher cpu 500m, "
        "memory 512Mi; each worker cpu 2, memory 2Gi"
    )


def test_no_more_than_that_is_said() -> None:
    """A limit that nobody asked for would only slow the ranks down."""
    found = adjusted(job(), asked({"requests.cpu": "40", "memory": "80Gi"}))
    assert resources(found.job) == {"requests": {"cpu": "1", "memory": "1Gi"}}


def test_what_the_job_says_stays() -> None:
    one, four = ResourceRequirements(cpu=1), ResourceRequirements(cpu=4)
    made = job(resources=four, launcher_resources=one)
    found = adjusted(made, asked(ALL))
    assert resources(found.job) == {
        "requests": {"cpu": 4, "memory": "1Gi"},
        "limits": {"cpu": 4, "memory": "1Gi"},
    }
    assert resources(found.job, "Launcher")["limits"] == {"cpu": 1, "memory": "512Mi"}


def test_small_quota_is_shared() -> None:
    """Workers 1, 1 and the launcher 0.5 would be 2.5 of 2."""
    found = adjusted(job(), asked({"limits.cpu": "2"}))
    assert resources(found.job) == {"limits": {"cpu": "800m"}}
    assert resources(found.job, "Launcher") == {"limits": {"cpu": "400m"}}
    made = job(resources=ResourceRequirements(cpu="900m"))
    assert resources(adjusted(made, asked({"limits.cpu": "2"})).job, "Launcher") == {
        "limits": {"cpu": "200m"}
    }


def test_quota_that_is_far_too_small_is_left_to_say_so() -> None:
    assert resources(adjusted(job(workers=20), asked({"limits.cpu": "1"})).job) == {
        "limits": {"cpu": "1"}
    }


def test_limit_range_gives_what_it_gives_and_bounds_the_rest() -> None:
    gives = limit_range(default={"cpu": "2"}, defaultRequest={"cpu": "1"})
    assert resources(adjusted(job(), asked(ALL, gives)).job) == {
        "requests": {"memory": "1Gi"},
        "limits": {"memory": "1Gi"},
    }
    narrow = limit_range(min={"memory": "2Gi"}, max={"cpu": "300m"})
    assert resources(adjusted(job(), asked(ALL, narrow)).job) == both("300m", "2Gi")
    assert resources(adjusted(job(), asked(ALL, limit_range(max={"cpu": "?"}))).job)


def test_quotas_for_other_pods_demand_nothing() -> None:
    for spec in ({"scopes": ["BestEffort"]}, {"scopeSelector": {"x": 1}}):
        assert adjusted(job(), asked(ALL, **spec)).job == job()
    assert adjusted(job(), asked(ALL, scopes=["NotTerminating"])).notes


def test_containers_are_restricted_where_the_namespace_is() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    made = adjusted(job(), demands({"metadata": {"labels": labels}}, {}, {})).job
    for replica in (made.launcher, made.worker):
        (container,) = replica.template.content["spec"]["containers"]
        assert container["securityContext"] == RESTRICTED
    assert adjusted(made, demands({"metadata": {"labels": labels}}, {}, {})).job == made
