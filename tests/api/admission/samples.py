"""A value for every field of a pod that needs a right, such as the API server would take. Data."""

from __future__ import annotations

import re
from typing import Any

from mpi_trainer.webhook.pod_fields import GUARDED

WORKLOAD = {"name": "w", "podGroup": "g"}
VOLUMES: dict[str, dict[str, Any]] = {
    "awsElasticBlockStore": {"volumeID": "v"},
    "azureDisk": {"diskName": "d", "diskURI": "u"},
    "azureFile": {"secretName": "s", "shareName": "n"},
    "cephfs": {"monitors": ["m"]},
    "cinder": {"volumeID": "v"},
    "csi": {"driver": "secrets-store.csi.k8s.io"},
    "ephemeral": {
        "volumeClaimTemplate": {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }
        }
    },
    "fc": {"targetWWNs": ["w"], "lun": 1},
    "flexVolume": {"driver": "example.com/x"},
    "flocker": {"datasetName": "d"},
    "gcePersistentDisk": {"pdName": "p"},
    "gitRepo": {"repository": "https://example.com/x"},
    "glusterfs": {"endpoints": "e", "path": "p"},
    "hostPath": {"path": "/"},
    "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 1},
    "nfs": {"server": "s", "path": "/p"},
    "photonPersistentDisk": {"pdID": "p"},
    "portworxVolume": {"volumeID": "v"},
    "quobyte": {"registry": "r:1", "volume": "v"},
    "rbd": {"monitors": ["m"], "image": "i"},
    "scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"},
    "storageos": {"volumeName": "v"},
    "vsphereVolume": {"volumePath": "p"},
}

# By the end of the path.
VALUES: dict[str, Any] = {
    "metadata.finalizers": ["example.com/x"],
    ".ephemeralContainers": [{"name": "e", "image": "x"}],
    ".hostIPC": True,
    ".hostNetwork": True,
    ".hostPID": True,
    ".hostUsers": True,
    ".overhead": {"cpu": "1"},
    ".preemptionPolicy": "PreemptLowerPriority",
    ".priority": 1000,
    ".priorityClassName": "system-cluster-critical",
    ".appArmorProfile.type": "Unconfined",
    ".seccompProfile.type": "Unconfined",
    ".seLinuxOptions.type": "spc_t",
    ".runAsNonRoot": False,
    ".runAsUser": 0,
    ".windowsOptions": {"hostProcess": True},
    ".sysctls[]": {"name": "kernel.msgmax", "value": "65536"},
    ".podCertificate": {"signerName": "example.com/s", "keyType": "ED25519", "keyPath": "k"},
    ".serviceAccountToken": {"path": "token", "audience": "vault"},
    ".workloadRef": WORKLOAD,
    ".hostPort": 8080,
    ".hostIP": "127.0.0.1",
    ".allowPrivilegeEscalation": True,
    ".add[]": "SYS_ADMIN",
    ".privileged": True,
    ".procMount": "Unmasked",
    ".mountPropagation": "Bidirectional",
    ".host": "169.254.169.254",
    ".secretName": "other-ssh",
    ".secretKeyRef.name": "other-ssh",
    ".secretRef.name": "other-ssh",
    ".secret.name": "other-ssh",
    **{f".volumes[].{kind}": value for kind, value in VOLUMES.items()},
}

# What the API server requires beside the field.
BESIDE: dict[str, dict[str, Any]] = {
    "volumes[]": {"name": "v"},
    "containers[]": {"name": "main", "image": "example.com/train:1"},
    "initContainers[]": {"name": "first", "image": "example.com/train:1"},
    "ports[]": {"containerPort": 80},
    "env[]": {"name": "E"},
    "secretKeyRef": {"key": "k"},
    "volumeMounts[]": {"name": "d", "mountPath": "/d"},
    "httpGet": {"port": 80},
    "tcpSocket": {"port": 80},
}


def fields() -> list[str]:
    """Of a template's metadata, the definitions keep no more than finalizers of these."""
    return [p for p in GUARDED if not p.startswith("metadata.") or p == "metadata.finalizers"]


def template(path: str) -> dict[str, Any]:
    """A pod template with this field, and otherwise as small as the API server takes it."""
    found: dict[str, Any] = {
        "metadata": {},
        "spec": {
            "containers": [dict(BESIDE["containers[]"])],
            "volumes": [{"name": "d", "emptyDir": {}}],
        },
    }
    _put(found, path.split("."), next((v for k, v in VALUES.items() if path.endswith(k)), "admin"))
    return found


def _put(at: dict[str, Any], steps: list[str], value: Any) -> None:
    step, rest = steps[0], steps[1:]
    name = re.sub(r"\[\]$", "", step)
    if not rest:
        at[name] = [value] if step.endswith("[]") else value
    elif step.endswith("[]"):
        item = dict(BESIDE.get(step, {}))
        at.setdefault(name, [])
        if step == "containers[]":
            item = at[name][0]
        else:
            at[name].append(item)
        _put(item, rest, value)
    else:
        _put(at.setdefault(name, dict(BESIDE.get(step, {}))), rest, value)
