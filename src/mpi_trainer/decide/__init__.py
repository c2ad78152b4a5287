"""When: start, wait, try again, clean up, delete. Functions of (job, seen, now). Pure."""

from mpi_trainer.decide.mpijob.decide import decide, ours, refused
from mpi_trainer.decide.mpijob.decision import Decision, Event
from mpi_trainer.decide.observed import End, Failure, PodSeen, RankSeen, Record, Seen

__all__ = [
    "Decision",
    "End",
    "Event",
    "Failure",
    "PodSeen",
    "RankSeen",
    "Record",
    "Seen",
    "decide",
    "ours",
    "refused",
]
