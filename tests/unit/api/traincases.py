"""TrainJobs and runtimes that must be refused, and those near them that must be taken. Data only.

`SCHEMA` marks what the definition itself refuses on a cluster, in the API server's words; `EXTRA`
what upstream lets in, though nothing good can come of it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from mpi_trainer.api.errors import Path
from tests.unit.api.building import changed
from tests.unit.api.trainers import (
    JOBS,
    LABEL,
    MPI,
    NODES,
    patch,
    plain,
    replicated,
    runtime,
    torch,
    train_job,
)

Change = tuple[Path, Any]

SAME: Final = "upstream refuses it too"
SCHEMA: Final = "the definition refuses it, upstream's too"
EXTRA: Final = "upstream takes it, and it never starts or does not do what it says"

SPEC: Path = ("spec",)
TRAINER: Path = ("spec", "trainer")
PATCHES: Path = ("spec", "runtimePatches")
DATASET: Path = ("spec", "initializer", "dataset")
MODEL: Path = ("spec", "initializer", "model")
REF: Path = ("spec", "runtimeRef")
META: Path = ("metadata",)
RESOURCES: Path = (*TRAINER, "resourcesPerNode")
DOMAIN: Final = "mpi-trainer.opendatahub.io"
NOTE: Final = f"{DOMAIN}/mpi-implementation"
TTL: Final = f"{DOMAIN}/ttl-seconds-after-finished"


class Refused(msgspec.Struct, frozen=True):
    runtime: str
    changes: tuple[Change, ...]
    words: str
    by: str = EXTRA


class Taken(msgspec.Struct, frozen=True):
    runtime: str
    changes: tuple[Change, ...] = ()


def no(runtime: str, path: Path, value: Any, words: str, by: str = EXTRA) -> Refused:
    return Refused(runtime, ((path, value),), words, by)


def yes(runtime: str, *changes: Change) -> Taken:
    return Taken(runtime, changes)


def env(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "value": "x"} for name in names]


def fetcher(name: str, *mounts: str, container: str = "") -> dict[str, Any]:
    given = [{"name": mount, "mountPath": f"/{mount}"} for mount in mounts]
    job = replicated(name, name, name=container or name, volumeMounts=given)
    volumes = [{"name": mount, "emptyDir": {}} for mount in mounts]
    job["template"]["spec"]["template"]["spec"]["volumes"] = volumes
    return job


def _fetching(dataset: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    return torch((JOBS, [dataset, model, replicated("node", "trainer")]))


def _unlabelled(job: dict[str, Any]) -> dict[str, Any]:
    return changed(job, [(("template", "metadata"), {})])


_DATASET, _MODEL = "dataset-initializer", "model-initializer"
_PARALLELISM: Path = ("template", "spec", "parallelism")
_ENV_INJECTION: Path = ("spec", "mlPolicy", "torch", "envInjection", "targets")

_INSTALLER = {"name": "flux-installer", "image": "x"}

TUNED = "torchtune-llama3.2-1b"
TUNE = ((*TRAINER, "command"), ["tune", "run"])
TWO_GPUS = {"limits": {"nvidia.com/gpu": 2}}

RUNTIMES: dict[str, dict[str, Any]] = {
    "mpi": runtime(),
    "mpi-apart": runtime(((*MPI, "runLauncherAsNode"), False)),
    "mpi-intel": runtime(((*META, "annotations"), {NOTE: "Intel"})),
    "mpi-many": runtime((NODES, 4)),
    "mpi-parallel": runtime(((*JOBS, 1), replicated("launcher")), ((*JOBS, 1, *_PARALLELISM), 2)),
    "mpi-headless": runtime((JOBS, [replicated("node", "trainer")])),
    "mpi-alone": runtime((JOBS, [replicated("launcher", "trainer")])),
    "mpi-misnamed": runtime(((*JOBS, 0), replicated("node", name="main"))),
    "imageless": runtime(((*JOBS, 0), replicated("node", image=""))),
    "torch": torch(),
    TUNED: torch(),
    "torch-lost": torch((_ENV_INJECTION, [{"jobName": "node", "containerNames": ["side"]}])),
    "plain": plain(),
    "jax": torch((("spec", "mlPolicy"), {"jax": {}})),
    "flux": torch((("spec", "mlPolicy"), {"flux": {}})),
    "flux-headless": torch(
        (("spec", "mlPolicy"), {"flux": {}}), ((*JOBS, 0), replicated("main", "trainer"))
    ),
    "flux-installed": torch(
        (("spec", "mlPolicy"), {"flux": {}}),
        ((*JOBS, 0, "template", "spec", "template", "spec", "initContainers"), [_INSTALLER]),
    ),
    "xgboost": torch((("spec", "mlPolicy"), {"xgboost": {}})),
    "fetching": _fetching(fetcher(_DATASET, "initializer"), fetcher(_MODEL, "initializer")),
    "fetching-nowhere": _fetching(fetcher(_DATASET, "data"), fetcher(_MODEL)),
    "fetching-elsewhere": _fetching(
        _unlabelled(fetcher(_DATASET, "initializer", container="main")),
        _unlabelled(fetcher(_MODEL, "initializer", container="main")),
    ),
}

KUEUE = {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}}
_SIDE = {"name": "side", "env": env("A")}

REFUSED: list[Refused] = [
    # names
    no("mpi", (*META, "name"), "x" * 64, "must be at most 63 characters", SCHEMA),
    no("mpi", (*META, "name"), "1st", "must consist of lower-case letters", SCHEMA),
    no("mpi", (*META, "name"), "a.b", "must consist of lower-case letters", SCHEMA),
    no("mpi", (*META, "name"), "x" * 45, "`…-launcher-0-0-xxxxx` would need 64 characters"),
    no("mpi", (*META, "name"), "x" * 63, "use at most 44 characters"),
    no("torch", (*META, "name"), "x" * 50, "use at most 48 characters"),
    Refused(
        "torch",
        (((*META, "name"), "x" * 48), ((*TRAINER, "numNodes"), 11)),
        "use at most 47 characters",
    ),
    # the runtime
    no("mpi", (*REF, "name"), "", "a job must name its runtime", SCHEMA),
    no("mpi", (*REF, "kind"), "Runtime", "runtimeRef.kind: Unsupported value", SAME),
    no("mpi", (*REF, "apiGroup"), "example.com", "runtimeRef.apiGroup: Unsupported value", SAME),
    no("flux-headless", (*TRAINER, "numNodes"), 2, "it has no job `node` that is labelled"),
    no("flux-installed", (*TRAINER, "numNodes"), 2, "an init container `flux-installer`", SAME),
    no("mpi-many", (*TRAINER, "numNodes"), 2, "it would start 4 launchers, by mlPolicy.numNodes"),
    no("mpi-parallel", (*TRAINER, "numNodes"), 2, "start 2 launchers, by the parallelism of"),
    no("mpi-headless", (*TRAINER, "numNodes"), 2, "needs a replicated job `launcher`", SAME),
    no("mpi-headless", (*TRAINER, "numNodes"), 1, "needs a replicated job `launcher`"),
    no("mpi-alone", (*TRAINER, "numNodes"), 2, "needs a replicated job `node`", SAME),
    no("mpi-alone", (*TRAINER, "image"), "a", "needs a replicated job `node`, and has `launcher`"),
    no("mpi-misnamed", (*TRAINER, "image"), "a", "job `node` of an MPI runtime needs a container"),
    no("imageless", (*TRAINER, "args"), ["a"], "in the pods of `node`, containers[0].image"),
    # the trainer
    no("mpi", (*TRAINER, "numNodes"), 0, "trainer.numNodes: Invalid value: 0: must be at least 1"),
    no("mpi", (*TRAINER, "numNodes"), 2**31 - 1, "makes 2147483647 pods, and a job has at most"),
    no("mpi", (*TRAINER, "numNodes"), -1, "trainer.numNodes: Invalid value: -1"),
    no("mpi", (*TRAINER, "numProcPerNode"), 0, "trainer.numProcPerNode: Invalid value: 0"),
    no("mpi", (*TRAINER, "image"), "x" * 501, "trainer.image: Too long", SCHEMA),
    no("mpi", (*TRAINER, "command"), ["a"] * 129, "must have at most 128 items", SCHEMA),
    no("mpi", (*TRAINER, "args"), ["a"] * 129, "must have at most 128 items", SCHEMA),
    no("mpi", (*TRAINER, "env"), env("A", "A"), "another variable has this name", SCHEMA),
    no("mpi", (*TRAINER, "env"), [{"value": "x"}], "env[0].name: Required value", SCHEMA),
    no("mpi", (*TRAINER, "env"), env("A=B"), "env[0].name: Invalid value"),
    no("mpi", RESOURCES, {"limits": {"cpu": "1 core"}}, "must be a quantity", SCHEMA),
    no("mpi", RESOURCES, {"limits": {"cpu": "-1"}}, "must not be negative"),
    no("mpi", RESOURCES, {"limits": {"gpu": 1}}, "for GPUs use `nvidia.com/gpu`"),
    no("mpi", RESOURCES, {"requests": {"nvidia.com/gpu": 1}}, "needs an equal limit"),
    no("mpi", RESOURCES, {"requests": {"cpu": 4}, "limits": {"cpu": 2}}, "at most its limit 2"),
    # reserved variables
    no("mpi", (*TRAINER, "env"), env("OMPI_MCA_orte_default_hostfile"), "sets this", SAME),
    no("mpi", (*TRAINER, "env"), env("OMPI_MCA_plm_rsh_args"), "sets this variable itself", SAME),
    no("mpi", (*TRAINER, "env"), env("A", "OMPI_MCA_orte_set_default_slots"), "env[1]", SAME),
    no("mpi", (*TRAINER, "env"), env("PRTE_MCA_prte_default_hostfile"), "sets this variable"),
    no("mpi-intel", (*TRAINER, "env"), env("I_MPI_HYDRA_HOST_FILE"), "sets this variable itself"),
    no("torch", (*TRAINER, "env"), env("PET_NNODES"), "sets this variable itself", SAME),
    no("torch", (*TRAINER, "env"), env("PET_MASTER_ADDR"), "sets this variable itself", SAME),
    no("xgboost", (*TRAINER, "env"), env("DMLC_TASK_ID"), "sets this variable itself", SAME),
    no("torch", (*TRAINER, "command"), ["tune", "run"], "finds its model by the runtime", SAME),
    Refused(TUNED, (TUNE, ((*TRAINER, "numNodes"), 2)), "is trained on one node", SAME),
    Refused(TUNED, (TUNE, ((*TRAINER, "args"), ["output_dir=/x"])), "the runtime sets this", SAME),
    Refused(
        TUNED,
        (TUNE, ((*TRAINER, "args"), ["model.quantize_base=True"]), (RESOURCES, TWO_GPUS)),
        "QLoRA of llama3_2/1B runs on one device",
        SAME,
    ),
    no("torch-lost", (*TRAINER, "numNodes"), 2, "job `node`, container `side`, which it has", SAME),
    # what is fetched first
    no("fetching", (*DATASET, "storageUri"), "data", "must be a URI with a scheme", SCHEMA),
    no("fetching", (*MODEL, "storageUri"), "://x", "must be a URI with a scheme", SCHEMA),
    no("fetching", (*MODEL, "storageUri"), "hf://" + "x" * 2048, "at most 2048", SCHEMA),
    no("torch", (*DATASET, "storageUri"), "hf://x", f"has no job `{_DATASET}`", SAME),
    no("torch", (*MODEL, "storageUri"), "hf://x", f"has no job `{_MODEL}`", SAME),
    no("fetching-nowhere", (*DATASET, "storageUri"), "hf://x", "mounts no volume", SAME),
    no("fetching-nowhere", (*MODEL, "storageUri"), "hf://x", "mounts no volume", SAME),
    no("fetching-elsewhere", (*DATASET, "storageUri"), "hf://x", "has no container", SAME),
    no("fetching-elsewhere", (*MODEL, "storageUri"), "hf://x", "has no container", SAME),
    # patches
    no("mpi", PATCHES, [patch("node", "me")], "must be a domain and a path", SAME),
    no("mpi", PATCHES, [patch("node", "example.com/")], "must be a domain and a path", SAME),
    no("mpi", PATCHES, [patch("node", "Example.com/x")], "runtimePatches[0].manager", SAME),
    no("mpi", PATCHES, [{"trainingRuntimeSpec": {}}], "manager: Required value", SCHEMA),
    no("mpi", PATCHES, [KUEUE, KUEUE], "another entry has this manager", SCHEMA),
    no("mpi", PATCHES, [patch("x", f"a.io/{n}") for n in range(17)], "at most 16", SCHEMA),
    no("mpi", PATCHES, [patch("worker")], "no such job, but `node`, `launcher`"),
    no("mpi", PATCHES, [patch("nodes")], "did you mean `node`?"),
    no("mpi", PATCHES, [patch("node", containers=[_SIDE])], "no such container, but `node`"),
    no("mpi", PATCHES, [patch("node", initContainers=[_SIDE])], "has no such init container"),
    no(
        "mpi",
        PATCHES,
        [patch("node", containers=[{"name": "node", "env": env("A")}])],
        "the variables of `node` are the job's own",
        SAME,
    ),
    no(
        "fetching",
        PATCHES,
        [patch(_DATASET, containers=[{"name": _DATASET, "env": env("A")}])],
        "set them under spec.initializer",
        SAME,
    ),
    no(
        "mpi",
        PATCHES,
        [
            patch(
                "node",
                containers=[{"name": "node", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}],
            )
        ],
        "the pod has no volume of this name",
    ),
    # annotations of ours
    no("mpi", (*META, "annotations"), {f"{DOMAIN}/ttl-seconds": "1"}, "has no such annotation"),
    no("mpi", (*META, "annotations"), {TTL: "1h"}, "must be whole seconds"),
    no("mpi", (*META, "annotations"), {f"{DOMAIN}/clean-pod-policy": "all"}, "did you mean `All`?"),
    no("mpi", (*META, "annotations"), {f"{DOMAIN}/agent": "none"}, "full, environment, off"),
    # the rest
    no("mpi", (*SPEC, "activeDeadlineSeconds"), 0, "must be at least 1", SCHEMA),
    no("mpi", (*SPEC, "managedBy"), "me", "managedBy: Unsupported value", SCHEMA),
]

_DATA = [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]
_MOUNTED = [{"name": "node", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}]

TAKEN: list[Taken] = [
    yes("mpi"),
    yes("mpi-apart"),
    yes("mpi-intel"),
    yes("torch"),
    yes("plain"),
    yes(TUNED, TUNE),
    yes(TUNED, TUNE, ((*TRAINER, "args"), ["model.quantize_base=True", "model.use_dora=True"])),
    yes("jax"),
    yes("jax", ((*TRAINER, "env"), env("JAX_COORDINATOR_ADDRESS"))),
    yes("flux", ((*TRAINER, "numNodes"), 2)),
    yes("xgboost", ((*TRAINER, "numNodes"), 2)),
    yes("fetching"),
    yes("mpi", ((*META, "name"), "x" * 44)),
    yes("torch", ((*META, "name"), "x" * 48)),
    yes("mpi", ((*TRAINER, "numNodes"), 1)),
    yes("mpi-apart", ((*TRAINER, "numNodes"), 1)),
    yes("mpi", ((*TRAINER, "numNodes"), 100)),
    yes("mpi", ((*TRAINER, "numProcPerNode"), 8)),
    yes("mpi", (RESOURCES, {"requests": {"cpu": 2.0}, "limits": {"cpu": 2.0}})),
    yes("mpi", (RESOURCES, {"limits": {"nvidia.com/gpu": 2, "memory": "16Gi"}})),
    yes("mpi", ((*TRAINER, "env"), [{"name": "A", "value": ""}, {"name": "B"}])),
    yes("mpi", ((*TRAINER, "env"), env("OMPI_MCA_btl", "PET_NNODES"))),
    yes("torch", ((*TRAINER, "env"), env("OMPI_MCA_plm_rsh_args"))),
    yes("torch", ((*TRAINER, "command"), ["torchrun", "train.py"])),
    yes("mpi", ((*TRAINER, "command"), ["mpirun"]), ((*TRAINER, "args"), ["a"] * 128)),
    yes("fetching", ((*DATASET, "storageUri"), "hf://a/b"), ((*MODEL, "storageUri"), "")),
    yes("fetching", (DATASET, {"storageUri": "s3://x", "secretRef": {"name": "keys"}})),
    yes("mpi", (PATCHES, [KUEUE])),
    yes("mpi", (PATCHES, [patch("node"), patch("launcher", "b.io/x")])),
    yes("mpi", (PATCHES, [patch("node", volumes=_DATA, containers=_MOUNTED)])),
    yes("mpi", (PATCHES, [patch("launcher", tolerations=[{"key": "gpu", "operator": "Exists"}])])),
    yes("mpi", (PATCHES, [patch("node", schedulingGates=[{"name": "a.io/g"}])])),
    yes("mpi", ((*SPEC, "activeDeadlineSeconds"), 1)),
    yes("mpi", ((*SPEC, "managedBy"), "kueue.x-k8s.io/multikueue")),
    yes("mpi", ((*SPEC, "suspend"), True)),
    yes("mpi", ((*META, "annotations"), {TTL: "3600", f"{DOMAIN}/phase": "Succeeded"})),
]

_CONTAINERS: Path = ("template", "spec", "template", "spec", "containers")

RUNTIMES_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (runtime(((*JOBS, 1, "replicas"), 2)), "a job labelled `trainer` has one replica", SAME),
    (torch(((*JOBS, 0, "replicas"), 0)), "a job labelled `trainer` has one replica", SAME),
    (torch(((*JOBS, 0, *_CONTAINERS, 0, "name"), "x")), "needs a container `node`", SAME),
    (
        _fetching(fetcher(_DATASET, container="x"), fetcher(_MODEL)),
        f"needs a container `{_DATASET}`",
        SAME,
    ),
    (torch(((*JOBS, 0), replicated("node", _MODEL))), f"needs a container `{_MODEL}`", SAME),
    (runtime((("spec", "mlPolicy", "torch"), {})), "only one framework can be set", SCHEMA),
    (runtime(((*MPI, "mpiImplementation"), "Intel")), f"annotate the runtime with {NOTE}", SCHEMA),
    (runtime(((*META, "annotations"), {NOTE: "OpenMpi"})), "did you mean `OpenMPI`?", EXTRA),
    (runtime(((*MPI, "numProcPerNode"), 0)), "numProcPerNode: Invalid value: 0", EXTRA),
    (runtime(((*MPI, "sshAuthMountPath"), "/a:/b")), "without `:`", EXTRA),
    (plain((NODES, -1)), "numNodes: Invalid value: -1", EXTRA),
    (runtime(((*JOBS, 0), replicated("launcher"))), "another replicated job has this name", SCHEMA),
]

RUNTIMES_TAKEN: list[dict[str, Any]] = [
    *RUNTIMES.values(),
    runtime(((*META, "labels"), {"trainer.kubeflow.org/support": "deprecated"})),
    plain(
        ((*JOBS, 0, "template", "metadata", "labels"), {LABEL: "other"}),
        ((*JOBS, 0, "replicas"), 2),
    ),
]


def case_job(one: Refused | Taken) -> dict[str, Any]:
    return train_job(((*REF, "name"), one.runtime), *one.changes)
