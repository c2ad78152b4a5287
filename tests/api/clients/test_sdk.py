"""The SDK's cluster backend on a real API server with a real controller (AC-1, AC-7, AC-8).

Only the kubelet is played. What it takes a kubelet to show (logs, exec, real MPI) is shown by
`tests/e2e/test_sdk.py`, with the very tests that the local backend passes.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpi_trainer.sdk.backends.backend import Key
from openshift_ai_sdk.training import (
    AsyncTrainingClient,
    JobExists,
    JobFailed,
    JobNotFound,
    JobTimeout,
    K8sApiException,
    MPIJob,
    TrainingClient,
    VolumeNotFound,
    connect,
)
from tests.api.admin import Admin
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import admin, controller, kubelet, served
from tests.api.running import Controller
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]

PATIENCE = 60.0
JOBS = "apis/kubeflow.org/v2beta1"


@pytest.fixture
def place(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> Iterator[Admin]:
    """Where the SDK finds the cluster by itself, in a namespace of this test."""
    monkeypatch.setenv("KUBECONFIG", str(_in(admin, Path(str(admin.spec.state)))))
    yield admin


def _in(admin: Admin, folder: Path) -> Path:
    """The administrator's kubeconfig with the test's namespace in its context."""
    import yaml

    content = yaml.safe_load(admin.spec.kubeconfig.read_text())
    for entry in content["contexts"]:
        entry["context"]["namespace"] = admin.namespace
    path = folder / f"kubeconfig-{admin.namespace}"
    path.touch(0o600)
    path.write_text(yaml.safe_dump(content))
    return path


def job(name: str = "pi", **more: object) -> MPIJob:
    return MPIJob(name, image="x", command=["mpirun", "/pi"], **more)  # type: ignore[arg-type]


def test_life_of_a_job(place: Admin, kubelet: Kubelet, controller: Controller) -> None:
    """Found, created, seen, suspended, resumed, ended, restarted, deleted; nothing is left."""
    client = TrainingClient()
    assert client.namespace == place.namespace and client.backend.name == place.spec.api_url
    made = job().create()
    assert made.namespace == place.namespace
    until("running", lambda: made.status.state == "Running")
    assert [p.role for p in made.describe().pods] == ["launcher", "worker", "worker"]
    made.suspend()
    until("suspended", lambda: made.status.state == "Suspended")
    until("no pods", lambda: not made.describe().pods)
    kubelet.finish = lambda pod: 0 if is_launcher(pod) else None
    made.resume()
    assert made.wait(timeout=PATIENCE).succeeded
    reasons = [event.reason for event in made.stream_events()]
    assert reasons[0] == "MPIJobCreated" and "MPIJobSuspended" in reasons
    before = place.job()["metadata"]["uid"]
    made.restart()
    assert place.job()["metadata"]["uid"] != before
    assert made.wait(timeout=PATIENCE).succeeded
    assert client.list_jobs().names == ["pi"]
    made.delete()
    assert place.pods() == [] and client.list_jobs() == ()
    with pytest.raises(JobNotFound, match=f"{place.namespace}/pi"):
        made.get_status()


def until(what: str, probe: Callable[[], bool]) -> None:
    eventually(what, probe, PATIENCE)


def test_failure_ends_the_wait_at_once_with_the_reason(
    place: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """SC-006."""
    kubelet.finish = lambda pod: 3 if is_launcher(pod) else None
    made = job().create()
    with pytest.raises(JobFailed, match="exit code 3") as caught:
        made.wait(timeout=PATIENCE)
    assert caught.value.reason


def test_event_loop_that_ends_in_a_wait_leaves_no_socket(place: Admin) -> None:
    """An open socket would be a warning, and warnings are errors here."""
    job().create()
    backend = connect()

    async def look() -> None:
        async for _ in backend.watch(Key(place.namespace, "pi")):
            return

    for _ in range(20):
        asyncio.run(look())
        gc.collect()


def test_wait_that_is_over_leaves_the_job(place: Admin, controller: Controller) -> None:
    made = job().create()
    with pytest.raises(JobTimeout, match="it is Created"):
        made.wait(timeout=2)
    assert place.job()


def test_deletion_ends_every_wait(place: Admin, kubelet: Kubelet, controller: Controller) -> None:
    made = job().create()
    until("running", lambda: made.status.state == "Running")

    def wait() -> str:
        with pytest.raises(JobNotFound) as caught:
            MPIJob.get("pi").wait(timeout=PATIENCE)
        return str(caught.value)

    with ThreadPoolExecutor(3) as pool:
        waiters = [pool.submit(wait) for _ in range(3)]
        time.sleep(5)  # so that they wait when it happens
        TrainingClient().delete_job("pi")
        for waiter in waiters:
            assert "was deleted" in waiter.result(PATIENCE)


def test_two_who_delete_at_once_both_see_it_gone(
    place: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    job().create()
    until("pods", lambda: len(place.pods()) == 3)
    start = threading.Barrier(2)

    def delete() -> str:
        start.wait()
        try:
            TrainingClient().delete_job("pi")
        except JobNotFound:
            return "gone before"
        return "gone"

    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(delete) for _ in range(2)]
        assert "gone" in {answer.result(PATIENCE) for answer in answers}
    assert place.pods() == []


def test_messages_have_the_words_that_people_search_for(place: Admin) -> None:
    """`already exists`, `not found`, `forbidden`, `quota exceeded`."""
    job().create()
    with pytest.raises(JobExists, match=f"{place.namespace}/pi already exists"):
        job().create()
    begun = time.monotonic()
    with pytest.raises(JobNotFound, match=f"job {place.namespace}/nobody not found"):
        MPIJob.get("nobody", place.namespace)
    assert time.monotonic() - begun < PATIENCE / 6
    stranger = connect(as_user="jane", namespace=place.namespace)
    with pytest.raises(K8sApiException, match=r"forbidden: you \(jane\) may not create mpijobs"):
        job("hers", backend=stranger).create()
    few = {"metadata": {"name": "few"}, "spec": {"hard": {"count/mpijobs.kubeflow.org": "1"}}}
    place.create("api/v1/resourcequotas", few)
    quota = "api/v1/resourcequotas/few"
    eventually(
        "the quota is counted",
        lambda: bool(((place.get(quota) or {}).get("status") or {}).get("used")),
    )
    with pytest.raises(K8sApiException, match="quota exceeded: `few` has no room: 1 of 1") as full:
        job("more").create()
    assert "raise the quota" in full.value.hint and "exceeded quota" in full.value.body


DATA = [{"name": "training-data", "mountPath": "/data", "readOnly": True}]


def test_volume_by_its_name_is_a_claim_or_a_data_connection(place: Admin) -> None:
    with pytest.raises(VolumeNotFound, match="volume training-data not found") as caught:
        job(volume_mounts=DATA).create()
    assert place.namespace in str(caught.value)
    assert place.get(f"{JOBS}/mpijobs/pi") is None
    secret = {"metadata": {"name": "training-data"}, "stringData": {"AWS_S3_BUCKET": "b"}}
    place.create("api/v1/secrets", secret)
    with pytest.raises(VolumeNotFound):  # a Secret is no data connection by itself
        job(volume_mounts=DATA).create()
    mark = {"metadata": {"annotations": {"opendatahub.io/connection-type": "s3"}}}
    place.patch("api/v1/secrets/training-data", mark)
    job(volume_mounts=DATA).create()
    assert _volumes(place, "pi") == [{"secretName": "training-data"}]
    claim = {
        "metadata": {"name": "training-data"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }
    place.create("api/v1/persistentvolumeclaims", claim)
    job("by-claim", volume_mounts=DATA).create()
    assert _volumes(place, "by-claim") == [{"claimName": "training-data"}]


def _volumes(place: Admin, name: str) -> list[dict[str, str]]:
    stored = place.get(f"{JOBS}/mpijobs/{name}")
    assert stored is not None
    spec = stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    mount = {"name": "volume-0", "mountPath": "/data", "readOnly": True}
    assert spec["containers"][0]["volumeMounts"] == [mount]
    return [
        {k: v for k, v in one.items() if k != "defaultMode"}
        for volume in spec["volumes"]
        for key, one in volume.items()
        if key != "name"
    ]


def test_fifty_who_wait_are_served_by_one_watch(
    place: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """Few jobs are watched by name, many by namespace; nobody asks again and again."""
    kubelet.finish = lambda pod: 0 if is_launcher(pod) else None

    async def wait_for_all() -> list[bool]:
        client = AsyncTrainingClient()
        names = [f"j{number}" for number in range(6)]
        for name in names:
            await client.create_mpi_job(job(name, workers=1))
        waits = [client.wait_for_job_completion(n, timeout=PATIENCE) for n in names * 8]
        return [state.succeeded for state in await asyncio.gather(*waits)]

    assert asyncio.run(wait_for_all()) == [True] * 48


@pytest.mark.parametrize("local", [None, True])
def test_local_is_taken_where_it_is_asked_for(
    place: Admin, monkeypatch: pytest.MonkeyPatch, local: bool | None
) -> None:
    if local is None:
        monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    assert connect(local=local).name == "local"
