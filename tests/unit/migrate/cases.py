"""MPIJobs to convert: those of the examples and goldens, and some of what people write besides."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
Object = dict[str, Any]

BASE: Object = yaml.safe_load("""
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train}
spec:
  slotsPerWorker: 2
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - {name: mpi, image: localhost/train:1, command: [mpirun, -n, "4", python, train.py]}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {name: mpi, image: localhost/train:1, resources: {limits: {nvidia.com/gpu: 2}}}
""")

_OWN: dict[str, str] = {
    "queue": "runPolicy: {schedulingPolicy: {queue: team-a, minAvailable: 3, priorityClass: high}}",
    "waits": "runPolicy: {schedulingPolicy: {scheduleTimeoutSeconds: 900000}}",
    "clean-all": "runPolicy: {cleanPodPolicy: All, ttlSecondsAfterFinished: 60, backoffLimit: 0}",
    "clean-none": "runPolicy: {cleanPodPolicy: None, activeDeadlineSeconds: 0}",
    "suspended": "runPolicy: {suspend: true, managedBy: kueue.x-k8s.io/multikueue}",
    "managed": "runPolicy: {managedBy: kubeflow.org/mpi-operator, activeDeadlineSeconds: 60}",
    "ready": "launcherCreationPolicy: WaitForWorkersReady",
    "ready-as-worker": "{launcherCreationPolicy: WaitForWorkersReady, runLauncherAsWorker: true}",
    "startup": "launcherCreationPolicy: AtStartup",
    "intel": "mpiImplementation: Intel",
    "mpich": "{mpiImplementation: MPICH, sshAuthMountPath: /home/mpiuser/.ssh}",
}
_PODS: dict[str, str] = {
    "host-network": "{hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}",
    "node-selector": "{nodeSelector: {gpu: a100}, tolerations: [{key: gpu, operator: Exists}]}",
    "volumes": "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]",
    "taken": "volumes: [{name: mpi-ssh-auth, emptyDir: {}}, {name: mpi-hostfile, emptyDir: {}}]",
    "account": "{serviceAccountName: train, priorityClassName: high, schedulerName: volcano}",
    "security": "securityContext: {runAsUser: 1000, fsGroup: 1000}",
    "restarts": "restartPolicy: OnFailure",
    "grace": "{terminationGracePeriodSeconds: 5, shareProcessNamespace: true}",
    "first": "initContainers: [{name: fetch, image: 'localhost/a:1', command: [cp, /a, /b]}]",
    "beside": "initContainers: [{name: node, image: 'localhost/a:1', restartPolicy: Always}]",
    "shared-memory": "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]",
    "projected": """volumes: [{name: more, projected: {sources: [{configMap: {name: a}},
      {downwardAPI: {items: [{path: cpu, resourceFieldRef: {containerName: mpi,
      resource: limits.cpu}}]}}]}}]""",
    "spread": """{affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
      {weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {a: b}}}}]}},
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack,
      whenUnsatisfiable: ScheduleAnyway}]}""",
    "names": """{hostAliases: [{ip: 10.0.0.1, hostnames: [data.example.com]}], dnsPolicy: None,
      dnsConfig: {nameservers: [10.0.0.2], options: [{name: ndots, value: '2'}]}}""",
    "pulled": "{imagePullSecrets: [{name: registry}], automountServiceAccountToken: false}",
    "ephemeral": """volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec:
      {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]""",
}

_CONTAINERS: dict[str, str] = {
    "sources": """{env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}},
      {name: B, valueFrom: {configMapKeyRef: {name: a, key: b, optional: true}}}],
      envFrom: [{configMapRef: {name: a, optional: true}}]}""",
    "probes": """{readinessProbe: {tcpSocket: {port: 2222}, periodSeconds: 5},
      startupProbe: {exec: {command: ['true']}}, lifecycle: {preStop: {sleep: {seconds: 1}}}}""",
    "rdma": """{resources: {limits: {rdma/hca: 1, cpu: '4', memory: 8Gi}},
      securityContext: {capabilities: {add: [IPC_LOCK]}}}""",
    "parts-of-gpus": "{resources: {limits: {nvidia.com/mig-1g.5gb: 1}}, imagePullPolicy: Always}",
    "ports": "{ports: [{name: metrics, containerPort: 9090}], workingDir: /work, tty: true}",
    "quoted": "{args: ['a b', \"it's\", '$(HOME)', '--x={\"y\": 1}', 'é']}",
}


def base(**spec: Any) -> Object:
    """`BASE` with these fields in its spec, free to be changed."""
    job = copy.deepcopy(BASE)
    job["spec"] |= spec
    return job


def templates(job: Object) -> list[Object]:
    return [one["template"] for one in job["spec"]["mpiReplicaSpecs"].values()]


def mpijobs() -> dict[str, Object]:
    """Every MPIJob that we have, by where it comes from."""
    found: dict[str, Object] = {}
    files = [*ROOT.glob("examples/**/*.yaml"), *ROOT.glob("tests/golden/**/in.yaml")]
    for path in sorted(files):
        for n, each in enumerate(yaml.safe_load_all(path.read_text())):
            if isinstance(each, dict) and each.get("kind") == "MPIJob":
                found[f"{path.relative_to(ROOT)}:{n}"] = each
    for name, text in _OWN.items():
        found[name] = base(**yaml.safe_load(text))
    for name, text in _PODS.items():
        found[name] = base()
        for template in templates(found[name]):
            template["spec"] |= yaml.safe_load(text)
    for name, text in _CONTAINERS.items():
        found[name] = base()
        for template in templates(found[name]):
            template["spec"]["containers"][0] |= yaml.safe_load(text)
    unnamed = base()
    unnamed["metadata"] = {"generateName": "train-", "labels": {"team": "vision"}}
    meshed = base()
    for template in templates(meshed):
        template["metadata"] = {
            "labels": {"team": "vision"}, "annotations": {"sidecar.istio.io/inject": "false"}
        }  # fmt: skip
    return found | {"unnamed": unnamed, "meshed": meshed}


def without_workers(job: Object) -> bool:
    worker = job["spec"]["mpiReplicaSpecs"].get("Worker")
    return worker is None
