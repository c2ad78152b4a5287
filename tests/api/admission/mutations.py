"""Sound jobs, spoilt by chance in one to three places: what people send who make mistakes.

Half of the changes put a random value, or nothing, at a random place of the job. The others add
something that the pod API knows, in a form that is right, wrong, or nearly right.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from mpi_trainer.api.errors import Path
from tests.api.admission.cases import LAUNCHER, MAIN, META, POD, ROLES, TAKEN, job

Object = dict[str, Any]

NAME: Final = "spoilt"
_NAMED: Final = (*META, "name")

SOUND: Final[list[Object]] = [
    job(NAME),
    *(job(NAME, *changes) for _, changes in TAKEN if all(path != _NAMED for path, _ in changes)),
]

_PROBE: Final = {"tcpSocket": {"port": 2222}}
_TERM: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}

KNOWN: Final[dict[Path, list[Any]]] = {
    (*MAIN, "args"): [["a"], "a", [1], [None]],
    (*MAIN, "env"): [
        [{"name": "A"}],
        [{"name": "A", "value": 1}],
        [{"name": ""}],
        [{"value": "x"}],
    ],
    (*MAIN, "envFrom"): [[{"configMapRef": {"name": "c"}}], [{"prefix": "1"}], [{}]],
    (*MAIN, "imagePullPolicy"): ["Always", "always", ""],
    (*MAIN, "lifecycle"): [{"preStop": {"exec": {"command": ["x"]}}}, {"preStop": {}}],
    (*MAIN, "livenessProbe"): [_PROBE, {**_PROBE, "periodSeconds": 0}, {"tcpSocket": {"port": 0}}],
    (*MAIN, "ports"): [
        [{"containerPort": 80}],
        [{"containerPort": 0}],
        [{"containerPort": 80, "name": "UP"}],
        [{"containerPort": 80, "protocol": "TPC"}],
    ],
    (*MAIN, "readinessProbe"): [_PROBE, {}, {**_PROBE, "exec": {"command": ["x"]}}],
    (*MAIN, "resources"): [
        {"limits": {"cpu": 2}},
        {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"memory": "2Gi"}},
        {"limits": {"hugepages-2Mi": "3Mi"}},
        {"limits": {"rdma/ib": 1}},
        {"limits": {"a/b/c": 1}},
        {"requests": {"example.com/x": "1"}},
        {"limits": {"memory": "1e3"}},
        {"claims": [{"name": "gpu"}]},
    ],
    (*MAIN, "restartPolicy"): ["Always", "Never"],
    (*MAIN, "securityContext", "capabilities"): [{"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}],
    (*MAIN, "securityContext", "runAsUser"): [1, 0, 2**31, "1"],
    (*MAIN, "stdin"): [True, "yes"],
    (*MAIN, "terminationMessagePath"): ["/x", "x", ""],
    (*MAIN, "terminationMessagePolicy"): ["File", "file"],
    (*MAIN, "volumeMounts"): [
        [{"name": "ssh-auth", "mountPath": "/keys"}],
        [{"name": "d", "mountPath": "/d"}],
        [{"name": "d", "mountPath": "/etc/mpi"}],
        [{"name": "d", "mountPath": "/dev/shm"}],
        [{"name": "d", "mountPath": "rel"}, {"name": "d", "mountPath": "/rel"}],
    ],
    (*POD, "activeDeadlineSeconds"): [1, 0],
    (*POD, "affinity"): [
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}
            }
        },
    ],
    (*POD, "dnsConfig"): [
        {"searches": ["example.com"]},
        {"searches": ["a b"]},
        {"searches": [f"s{n}.example.com" for n in range(32)]},
        {"nameservers": ["1.1.1.1"]},
        {"nameservers": ["x"]},
        {"options": [{"name": "ndots", "value": "2"}]},
    ],
    (*POD, "dnsPolicy"): ["None", "Default", "ClusterFirstWithHostNet"],
    (*POD, "enableServiceLinks"): [False],
    (*POD, "hostAliases"): [[{"ip": "10.0.0.1", "hostnames": ["a"]}], [{"ip": "x"}]],
    (*POD, "hostUsers"): [False],
    (*POD, "hostname"): ["mine", "Not Mine"],
    (*POD, "imagePullSecrets"): [[{"name": "pull"}], [{}]],
    (*POD, "initContainers"): [
        [{"name": "main", "image": "x"}],
        [{"name": "one", "image": "x", "restartPolicy": "Always"}],
        [{"name": "one"}],
    ],
    (*POD, "nodeSelector"): [{"zone": "a"}, {"zone": "a b"}, {"a b": "x"}],
    (*POD, "os"): [{"name": "linux"}, {"name": "windows"}, {"name": "beos"}],
    (*POD, "overhead"): [{"cpu": "1"}],
    (*POD, "preemptionPolicy"): ["Never", "never"],
    (*POD, "priority"): [0, 5],
    (*POD, "readinessGates"): [[{"conditionType": "a/b"}], [{"conditionType": ""}]],
    (*POD, "restartPolicy"): ["Always", "Never", "x"],
    (*POD, "runtimeClassName"): ["kata", "Ka ta"],
    (*POD, "schedulerName"): ["volcano", ""],
    (*POD, "schedulingGates"): [[{"name": "a/b"}], [{"name": ""}], [{"name": "x"}, {"name": "x"}]],
    (*POD, "securityContext"): [
        {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]},
        {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
        {"supplementalGroups": [-1]},
        {"fsGroupChangePolicy": "Never"},
    ],
    (*POD, "serviceAccountName"): ["default", "no such"],
    (*POD, "setHostnameAsFQDN"): [True],
    (*POD, "shareProcessNamespace"): [True],
    (*POD, "subdomain"): ["mine", "My"],
    (*POD, "terminationGracePeriodSeconds"): [0, -1],
    (*POD, "tolerations"): [
        [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        [{"key": "gpu", "operator": "Exist"}],
        [{"operator": "Exists", "value": "x"}],
        [{"key": "a b"}],
    ],
    (*POD, "topologySpreadConstraints"): [
        [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    ],
    (*POD, "volumes"): [
        [{"name": "d", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        [{"name": "d", "emptyDir": {}, "configMap": {"name": "c"}}],
        [{"name": "d", "configMap": {"name": "c", "defaultMode": 0o1000}}],
        [{"name": "d", "configMap": {"name": "c", "items": [{"key": "k", "path": "../k"}]}}],
        [{"name": "d", "persistentVolumeClaim": {"claimName": "C"}}],
        [{"name": "d", "nfs": {"server": "s", "path": "rel"}}],
        [{"name": "d"}],
        [{"name": "d", "unheardOf": {}}],
        [{"name": "D", "emptyDir": {}}],
    ],
    (*LAUNCHER, "containers", 0, "command"): [[], ["mpirun"], "mpirun", [""]],
    (*LAUNCHER, "nodeName"): ["node1", "No de"],
    (*ROLES, "Worker", "template", "metadata"): [
        {"annotations": {"a/b": "x"}, "labels": {"app": "x"}},
        {"labels": {"training.kubeflow.org/job-name": "other"}},
        {"name": "mine", "finalizers": ["x"]},
        {"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "x"}},
    ],
}

_NOISE: Final[list[Any]] = [
    *(None, "", " ", "x", "X y", "1", "-1", "1Gi", "é😀", "\n", "a" * 70, "a" * 300),
    *(0, 1, -1, 2, 7, 65536, 2**31 - 1, 2**31, 2**63 - 1, 0.5, 1e300, True, False),
    *([], {}, [None], [[]], ["x"], [{}], {"x": None}, {"name": "x"}, {"": ""}, {"a b": 1}),
]

noise: Final = st.sampled_from(_NOISE)


@st.composite
def mutated(draw: st.DrawFn) -> Object:
    """A sound job with one to three changes."""
    data = copy.deepcopy(draw(st.sampled_from(SOUND)))
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            _scramble(draw, data)
        else:
            path = draw(st.sampled_from(list(KNOWN)))
            _put(data, path, copy.deepcopy(draw(st.sampled_from(KNOWN[path]))))
    return data


def _scramble(draw: st.DrawFn, data: Object) -> None:
    places = list(_places(data))
    if not places:
        return
    holder, key = draw(st.sampled_from(places))
    kind = draw(st.sampled_from(("value", "value", "gone", "twice", "misspelt")))
    if kind == "gone":
        del holder[key]
    elif kind == "twice" and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif kind == "misspelt" and isinstance(holder, dict):
        holder[f"{key}s"] = holder.pop(key)
    else:
        holder[key] = copy.deepcopy(draw(noise))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of the job but what makes it one: its kind and its name."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        if key not in ("apiVersion", "kind"):
            yield value, key
            if isinstance(value[key], dict | list):
                yield from _places(value[key])


def _put(data: Object, path: Path, value: Any) -> None:
    """At the path, as far as an earlier change has left one."""
    place: Any = data
    for part in path[:-1]:
        if isinstance(place, dict):
            place = place.setdefault(part, {})
        elif isinstance(place, list) and isinstance(part, int) and part < len(place):
            place = place[part]
        else:
            return
    if isinstance(place, dict):
        place[path[-1]] = value
