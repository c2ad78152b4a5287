"""Whatever a valid job looks like, its objects are well-formed, legally named and repeatable."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.api import names
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout.model import Layout
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob.children import Children, Facts, children
from tests.unit.render import jobs

label = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
paths = st.sampled_from(["/data", "/dev/shm", "/dev/shm/", "/etc/passwd", "/scratch", "/etc/mpi2"])
volume_names = st.sampled_from(["data", "dev-shm", "run-mpi-agent", "etc-mpi-agent", "scratch"])
quantity = st.sampled_from(["1", "2", "10"])
quick = settings(max_examples=20)


@st.composite
def containers(draw: st.DrawFn, volumes: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    mounted = draw(st.lists(paths, unique_by=lambda p: p.rstrip("/"), max_size=3))
    if volumes and mounted:
        chosen = st.sampled_from(volumes)
        made["volumeMounts"] = [{"name": draw(chosen), "mountPath": path} for path in mounted]
    variables = st.sampled_from(["A", "K_MPI_JOB_ROLE", "OMPI_MCA_plm_rsh_args"])
    made["env"] = [{"name": n, "value": draw(st.text())} for n in draw(st.lists(variables))]
    made["resources"] = {"limits": draw(st.dictionaries(st.sampled_from(["cpu", "x/y"]), quantity))}
    if draw(st.booleans()):
        made["args"] = draw(st.lists(st.text(max_size=5), max_size=3))
    return made


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    volumes = draw(st.lists(volume_names, unique=True, max_size=3))
    count = draw(st.integers(1, 3))
    listed = [{"name": f"c{n}", "image": "i", **draw(containers(volumes))} for n in range(count)]
    spec: dict[str, Any] = {"containers": listed}
    if volumes:
        spec["volumes"] = [{"name": v, "emptyDir": {}} for v in volumes]
    for field, values in {
        "hostNetwork": st.booleans(),
        "hostIPC": st.booleans(),
        "serviceAccountName": label,
        "dnsConfig": st.fixed_dictionaries({"searches": st.lists(label, max_size=3)}),
        "priority": st.integers(0, 9),
    }.items():
        if draw(st.booleans()):
            spec[field] = draw(values)
    labels = draw(st.dictionaries(label, label, max_size=2))
    return {"metadata": {"labels": labels}, "spec": spec}


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Layout, MPIJob]:
    """A job's own layout, or one with everything that a layout can ask for."""
    agent = draw(st.sampled_from(["off", "environment", "full"]))
    job = draw(valid_jobs(agent))
    plan = layout(job)
    by_hand = agent == "off" and draw(st.booleans())
    return (jobs.with_agent(plan) if by_hand else plan), job


@st.composite
def valid_jobs(draw: st.DrawFn, agent: str) -> MPIJob:
    replicas: dict[str, Any] = {"Launcher": {"template": draw(templates())}}
    if draw(st.booleans()):
        count = draw(st.integers(1, 12))
        replicas["Worker"] = {"replicas": count, "template": draw(templates())}
    return jobs.job(
        agent=agent,
        name=draw(st.from_regex(r"[a-z]([a-z0-9-]{0,50}[a-z0-9])?", fullmatch=True)),
        mpiReplicaSpecs=replicas,
        runLauncherAsWorker=draw(st.booleans()),
        mpiImplementation=draw(st.sampled_from(["OpenMPI", "Intel", "MPICH"])),
        sshAuthMountPath=draw(st.sampled_from(["/root/.ssh", "/home/u/.ssh", "/keys/"])),
    )


def made(plan: tuple[Layout, MPIJob]) -> Children:
    return children(*plan, Facts(attempt=2))


@quick
@given(plan=layouts())
def test_objects_are_well_formed_and_legally_named(plan: tuple[Layout, MPIJob]) -> None:
    """CTL-1."""
    for one in made(plan):
        assert json.loads(json.dumps(one)) == one
        assert names.dns1123_label(one["metadata"]["name"]) is None
        for key, value in one["metadata"].get("labels", {}).items():
            assert names.qualified(key) is None
            assert names.label_value(value) is None


@quick
@given(plan=layouts())
def test_rendering_again_gives_the_same(plan: tuple[Layout, MPIJob]) -> None:
    assert list(made(plan)) == list(made(plan))


@quick
@given(plan=layouts())
def test_every_mount_finds_its_volume_and_no_path_is_taken_twice(
    plan: tuple[Layout, MPIJob],
) -> None:
    result = made(plan)
    specs = [pod["spec"] for pod in result.workers]
    for spec in (*specs, result.launcher_job["spec"]["template"]["spec"]):
        volumes = [volume["name"] for volume in spec["volumes"]]
        assert len(set(volumes)) == len(volumes)
        assert all(names.dns1123_label(name) is None for name in volumes)
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            mounts = container.get("volumeMounts", [])
            used = [mount["mountPath"].rstrip("/") for mount in mounts]
            assert len(set(used)) == len(used)
            assert {mount["name"] for mount in mounts} <= set(volumes)


@quick
@given(plan=layouts())
def test_what_the_template_says_and_we_do_not_is_in_the_pod(plan: tuple[Layout, MPIJob]) -> None:
    """CTL-10."""
    layouts_of, job = plan
    for pod, given_layout in zip(made(plan).workers, layouts_of.workers, strict=True):
        ours = dict(given_layout.env)
        given_spec = job.worker.template.content["spec"]
        for field in given_spec.keys() - {"containers", "volumes", "dnsConfig"}:
            assert pod["spec"][field] == given_spec[field]
        for given_one, one in zip(given_spec["containers"], pod["spec"]["containers"], strict=True):
            assert one["resources"] == given_one["resources"]
            kept = [v for v in given_one["env"] if v["name"] not in ours]
            assert [v for v in one["env"] if v["name"] not in ours] == kept
