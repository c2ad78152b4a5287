"""The annotations of ours that a job may carry, and what each may say.

They are how a job of a public kind asks for what that kind has no field for. The controller is
lenient: what it does not know, or cannot read, it leaves out, because annotations change after a
job has begun. Admission, CLI and SDK are strict (`validation.wishes`), because there a slip
still has a reader.
"""

from __future__ import annotations

from collections.abc import Mapping

DOMAIN = "mpi-trainer.opendatahub.io"

AGENT = f"{DOMAIN}/agent"
SSH = f"{DOMAIN}/ssh"
NETWORK_POLICY = f"{DOMAIN}/network-policy"
RECORD = f"{DOMAIN}/record"
"""the controller's durable memory of a job; a restored backup may bring it along"""
ATTEMPTS = f"{DOMAIN}/attempts"
"""what became of a job's attempts, with their last words; written by the controller"""
LOG_TAIL = f"{DOMAIN}/log-tail"
"""whether the ends of a job's logs may stand in its status, events and annotations"""
RESTARTS = f"{DOMAIN}/restarts"
"""how often a finished job was run anew under its name; written by CLI and SDK"""
CODE = f"{DOMAIN}/code"
"""the ConfigMap with the code that was shipped with the job; written by CLI and SDK"""

RESTRICTED = "restricted"
"""a job's pods reach each other and DNS, and nobody else reaches them"""

OFF = "off"

CHOICES: Mapping[str, tuple[str, ...]] = {
    AGENT: ("full", "environment", "off"),
    SSH: ("managed", "compatible"),
    NETWORK_POLICY: (RESTRICTED, "none"),
    LOG_TAIL: ("on", OFF),
}

BOUNDS = ("wait", "lost", "dead", "stuck", "start")
"""what the agent bounds in seconds"""
LONGEST_SECONDS = 7 * 24 * 3600


def bound(name: str) -> str:
    return f"{DOMAIN}/{name}-seconds"


KNOWN = (*CHOICES, *(bound(name) for name in BOUNDS), RECORD, ATTEMPTS, RESTARTS, CODE)

TTL = f"{DOMAIN}/ttl-seconds-after-finished"
"""a TrainJob is deleted so long after its end; on the job or its runtime"""
SCHEDULE_TIMEOUT = f"{DOMAIN}/schedule-timeout-seconds"
"""how long a TrainJob may wait for its pods to run, 0 without end; on the job or its runtime"""
CLEAN = f"{DOMAIN}/clean-pod-policy"
"""which pods of a TrainJob go when it has ended; on the job or its runtime"""
CLEAN_CHOICES = ("Running", "All")
WRITTEN = ("phase", "start-time", "completion-time", "cause", "placement")
"""what the controller writes onto a TrainJob; a restored backup may bring it along"""
LIFE = frozenset({RECORD, ATTEMPTS, *(f"{DOMAIN}/{name}" for name in WRITTEN)})
"""what the controller knows of one life of a job; a job made anew must not have it"""
TRAIN_KNOWN = (*KNOWN, TTL, CLEAN, SCHEDULE_TIMEOUT, *(f"{DOMAIN}/{name}" for name in WRITTEN))


TRACKING = "trainer.opendatahub.io/progression-tracking"
"""OpenShift AI's wish on a TrainJob: its progress is told in an annotation too"""
TRACKING_INTERVAL = "trainer.opendatahub.io/metrics-poll-interval"
TRAINER_STATUS = "trainer.opendatahub.io/trainerStatus"
OPENSHIFT_AI = (TRACKING, TRACKING_INTERVAL)
"""what is read of OpenShift AI's"""


def ours(given: Mapping[str, str]) -> dict[str, str]:
    """Those of `given` that carry our prefix, known or not."""
    return {key: value for key, value in given.items() if key.startswith(f"{DOMAIN}/")}


def seconds(text: str) -> int | None:
    """The whole number of seconds that `text` says; None where it says none."""
    plain = text.strip()
    if not (plain.isascii() and plain.isdecimal()) or len(plain) > len(str(LONGEST_SECONDS)):
        return None
    return min(int(plain), LONGEST_SECONDS)
