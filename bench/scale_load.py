"""Many jobs that were, with what they left, and jobs that run; made straight through the API.

Nobody plays them: their Jobs name another manager, and their pods are on a node that no kubelet and
no KWOK serves, with statuses written here. A job's own status comes last, so that a load that was
broken off is finished by the next one: what has a status is whole.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import aiohttp
import msgspec

from mpi_trainer.api.kinds.labels import LABEL_TRAINJOB
from tools.cluster.errors import ClusterError

MPIJOBS: Final = "/apis/kubeflow.org/v2beta1"
TRAINJOBS: Final = "/apis/trainer.kubeflow.org/v1alpha1"
JOBSETS: Final = "/apis/jobset.x-k8s.io/v1alpha2"
BATCH: Final = "/apis/batch/v1"
CORE: Final = "/api/v1"
NODE: Final = "loaded"
_AT_ONCE: Final = 24
_PAGE: Final = 500
_DELETIONS: Final = 20
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_TIME: Final = "2026-01-01T00:00:00Z"
_END: Final = "2026-01-01T01:00:00Z"
_OPERATOR: Final = "training.kubeflow.org/operator-name"
_JOB: Final = "training.kubeflow.org/job-name"
_ROLE: Final = "training.kubeflow.org/job-role"
_WORKERS: Final = 2

Object = dict[str, Any]


class Load(msgspec.Struct, frozen=True):
    """How many of each, over so many namespaces; written `20000,500,5000`."""

    finished: int
    running: int
    trainjobs: int
    namespaces: int = 20

    @classmethod
    def parse(cls, text: str) -> Load:
        finished, running, trainjobs = (int(part) for part in text.split(","))
        return cls(finished, running, trainjobs)

    def __str__(self) -> str:
        return f"{self.finished} finished, {self.running} running, {self.trainjobs} TrainJobs"


class Api:
    """Requests to one API server, as JSON."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def create(self, path: str, obj: Object) -> Object:
        """The object as stored; the one that is there already where there is one."""
        async with self._session.post(path, json=obj) as answer:
            if answer.status == 409:
                return await self.get(f"{path}/{obj['metadata']['name']}")
            return await _read(answer)

    async def patch(self, path: str, body: Object) -> Object:
        data = msgspec.json.encode(body)
        async with self._session.patch(path, data=data, headers=_MERGE) as answer:
            return await _read(answer)

    async def get(self, path: str) -> Object:
        async with self._session.get(path) as answer:
            return await _read(answer)

    async def delete(self, path: str) -> None:
        """A large collection takes longer than one request may: what is left is asked for again."""
        for _ in range(_DELETIONS):
            body = {"propagationPolicy": "Background"}
            with suppress(TimeoutError):
                async with self._session.delete(path, json=body) as answer:
                    if answer.status == 404:
                        return
                    if answer.status != 504:
                        await _read(answer)
                        return
        raise ClusterError(f"{path} was not deleted in {_DELETIONS} requests")

    async def pages(self, path: str) -> AsyncIterator[bytes]:
        """All of a collection as the controllers list it, undecoded."""
        token = ""
        while True:
            query = {"limit": str(_PAGE), **({"continue": token} if token else {})}
            async with self._session.get(path, params=query) as answer:
                body = await answer.read()
                if answer.status >= 300:
                    raise ClusterError(f"{answer.status} {body[:300]!r}")
            yield body
            token = msgspec.json.decode(body, type=_Page).metadata.continue_
            if not token:
                return


class _ListMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()


class _Meta(msgspec.Struct, frozen=True):
    name: str
    namespace: str


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[msgspec.Raw, ...] = ()


class _Item(msgspec.Struct, frozen=True):
    metadata: _Meta
    status: _Status = _Status()


class _Items(msgspec.Struct, frozen=True):
    items: tuple[_Item, ...] = ()


async def _read(answer: aiohttp.ClientResponse) -> Object:
    if answer.status >= 300:
        raise ClusterError(f"{answer.status} {(await answer.text())[:500]}")
    found: Object = msgspec.json.decode(await answer.read())
    return found


async def fill(api: Api, load: Load, say: Callable[[str], None]) -> float:
    """Make all of it that is not there yet; the seconds that it took."""
    begun = time.monotonic()
    await _node(api)
    for number in range(load.namespaces):
        name = {"metadata": {"name": _namespace(number)}}
        await api.create(f"{CORE}/namespaces", {"apiVersion": "v1", "kind": "Namespace", **name})
    there = {*await _whole(api, f"{MPIJOBS}/mpijobs"), *await _whole(api, f"{TRAINJOBS}/trainjobs")}
    makers = [one for one in _makers(api, load) if one[0] not in there]
    done = 0
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(make: Callable[[], Awaitable[None]]) -> None:
        nonlocal done
        async with limit:
            await make()
        done += 1
        if done % 1000 == 0:
            say(f"{done} of {len(makers)} jobs loaded, {time.monotonic() - begun:.0f} s")

    for first in range(0, len(makers), 2000):
        await asyncio.gather(*(one(make) for _, make in makers[first : first + 2000]))
    return round(time.monotonic() - begun, 1)


def _makers(
    api: Api, load: Load
) -> Iterator[tuple[tuple[str, str], Callable[[], Awaitable[None]]]]:
    kinds = (
        ("run", load.running, _running_mpijob),
        ("old", load.finished, _finished_mpijob),
        ("train", load.trainjobs, _finished_trainjob),
    )
    for prefix, count, make in kinds:
        for number in range(count):
            place, name = _namespace(number % load.namespaces), f"{prefix}-{number}"
            yield (place, name), functools.partial(make, api, place, name)


def _namespace(number: int) -> str:
    return f"scale-{number}"


async def _whole(api: Api, path: str) -> set[tuple[str, str]]:
    found = set()
    async for page in api.pages(path):
        for item in msgspec.json.decode(page, type=_Items).items:
            if item.status.conditions:
                found.add((item.metadata.namespace, item.metadata.name))
    return found


async def _node(api: Api) -> None:
    """It keeps the garbage collector of pods from them, and takes no others."""
    taint = {"key": "loaded", "effect": "NoSchedule"}
    meta = {"name": NODE}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": [taint]}}
    await api.create(f"{CORE}/nodes", node)


# --- objects ---------------------------------------------------------------------------------


def template(*command: str) -> Object:
    """A pod as people write it: some variables, limits, a volume."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/training:2026.01",
        "command": list(command),
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(8)],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return {"spec": {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}}


def mpijob(place: str, name: str, workers: int = _WORKERS) -> Object:
    replicas = {
        "Launcher": {"replicas": 1, "template": template("mpirun", "python", "train.py")},
        "Worker": {"replicas": workers, "template": template("/usr/sbin/sshd", "-De")},
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": place, "labels": {"team": "bench"}},
        "spec": {
            "slotsPerWorker": 1,
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": replicas,
        },
    }


def _condition(kind: str, status: str = "True") -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": f"MPIJob{kind}",
        "message": f"MPIJob is {kind.lower()}.",
        "lastTransitionTime": _TIME,
        "lastUpdateTime": _TIME,
    }


async def _finished_mpijob(api: Api, place: str, name: str) -> None:
    """Its workers are gone; launcher, ConfigMap and Service stay."""
    owner = await api.create(f"{MPIJOBS}/namespaces/{place}/mpijobs", mpijob(place, name))
    await _furniture(api, owner)
    await _launcher(api, owner, "Succeeded")
    status = {
        "conditions": [
            _condition("Created"),
            _condition("Running", "False"),
            _condition("Succeeded"),
        ],
        "replicaStatuses": {"Launcher": {"succeeded": 1}, "Worker": {}},
        "startTime": _TIME,
        "completionTime": _END,
        "lastReconcileTime": _END,
    }
    await api.patch(_path(MPIJOBS, "mpijobs", owner) + "/status", {"status": status})


async def _running_mpijob(api: Api, place: str, name: str) -> None:
    owner = await api.create(f"{MPIJOBS}/namespaces/{place}/mpijobs", mpijob(place, name))
    await _furniture(api, owner, key=True)
    await _launcher(api, owner, "Running")
    for index in range(_WORKERS):
        await _pod(api, owner, f"{name}-worker-{index}", "worker", "Running")
    status = {
        "conditions": [_condition("Created"), _condition("Running")],
        "replicaStatuses": {"Launcher": {"active": 1}, "Worker": {"active": _WORKERS}},
        "startTime": _TIME,
        "lastReconcileTime": _END,
    }
    await api.patch(_path(MPIJOBS, "mpijobs", owner) + "/status", {"status": status})


def _path(group: str, plural: str, obj: Object) -> str:
    meta = obj["metadata"]
    return f"{group}/namespaces/{meta['namespace']}/{plural}/{meta['name']}"


def _owned(owner: Object, name: str, **more: Any) -> Object:
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": meta["namespace"],
        "ownerReferences": [reference],
        **more,
    }


async def _furniture(api: Api, owner: Object, key: bool = False) -> None:
    name, place = owner["metadata"]["name"], owner["metadata"]["namespace"]
    hosts = "".join(f"{name}-worker-{i}.{name}.{place}.svc slots=1\n" for i in range(_WORKERS))
    data = {"hostfile": hosts, "discover_hosts.sh": "#!/bin/sh\n"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _owned(owner, f"{name}-config")}
    await api.create(f"{CORE}/namespaces/{place}/configmaps", {**config, "data": data})
    selector = {_OPERATOR: "mpi-operator", _JOB: name}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": _owned(owner, name)}
    spec = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True}
    await api.create(f"{CORE}/namespaces/{place}/services", {**service, "spec": spec})
    if key:
        meta = _owned(owner, f"{name}-ssh")
        pair = {"ssh-privatekey": "a2V5", "ssh-publickey": "a2V5"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": pair}
        secret["type"] = "kubernetes.io/ssh-auth"
        await api.create(f"{CORE}/namespaces/{place}/secrets", secret)


async def _launcher(api: Api, owner: Object, phase: str) -> None:
    name, place = owner["metadata"]["name"], owner["metadata"]["namespace"]
    labels = {_OPERATOR: "mpi-operator", _JOB: name, _ROLE: "launcher"}
    pod = template("mpirun", "python", "train.py")
    pod["metadata"] = {"labels": labels}
    pod["spec"]["restartPolicy"] = "Never"
    made = await api.create(
        f"{BATCH}/namespaces/{place}/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": _owned(owner, f"{name}-launcher", labels=labels),
            "spec": {"backoffLimit": 6, "template": pod, "managedBy": "bench.example.com/loader"},
        },
    )
    await _pod(api, made, f"{name}-launcher-{made['metadata']['uid'][:5]}", "launcher", phase, name)
    status: Object = {"startTime": _TIME, "active": 1, "ready": 1}
    if phase == "Succeeded":
        ends = ({"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete"))
        status = {
            "startTime": _TIME,
            "completionTime": _END,
            "succeeded": 1,
            "conditions": list(ends),
        }
    await api.patch(_path(BATCH, "jobs", made) + "/status", {"status": status})


async def _pod(api: Api, owner: Object, name: str, role: str, phase: str, job: str = "") -> None:
    job = job or owner["metadata"]["name"]
    labels = {_OPERATOR: "mpi-operator", _JOB: job, _ROLE: role}
    await _put_pod(api, owner, name, labels, phase)


async def _put_pod(api: Api, owner: Object, name: str, labels: Object, phase: str) -> None:
    place = owner["metadata"]["namespace"]
    made = template("mpirun", "python", "train.py")
    made |= {"apiVersion": "v1", "kind": "Pod", "metadata": _owned(owner, name, labels=labels)}
    made["spec"] |= {
        "nodeName": NODE,
        "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists"}],
    }
    path = f"{CORE}/namespaces/{place}/pods"
    await api.create(path, made)
    over = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": _TIME}}
    state = {"running": {"startedAt": _TIME}} if phase == "Running" else over
    container = {
        "name": "main",
        "ready": phase == "Running",
        "restartCount": 0,
        "image": "registry.example.com/team/training:2026.01",
        "imageID": "registry.example.com/team/training@sha256:0",
        "state": state,
    }
    ready = "True" if phase == "Running" else "False"
    told = [
        {"type": kind, "status": status, "lastTransitionTime": _TIME}
        for kind, status in (("PodScheduled", "True"), ("Initialized", "True"), ("Ready", ready))
    ]
    status = {"phase": phase, "conditions": told, "containerStatuses": [container]}
    await api.patch(f"{path}/{name}/status", {"status": status})


async def _finished_trainjob(api: Api, place: str, name: str) -> None:
    """Its JobSet, the pod that ended it, and two ConfigMaps stay."""
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": place},
        "spec": {
            "runtimeRef": {"name": "mpi", "kind": "TrainingRuntime"},
            "trainer": {"numNodes": 2, "command": ["mpirun", "python", "train.py"]},
        },
    }
    owner = await api.create(f"{TRAINJOBS}/namespaces/{place}/trainjobs", job)
    for suffix in ("config", "runtime"):
        meta = _owned(owner, f"{name}-{suffix}")
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        data = {"hostfile": f"{name}-node-0-0 slots=1\n" * 2}
        await api.create(f"{CORE}/namespaces/{place}/configmaps", {**config, "data": data})
    pod = template("mpirun", "python", "train.py")
    pod["spec"]["restartPolicy"] = "Never"
    step = {"name": "launcher", "replicas": 1, "template": {"spec": {"template": pod}}}
    meta = _owned(owner, name)
    made = await api.create(
        f"{JOBSETS}/namespaces/{place}/jobsets",
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": meta,
            "spec": {"replicatedJobs": [step]},
        },
    )
    labels = {
        LABEL_TRAINJOB: name,
        "jobset.sigs.k8s.io/jobset-uid": made["metadata"]["uid"],
        "jobset.sigs.k8s.io/replicatedjob-name": "launcher",
    }
    await _put_pod(api, made, f"{name}-launcher-0-0", labels, "Succeeded")
    done = {"status": "True", "lastTransitionTime": _END, "message": "done"}
    counts = {"name": "launcher", "ready": 0, "succeeded": 1}
    counts |= {"failed": 0, "active": 0, "suspended": 0}
    ended = {"type": "Completed", "reason": "AllJobsCompleted", **done}
    body = {"conditions": [ended], "replicatedJobsStatus": [counts], "restarts": 0}
    await api.patch(_path(JOBSETS, "jobsets", made) + "/status", {"status": body})
    complete = {"type": "Complete", "reason": "JobsCompleted", **done}
    told = {"conditions": [complete], "jobsStatus": [counts]}
    await api.patch(_path(TRAINJOBS, "trainjobs", owner) + "/status", {"status": told})
