"""The name under which the program was called, for hints that can be copied as they stand."""

from __future__ import annotations

import sys

MPIJOB, TRAINJOB = "mpijob", "trainjob"
GROUPS = {
    MPIJOB: "kubeflow.org",
    TRAINJOB: "trainer.kubeflow.org",
    "pytorchjob": "kubeflow.org",
    "tfjob": "kubeflow.org",
}
_PLUGINS = {"kubectl-odh": "kubectl odh", "oc-odh": "oc odh", "oai-cli": "oai-cli"}


def name() -> str:
    return _PLUGINS.get(sys.argv[0].rpartition("/")[2], "odh")


def kind() -> str:
    """The kind of jobs that the command line is about."""
    return typed_kind() or MPIJOB


def typed_kind() -> str:
    """The kind that the command line names; empty where it names none, as `odh run` does."""
    said = (word.lower().removesuffix("s") for word in sys.argv[1:])
    return next((word for word in said if word in GROUPS), "")


def call(verb: str, job: str = "", namespace: str = "default") -> str:
    """A command line about a job, to be shown to the user."""
    words = [name(), kind(), verb, *([job] if job else [])]
    return " ".join([*words, *(["-n", namespace] if namespace != "default" else [])])
