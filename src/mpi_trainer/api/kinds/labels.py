"""Label keys: ours, upstream's, JobSet's and Kueue's; and which of them only controllers set.

By labels and annotations with a reserved prefix, pods are found, counted and reached. In a user's
template they would make its pods look like those of another job. So admission refuses them, and
rendering leaves them out, whatever was stored before the rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mpi_trainer.api.errors import FORBIDDEN, FieldError, Path
from mpi_trainer.api.kinds.annotations import DOMAIN

TRAINING_PREFIX = "training.kubeflow.org/"
LABEL_OPERATOR = f"{TRAINING_PREFIX}operator-name"
LABEL_JOB = f"{TRAINING_PREFIX}job-name"
LABEL_ROLE = f"{TRAINING_PREFIX}job-role"
LABEL_INDEX = f"{TRAINING_PREFIX}replica-index"
LABEL_REPLICA_TYPE = f"{TRAINING_PREFIX}replica-type"
"""the role of a pod in every job of Kubeflow's training operator; MPIJobs have both"""
MPI_OPERATOR = "mpi-operator"
"""value of LABEL_OPERATOR, by which the pods and Jobs of MPIJobs are watched"""
MPIJOB_POD_LABELS = (LABEL_OPERATOR, LABEL_JOB, LABEL_ROLE, LABEL_REPLICA_TYPE, LABEL_INDEX)
"""the controller sets these, whatever a template says"""

LABEL_TRAINJOB = f"{DOMAIN}/trainjob"
"""on every pod of a TrainJob: by it alone the controller watches them"""
LABEL_AGENT_SCRIPTS = f"{DOMAIN}/agent"
"""on the ConfigMaps with the agent's scripts: the version of the scripts"""

LABEL_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
"""on a runtime's Job template: which part of a TrainJob it runs"""
LABEL_SUPPORT = "trainer.kubeflow.org/support"
"""on a runtime: whether it is deprecated"""
LABEL_VALIDATION = "trainer.kubeflow.org/webhook-validation"
"""on a runtime: `disabled` admits it without validation"""

LABEL_JOBSET = "jobset.sigs.k8s.io/jobset-name"
LABEL_JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
LABEL_REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
LABEL_RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
LABEL_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

LABEL_QUEUE = "kueue.x-k8s.io/queue-name"
"""on a job that a queue holds: only Kueue suspends and resumes it"""
LABEL_WORKLOAD_JOB_UID = "kueue.x-k8s.io/job-uid"
"""on a Workload: whose it is"""

RESERVED_PREFIXES = (
    f"{DOMAIN}/",
    TRAINING_PREFIX,
    "jobset.sigs.k8s.io/",
    "batch.kubernetes.io/",
)

_RULE = "only controllers set what begins with"


def without_reserved(given: Mapping[str, str], *kept: str) -> dict[str, str]:
    """Those of `given` that users may set, and those that are to be `kept` all the same."""
    return {k: v for k, v in given.items() if k in kept or not k.startswith(RESERVED_PREFIXES)}


def reserved_errors(
    path: Path, given: Mapping[str, str], allowed: Collection[str] = ()
) -> Iterator[FieldError]:
    """`allowed` are set on every pod, whatever its template says: as with upstream no error."""
    for key, value in given.items():
        if key.startswith(RESERVED_PREFIXES) and key not in allowed:
            rule = f"{_RULE} {key.partition('/')[0]}/"
            yield FieldError((*path, key), FORBIDDEN, value, rule, "remove it")


def is_reserved_error(error: FieldError) -> bool:
    """No reason to stop a job that was admitted before the rule."""
    return error.problem == FORBIDDEN and error.rule.startswith(_RULE)


def restart_attempt(labels: Mapping[str, str]) -> int:
    """How often JobSet had started the job anew when it made this pod."""
    text = labels.get(LABEL_RESTART_ATTEMPT, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0
