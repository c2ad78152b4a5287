"""When: start, wait, try again, clean up, delete. Functions of (job, seen, now). Pure."""

from mpi_trainer.decide.mpijob.decide import decide, ours, refused
from mpi_trainer.decide.mpijob.decision import DecidedEvent, Decision
from mpi_trainer.decide.observed import End, Failure, Observed, ObservedPod, ObservedRank, Record

__all__ = [
    "DecidedEvent",
    "Decision",
    "End",
    "Failure",
    "Observed",
    "ObservedPod",
    "ObservedRank",
    "Record",
    "decide",
    "ours",
    "refused",
]
