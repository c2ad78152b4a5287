"""Annotation keys: ours and those of OpenShift AI that we read or write; and their values.

They are how a job of a public kind asks for what that kind has no field for. The controller is
lenient: it leaves out what it does not know or cannot read, because annotations change after a
job has begun. Admission, CLI and SDK are strict (`validation.own_annotations`), because there
somebody still reads the error.
"""

from __future__ import annotations

from collections.abc import Mapping

DOMAIN = "mpi-trainer.opendatahub.io"

# What users set on a job.
AGENT = f"{DOMAIN}/agent"
SSH = f"{DOMAIN}/ssh"
NETWORK_POLICY = f"{DOMAIN}/network-policy"
NETWORK_EGRESS = f"{DOMAIN}/network-egress"
"""whom a job whose network is closed may reach: see `network_isolation`"""
LOG_TAIL = f"{DOMAIN}/log-tail"
"""whether the ends of a job's logs may stand in its status, events and annotations"""
POD_FAILURE_POLICY = f"{DOMAIN}/pod-failure-policy"
"""which failures of an MPIJob end it, and which cost nothing of its budget: see `failure_policy`"""
TTL = f"{DOMAIN}/ttl-seconds-after-finished"
"""a TrainJob is deleted so long after its end; on the job or its runtime"""
SCHEDULE_TIMEOUT = f"{DOMAIN}/schedule-timeout-seconds"
"""how long a TrainJob may wait for its pods to run, 0 without end; on the job or its runtime"""
CLEAN = f"{DOMAIN}/clean-pod-policy"
"""which pods of a TrainJob go when it has ended; on the job or its runtime"""

# What users set on a runtime.
MPI_IMPLEMENTATION = f"{DOMAIN}/mpi-implementation"
LOCAL_MPI = f"{DOMAIN}/local-mpi"
"""the MPI build that runs its jobs on this machine"""

# What CLI and SDK write onto a job.
RESTARTS = f"{DOMAIN}/restarts"
"""how often a finished job was run anew under its name"""
CODE = f"{DOMAIN}/code"
"""the ConfigMap with the code that was shipped with the job"""

# What whoever submits jobs for others writes onto a job.
USER = f"{DOMAIN}/user"
"""who created it, for lists to show; anybody who may write the job can write another name"""

# What the controller writes onto a job; a restored backup may bring it along.
RECORD = f"{DOMAIN}/record"
"""the controller's durable memory of a job"""
ATTEMPTS = f"{DOMAIN}/attempts"
"""how each attempt ended, with the end of its log"""
PHASE = f"{DOMAIN}/phase"
START_TIME = f"{DOMAIN}/start-time"
COMPLETION_TIME = f"{DOMAIN}/completion-time"
CAUSE = f"{DOMAIN}/cause"
"""why a TrainJob failed, or, while it is Pending, what it waits for"""
PLACEMENT = f"{DOMAIN}/placement"
"""which ranks ran where: JSON of host name to ranks such as `0-3,8`"""

# What the conversion webhook writes onto a job.
CONVERSION = f"{DOMAIN}/conversion"
"""what an older version had and v2beta1 has no field for"""
AS_WRITTEN = "as-written"
"""its value on a job of v2beta1 that is read as an older version"""

# What the controller writes onto the objects that it makes.
ATTEMPT = f"{DOMAIN}/attempt"
"""of worker pods, of the launcher Job and of its pod: which attempt they belong to"""
WORKERS = f"{DOMAIN}/workers"
"""of the launcher pod: how many workers its hostfile names"""
AGENT_SCRIPTS = f"{DOMAIN}/agent-scripts"
"""of a launcher Job and of a JobSet: the version that their pods mount"""
RENDERED = f"{DOMAIN}/rendered"
"""of a JobSet: the digest of what it was rendered from"""
RUNTIME_SNAPSHOT = f"{DOMAIN}/runtime-snapshot"
"""of a JobSet: the digest of the snapshot of its job's runtime"""

# OpenShift AI's.
TRACKING = "trainer.opendatahub.io/progression-tracking"
"""on a TrainJob: its progress is written into an annotation too"""
TRACKING_INTERVAL = "trainer.opendatahub.io/metrics-poll-interval"
TRAINER_STATUS = "trainer.opendatahub.io/trainerStatus"
CREATORS = (USER, "opendatahub.io/username", "openshift.io/requester")
"""where the name of a job's creator may stand, ours first"""
OPENSHIFT_AI = (TRACKING, TRACKING_INTERVAL)
"""those that are read"""

RESTRICTED = "restricted"
"""a job's pods reach each other, and nobody else reaches them"""
OPEN = "none"
OFF = "off"
CHOICES: Mapping[str, tuple[str, ...]] = {
    AGENT: ("full", "environment", "off"),
    SSH: ("managed", "compatible"),
    NETWORK_POLICY: (RESTRICTED, OPEN),
    LOG_TAIL: ("on", OFF),
}
CLEAN_CHOICES = ("Running", "All")

BOUNDS = ("wait", "lost", "dead", "stuck", "start", "suspect")
"""what the agent bounds in seconds"""
LONGEST_SECONDS = 7 * 24 * 3600


def bound(name: str) -> str:
    return f"{DOMAIN}/{name}-seconds"


TRAINJOB_STATUS = (PHASE, START_TIME, COMPLETION_TIME, CAUSE, PLACEMENT)
ONE_RUN = frozenset({RECORD, ATTEMPTS, *TRAINJOB_STATUS})
"""what the controller has recorded of one run of a job; a job made anew must not have it"""
ONE_JOB = ONE_RUN | {RESTARTS, USER, CONVERSION, "kubectl.kubernetes.io/last-applied-configuration"}
"""what says something of one job, and would be taken for that of its copy"""
_BOUNDS = tuple(bound(name) for name in BOUNDS)
_OF_BOTH = (*CHOICES, *_BOUNDS, NETWORK_EGRESS, RECORD, ATTEMPTS, RESTARTS, CODE, USER)
MPIJOB_KNOWN = (*_OF_BOTH, POD_FAILURE_POLICY, CONVERSION)
TRAINJOB_KNOWN = (*_OF_BOTH, TTL, CLEAN, SCHEDULE_TIMEOUT, *TRAINJOB_STATUS)
KNOWN = (*TRAINJOB_KNOWN, POD_FAILURE_POLICY, CONVERSION)


def ours(given: Mapping[str, str]) -> dict[str, str]:
    """Those of `given` that carry our prefix, known or not."""
    return {key: value for key, value in given.items() if key.startswith(f"{DOMAIN}/")}


def seconds(text: str) -> int | None:
    """The whole number of seconds in `text`; None where it is none."""
    plain = text.strip()
    if not (plain.isascii() and plain.isdecimal()) or len(plain) > len(str(LONGEST_SECONDS)):
        return None
    return min(int(plain), LONGEST_SECONDS)


def whole_number(text: str, otherwise: int) -> int:
    """Of an annotation or a label that is a count; anybody may have written any digits there."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else otherwise
