"""A real API server takes every object that we render, also under its strictest rules.

Nothing is imitated: strict field validation, Pod Security, service accounts, quota and limits are
the server's own. Pods need no node for that.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob.children import Facts, children, secret
from tests.cluster import Kubectl, eventually
from tests.golden.render.objects import CASES, read
from tests.unit.render import jobs

Object = dict[str, Any]


@pytest.fixture(scope="module")
def open_namespace(api_server: Any) -> Iterator[Kubectl]:
    """A namespace without rules, with the account that a case asks for."""
    kubectl = Kubectl(api_server)
    name = f"render-{secrets.token_hex(4)}"
    kubectl("create", "namespace", name)
    inside = Kubectl(api_server, name)
    inside("create", "serviceaccount", "reporter")
    ready(inside)
    yield inside
    kubectl("delete", "namespace", name, "--wait=false")


def ready(kubectl: Kubectl) -> None:
    """Pods can be made once the namespace has its account."""
    eventually("default account", lambda: not kubectl.attempt("get", "sa", "default").returncode)


def create(kubectl: Kubectl, objects: Iterable[Object], *options: str) -> list[Object]:
    """The objects as the server has them; a field that it does not know is an error."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    words = ("create", "--validate=strict", "-f", "-", "-o", "json", *options)
    text = kubectl(*words, data=json.dumps(listed)).strip()
    made = []
    while text:
        one, end = json.JSONDecoder().raw_decode(text)
        made.append(one)
        text = text[end:].lstrip()
    return made


def moved(job: MPIJob, namespace: str) -> MPIJob:
    return replace(job, metadata=replace(job.metadata, namespace=namespace))


def without_owner(rendered: Object) -> Object:
    metadata = {k: v for k, v in rendered["metadata"].items() if k != "ownerReferences"}
    return {**rendered, "metadata": metadata}


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_the_server_takes_every_object(open_namespace: Kubectl, case: Path) -> None:
    """CTL-1."""
    job, domain = read(case)
    job = moved(job, open_namespace.namespace)
    plan = layout(job, domain)
    keys = secret(plan, job, {"private": "x", "public": "y"})
    objects = [*children(plan, job, Facts(domain=domain)), keys]
    assert len(create(open_namespace, objects, "--dry-run=server")) == len(objects)


def test_restricted_pod_security_takes_all_that_a_pod_can_be_given(namespace: Kubectl) -> None:
    """AC-20: preparation, overlays and scratch included, by hand and as today's agent asks."""
    ready(namespace)
    main = {"securityContext": jobs.RESTRICTED}
    for agent in ("off", "full"):
        job = jobs.job(main, main, agent=agent, sshAuthMountPath="/home/u/.ssh")
        job = moved(job, namespace.namespace)
        plan = layout(job) if agent == "full" else jobs.with_agent(layout(job))
        made = create(namespace, children(plan, job, Facts()), "--dry-run=server")
        (pod,) = (one for one in made if one["kind"] == "Pod")
        assert [c["name"] for c in pod["spec"]["initContainers"]] == ["mpi-prepare"]


def test_restricted_pod_security_is_what_refuses_a_template_that_asks_for_root(
    namespace: Kubectl,
) -> None:
    """The test before it can fail: the server does look at the init container."""
    ready(namespace)
    job = moved(jobs.job(worker={"securityContext": jobs.RESTRICTED}), namespace.namespace)
    pod = children(jobs.with_agent(layout(job)), job, Facts()).workers[0]
    del pod["spec"]["initContainers"][0]["securityContext"]
    answer = namespace.attempt("create", "--dry-run=server", "-f", "-", data=json.dumps(pod))
    assert 'container "mpi-prepare" must set' in answer.stderr


def test_quota_and_limits_take_the_preparation_too(namespace: Kubectl) -> None:
    """A quota of processors and memory makes every container say what it takes."""
    ready(namespace)
    namespace.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "all"},
            "spec": {
                "hard": {
                    "requests.cpu": "2",
                    "requests.memory": "2Gi",
                    "limits.cpu": "2",
                    "limits.memory": "2Gi",
                }
            },
        },
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "each"},
            "spec": {"limits": [{"type": "Container", "min": {"cpu": "1", "memory": "1Gi"}}]},
        },
    )
    amounts = {"cpu": "1", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": {**amounts, "nvidia.com/gpu": 1}}
    main = {"securityContext": jobs.RESTRICTED, "resources": resources}
    job = moved(jobs.job(main, main), namespace.namespace)
    workers = children(jobs.with_agent(layout(job)), job, Facts()).workers
    eventually(
        "quota counted",
        lambda: "status" in (quota := namespace.get("quota", "all")) and "hard" in quota["status"],
    )
    # Its job is not on the server: the garbage collector would take the pod, and its count, away.
    (pod,) = create(namespace, (without_owner(worker) for worker in workers))
    assert pod["status"]["qosClass"] == "Guaranteed"

    def counted() -> bool:
        used = namespace.get("quota", "all")["status"]["used"]
        return (used["requests.cpu"], used["limits.memory"]) == ("1", "1Gi")

    eventually("the quota counts the pod without its preparation", counted)
