"""C-7: the agent's scripts are in one ConfigMap a namespace, while jobs need them and no longer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mpi_trainer.api.kinds.annotations import AGENT_SCRIPTS
from mpi_trainer.api.kinds.labels import LABEL_AGENT_SCRIPTS
from mpi_trainer.render import agent_scripts
from tests.api.admin import Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "kubelet", "served"]

MAPS = "api/v1/configmaps"
SHARED = f"{MAPS}/{agent_scripts.name()}"
KEEP = 3
"""seconds that the controller of these tests keeps what nobody uses"""


@pytest.fixture
def controller(admin: Admin) -> Iterator[Controller]:
    with _controller(admin) as one:
        yield one
        assert '"logger":"mpi_trainer.runtime.workers","msg":"failed' not in one.log(), one.log()


def _controller(admin: Admin) -> Controller:
    return Controller.alone(admin.spec.kubeconfig, admin.namespace, f"--agent-scripts-keep={KEEP}")


def _scripts(admin: Admin) -> list[Object]:
    return [one for one in admin.every(MAPS) if LABEL_AGENT_SCRIPTS in _labels(one)]


def _labels(one: Object) -> Object:
    labels: Object = one["metadata"].get("labels", {})
    return labels


def _succeed(admin: Admin, kubelet: Kubelet, name: str = "pi") -> None:
    def launchers() -> list[Object]:
        found = admin.pods("launcher")
        return [p for p in found if p["metadata"]["name"].startswith(f"{name}-launcher")]

    eventually(f"launcher of {name}", lambda: bool(launchers()))
    kubelet.exit(launchers()[0])
    until(admin, "Succeeded", name)


def _gone(admin: Admin, path: str = SHARED) -> None:
    eventually(f"{path} is gone", lambda: admin.get(path) is None, 30)


@pytest.mark.usefixtures("controller", "kubelet")
def test_jobs_share_the_scripts_and_carry_only_what_is_their_own(admin: Admin) -> None:
    for name in ("one", "two"):
        submit(admin, job(2, name))
        until(admin, "Running", name)
    (shared,) = _scripts(admin)
    assert shared["metadata"]["name"] == agent_scripts.name()
    assert shared["immutable"] is True
    assert shared["data"] == agent_scripts.data()
    assert "ownerReferences" not in shared["metadata"]
    for name in ("one", "two"):
        own = admin.get(f"{MAPS}/{name}-config")
        assert own is not None
        assert sum(map(len, own["data"].values())) < 1000
        assert set(own["data"]) == {"hostfile", "discover_hosts.sh", "hosts", "settings"}
    for pod in admin.pods():
        sources = next(v for v in pod["spec"]["volumes"] if v["name"] == "etc-mpi-agent")
        mounted = [s["configMap"]["name"] for s in sources["projected"]["sources"][1:]]
        assert mounted[0] == agent_scripts.name()


@pytest.mark.usefixtures("controller", "kubelet")
def test_a_job_that_rests_or_has_no_agent_needs_none(admin: Admin) -> None:
    submit(admin, job(1, "rests", suspend=True))
    bare = job(1, "bare")
    domain = "mpi-trainer.opendatahub.io"
    bare["metadata"]["annotations"] = {f"{domain}/agent": "off", f"{domain}/wait-seconds": "0"}
    submit(admin, bare)
    until(admin, "Suspended", "rests")
    until(admin, "Running", "bare")
    assert _scripts(admin) == []
    admin.change("rests", suspend=False)
    until(admin, "Running", "rests")
    assert len(_scripts(admin)) == 1


@pytest.mark.usefixtures("controller", "kubelet")
@pytest.mark.parametrize("immutable", [True, False])
def test_another_of_the_name_is_replaced_before_a_pod_reads_it(
    admin: Admin, immutable: bool
) -> None:
    """One that could still be changed is another, whatever it holds."""
    data = (
        {**agent_scripts.data(), "rank": "#!/bin/sh\nsteal\n"}
        if immutable
        else agent_scripts.data()
    )
    theirs = {"metadata": {"name": agent_scripts.name()}, "immutable": immutable, "data": data}
    was = admin.create(MAPS, theirs)["metadata"]["uid"]
    submit(admin, job(1))
    eventually("a pod", lambda: bool(admin.pods()))
    found = admin.get(SHARED)
    assert found is not None
    assert found["metadata"]["uid"] != was
    assert found["data"] == agent_scripts.data()
    assert found["immutable"] is True


@pytest.mark.timeout(200)
@pytest.mark.usefixtures("controller")
def test_scripts_that_are_deleted_are_back_while_pods_wait_for_them(admin: Admin) -> None:
    """Nothing else happens to the job meanwhile: its pods wait for a kubelet."""
    submit(admin, job(1))
    eventually("pods", lambda: len(admin.pods()) == 2)
    admin.delete(SHARED)
    assert admin.get(SHARED) is None
    eventually("they are back", lambda: admin.get(SHARED) is not None, 70)


@pytest.mark.timeout(200)
@pytest.mark.usefixtures("controller")
def test_they_stay_until_the_last_job_and_come_with_the_next(
    admin: Admin, kubelet: Kubelet
) -> None:
    submit(admin, job(1, "first"))
    submit(admin, job(1, "last"))
    until(admin, "Running", "first")
    until(admin, "Running", "last")
    _succeed(admin, kubelet, "first")
    with pytest.raises(AssertionError):
        eventually("they are gone too early", lambda: admin.get(SHARED) is None, KEEP + 3)
    _succeed(admin, kubelet, "last")
    assert admin.get(SHARED) is not None
    _gone(admin)
    submit(admin, job(1, "next"))
    until(admin, "Running", "next")
    assert admin.get(SHARED) is not None
    admin.delete("apis/kubeflow.org/v2beta1/mpijobs/next")
    _gone(admin)


@pytest.mark.timeout(200)
def test_a_restart_forgets_nothing_that_an_ended_job_has_left(
    admin: Admin, kubelet: Kubelet
) -> None:
    with _controller(admin) as one:
        submit(admin, job(1))
        until(admin, "Running")
        _succeed(admin, kubelet)
        one.kill()
    assert admin.get(SHARED) is not None
    with _controller(admin):
        _gone(admin)


@pytest.mark.timeout(200)
def test_running_jobs_keep_an_older_version_until_they_end(admin: Admin, kubelet: Kubelet) -> None:
    older = "0123456789ab"
    path = f"{MAPS}/mpi-agent-{older}"
    with _controller(admin):
        submit(admin, job(1))
        until(admin, "Running")
    admin.create(MAPS, {"metadata": {"name": f"mpi-agent-{older}"}, "data": {}})
    mark = {"metadata": {"annotations": {AGENT_SCRIPTS: older}}}
    admin.patch("apis/batch/v1/jobs/pi-launcher", mark)
    with _controller(admin):
        with pytest.raises(AssertionError):
            eventually("it is gone too early", lambda: admin.get(path) is None, KEEP + 3)
        _succeed(admin, kubelet)
        _gone(admin, path)


@pytest.mark.timeout(200)
def test_a_forged_mark_deletes_nothing_of_others(admin: Admin, kubelet: Kubelet) -> None:
    """Who may change a Job may not therefore delete ConfigMaps."""
    with _controller(admin):
        submit(admin, job(1))
        until(admin, "Running")
        for name in ("mpi-agent-x", "precious"):
            admin.create(MAPS, {"metadata": {"name": name}})
        for version in ("../precious", "x", "precious", "0123456789AB"):
            mark = {"metadata": {"annotations": {AGENT_SCRIPTS: version}}}
            admin.patch("apis/batch/v1/jobs/pi-launcher", mark)
        _succeed(admin, kubelet)
        with pytest.raises(AssertionError):
            eventually("gone", lambda: admin.get(f"{MAPS}/precious") is None, KEEP + 2)
    assert admin.get(f"{MAPS}/mpi-agent-x") is not None
