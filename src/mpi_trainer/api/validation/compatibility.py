"""Whether a TrainJob fits its runtime: what the two are together must be able to start.

Upstream admits much of this, and then nothing starts and no status says why: names that become too
long, pods without an image, MPI without a launcher or with several, changes to containers that are
not there. Every error is at the field of the job that can mend it, or at `runtimeRef`.
Danger: both must have passed their own rules before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mpi_trainer.api import names
from mpi_trainer.api.effective import torchtune
from mpi_trainer.api.effective.combine import (
    DATASET,
    LAUNCHER,
    MODEL,
    NODE,
    TRAINER,
    Effective,
    ReplicatedJob,
    devices,
    effective,
)
from mpi_trainer.api.effective.torchtune import Devices
from mpi_trainer.api.errors import (
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    SUSPICIOUS,
    TOO_LONG,
    FieldError,
    Path,
)
from mpi_trainer.api.kinds.labels import LABEL_SUPPORT
from mpi_trainer.api.kinds.pods import PodSpec
from mpi_trainer.api.kinds.runtime import FLUX, MPI, TORCH, XGBOOST, Runtime
from mpi_trainer.api.kinds.trainjob import Source, TrainJob
from mpi_trainer.api.validation import (
    containers,
    network,
    resources,
    rules,
    runtime_patches,
    security,
    volumes,
    worker_limits,
)
from mpi_trainer.api.validation import runtime as runtimes
from mpi_trainer.api.validation.volumes import CONFIG_FOLDER, AddedVolumes

REF: Path = ("spec", "runtimeRef")
TRAINER_FIELDS: Path = ("spec", "trainer")
_RUNTIME_NAME: Path = (*REF, "name")
SSH_VOLUME = "mpi-ssh-auth"
HOSTFILE_VOLUME = "mpi-hostfile"
INITIALIZER_VOLUME = "initializer"
FLUX_INSTALLER = "flux-installer"

RESERVED = {
    MPI: (
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
        "PRTE_MCA_prte_default_hostfile",
        "I_MPI_HYDRA_HOST_FILE",
        "HYDRA_HOST_FILE",
    ),
    TORCH: (
        "PET_NNODES",
        "PET_NPROC_PER_NODE",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
    ),
    XGBOOST: ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"),
}
_POD_SUFFIX = "-xxxxx"
_QUEUE = "scheduling.volcano.sh/queue-name"


def errors(job: TrainJob, runtime: Runtime) -> tuple[FieldError, ...]:
    unsound = [_at_runtime_ref(error) for error in runtimes.structure(runtime)]
    if unsound:
        return tuple(unsound)
    together = effective(job, runtime)
    return (
        *worker_limits.trainjob_errors(job, together.pods, worker_limits.DEFAULT),
        *_sources(job, together),
        *runtime_patches.compatibility_errors(job.spec.runtime_patches, runtime.jobset),
        *_reserved(job, together),
        *_policy(job, runtime, together),
        *_names(job, together),
        *_pods(runtime, together),
        *network.trainjob_errors(job, together),
    )


def warnings(job: TrainJob, runtime: Runtime) -> Iterator[FieldError]:
    yield from network.trainjob_warnings(job, effective(job, runtime))
    if runtime.metadata.labels.get(LABEL_SUPPORT) == "deprecated":
        rule = "the runtime is deprecated and will be removed"
        yield FieldError((*REF, "name"), SUSPICIOUS, runtime.name, rule, "choose another")
    if runtime.policy == MPI and runtime.mpi.run_launcher_as_node and job.trainer.num_nodes == 1:
        rule = (
            "two pods run ranks all the same, the launcher and one worker, as in Kubeflow Trainer"
        )
        remedy = "choose a runtime without runLauncherAsNode for a single node"
        yield FieldError((*TRAINER_FIELDS, "numNodes"), SUSPICIOUS, 1, rule, remedy)


def in_pods(job: str, error: FieldError) -> FieldError:
    """An error of the pods of one replicated job, as an error of the TrainJob."""
    where = f", {error.field}" if error.field else ""
    rule = f"in the pods of `{job}`{where}: {error.rule}"
    return replace(error, path=(*REF, "name"), rule=rule)


def _at_runtime_ref(error: FieldError) -> FieldError:
    """An error of the runtime, as an error of the job."""
    rule = f"the runtime cannot be used: {error.field}: {error.rule}"
    return replace(error, path=(*REF, "name"), rule=rule)


def _sources(job: TrainJob, together: Effective) -> rules.Errors:
    wanted = job.spec.initializer
    if wanted is None:
        return
    for field, source, name in (
        ("dataset", wanted.dataset, DATASET),
        ("model", wanted.model, MODEL),
    ):
        if source is not None:
            yield from _source(("spec", "initializer", field), source, name, together)


def _source(path: Path, source: Source, name: str, together: Effective) -> rules.Errors:
    role = next((job for job in together.jobs if job.name == name), None)
    container = None
    if role is not None:
        spec = role.template.view.spec
        every = (*spec.init_containers, *spec.containers)
        container = next((one for one in every if one.name == name), None)
    remedy = "remove it, or choose a runtime that fetches it"
    if role is None:
        rule = f"the runtime has no job `{name}` to fetch it"
    elif container is None:
        rule = f"the runtime's job `{name}` has no container `{name}` to fetch it"
    elif all(mount.name != INITIALIZER_VOLUME for mount in container.volume_mounts):
        rule = (
            f"the runtime's container `{name}` mounts no volume `{INITIALIZER_VOLUME}` to keep it"
        )
    else:
        return
    yield FieldError(path, INVALID, source.storage_uri or "", rule, remedy)


def _reserved(job: TrainJob, together: Effective) -> rules.Errors:
    taken = RESERVED.get(together.policy, ())
    for n, variable in enumerate(job.trainer.env):
        if variable.get("name") in taken:
            path = (*TRAINER_FIELDS, "env", n, "name")
            rule = "the controller sets this variable itself"
            yield FieldError(path, FORBIDDEN, variable["name"], rule, "remove it")


def _policy(job: TrainJob, runtime: Runtime, together: Effective) -> rules.Errors:
    if together.policy == MPI:
        for error in runtimes.mpi_roles(runtime, (*REF, "name")):
            yield replace(error, rule=f"the runtime cannot be used: {error.rule}")
    if together.policy == FLUX:
        yield from _brokers(runtime, together)
    if together.policy == TORCH:
        yield from _torchtune(job, together)
    yield from _injection(runtime)
    policy = runtime.spec.pod_group_policy
    if policy and policy.volcano and together.annotations.get(_QUEUE) == "":
        rule = f"the runtime's annotation {_QUEUE} names no queue"
        yield FieldError((*REF, "name"), INVALID, runtime.name, rule, "set it, or remove it there")


def _brokers(runtime: Runtime, together: Effective) -> rules.Errors:
    """Flux is in the pods of one job, whose name and hosts it counts on."""
    nodes = next((one for one in together.jobs if one.name == NODE), None)
    path, remedy = (*REF, "name"), "fix the runtime, or choose another"
    if nodes is None or nodes.role != TRAINER:
        rule = f"its policy is flux, and it has no job `{NODE}` that is labelled as the trainer"
        yield FieldError(path, INVALID, runtime.name, rule, remedy)
    elif any(one.name == FLUX_INSTALLER for one in nodes.template.view.spec.init_containers):
        rule = f"the controller adds an init container `{FLUX_INSTALLER}`, and it has one already"
        yield FieldError(path, INVALID, runtime.name, rule, remedy)


def _injection(runtime: Runtime) -> rules.Errors:
    torch = runtime.spec.ml_policy.torch if runtime.spec.ml_policy else None
    jobs = {job.name: job for job in runtime.jobset.replicated_jobs}
    for target in torch.env_injection.targets if torch and torch.env_injection else ():
        there = (
            _containers(jobs[target.job_name].template.spec.template.view.spec)
            if target.job_name in jobs
            else ()
        )
        for name in target.container_names:
            if name not in there:
                what = f"job `{target.job_name}`, container `{name}`"
                rule = f"its torch.envInjection names {what}, which it has not"
                remedy = "fix the runtime, or choose another"
                yield FieldError((*REF, "name"), INVALID, runtime.name, rule, remedy)


def _containers(spec: PodSpec) -> tuple[str, ...]:
    return tuple(one.name for one in (*spec.init_containers, *spec.containers))


def _names(job: TrainJob, together: Effective) -> rules.Errors:
    """A pod is called after the job, its role and its number, and Kubernetes adds six letters."""
    meta = job.metadata
    field = "name" if meta.name else "generateName"
    shown = meta.name or meta.generate_name or ""
    name = meta.name or f"{shown}{rules.GENERATED}"
    suffixes = [
        f"-{one.name}-{max(one.replicas, 1) - 1}-{max(one.count, 1) - 1}{_POD_SUFFIX}"
        for one in together.jobs
    ]
    longest = max(suffixes, key=len, default="")
    size = len(name) + len(longest)
    if size > names.LABEL_LENGTH >= len(name):
        rule = f"its pod `…{longest}` would need {size} characters, and {names.LABEL_LENGTH} are"
        fits = names.LABEL_LENGTH - len(longest) - (len(name) - len(shown))
        remedy = f"use at most {fits} characters"
        yield FieldError(("metadata", field), TOO_LONG, shown, f"{rule} allowed", remedy)


def _pods(runtime: Runtime, together: Effective) -> rules.Errors:
    """What the API server would refuse of the pods later."""
    claims = runtime.jobset.claims
    for job in together.jobs:
        spec = job.template.view.spec
        for error in (
            *containers.errors((), spec),
            *volumes.errors((), spec, _added_volumes(together, job, claims)),
            *security.errors((), spec),
            *resources.overhead((), spec),
        ):
            yield in_pods(job.name, error)


def _added_volumes(together: Effective, job: ReplicatedJob, claims: Sequence[str]) -> AddedVolumes:
    folders = dict.fromkeys(claims, "")
    if together.policy == MPI and job.role in (LAUNCHER, NODE):
        folders[SSH_VOLUME] = together.ssh_auth_mount_path
    if together.policy == MPI and job.role == LAUNCHER:
        folders[HOSTFILE_VOLUME] = CONFIG_FOLDER
    return AddedVolumes(folders)


def _torchtune(job: TrainJob, together: Effective) -> rules.Errors:
    """What torchtune cannot do, as upstream refuses it."""
    if not torchtune.is_used(job):
        return
    name = job.spec.runtime_ref.name
    model = torchtune.model(name)
    if model not in torchtune.MODELS:
        rule = "torchtune finds its model by the runtime's name, and this one says none that it has"
        remedy = "choose a torchtune runtime, or name a recipe and its settings after `tune run`"
        yield FieldError(_RUNTIME_NAME, NOT_SUPPORTED, name, rule, remedy)
    nodes = job.trainer.num_nodes or 1
    if nodes > 1 and model != torchtune.SEVERAL_NODES:
        rule = f"{model or 'this model'} is trained on one node"
        yield FieldError((*TRAINER_FIELDS, "numNodes"), INVALID, nodes, rule, "set it to 1")
    elif nodes > 1 and torchtune.has_adapters(job):
        rule = "torchtune has no LoRA on several nodes"
        remedy = "set it to 1, or remove the LoRA settings"
        yield FieldError((*TRAINER_FIELDS, "numNodes"), INVALID, nodes, rule, remedy)
    if torchtune.is_quantized(job) and nodes == 1:
        yield from _quantized(name, model, devices(together))
    for n, argument in enumerate(job.trainer.args or ()):
        key = argument.split("=", 1)[0]
        if key in torchtune.FIXED:
            path = (*TRAINER_FIELDS, "args", n)
            yield FieldError(path, FORBIDDEN, key, "the runtime sets this", "remove it")


def _quantized(name: str, model: str, found: Devices) -> rules.Errors:
    if model == torchtune.QWEN:
        rule = f"{model} has no recipe for QLoRA"
        yield FieldError(_RUNTIME_NAME, INVALID, name, rule, "remove model.quantize_base")
    if model in torchtune.SMALL and not found.one:
        rule = f"QLoRA of {model} runs on one device"
        remedy = "set it to 1, or ask for one GPU"
        yield FieldError((*TRAINER_FIELDS, "numProcPerNode"), INVALID, "", rule, remedy)
