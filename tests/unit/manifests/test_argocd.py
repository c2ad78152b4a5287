"""Argo CD's health of our jobs: the script of `manifests/argocd`, run by an interpreter of Lua.

Argo CD's own interpreter speaks Lua 5.1, as Debian's `lua5.1` does. Argo CD itself is not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import trainjob
from mpi_trainer.kube.resources import MPIJOBS, TRAINJOBS

FILE: Final = Path(__file__).parents[3] / "manifests/argocd/health.yaml"
KEY: Final = "resource.customizations.health."
SCRIPTS: Final[dict[str, str]] = yaml.safe_load(FILE.read_text())["data"]
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
HARNESS: Final = """obj = {}
local health = (function()
{}
end)()
print(health.status .. "|" .. health.message)
"""


def lua() -> str:
    found = shutil.which("lua5.1")
    if found is None:
        reason = "there is no lua5.1 here: run `make setup` as root"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return str(found)


def literal(value: Any) -> str:
    """A value of JSON as Lua writes it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"[{literal(k)}]={literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(literal, value)) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else msgspec.json.encode(value).decode()


def health(kind: str, job: dict[str, Any]) -> tuple[str, str]:
    program = HARNESS.format(literal(job), SCRIPTS[f"{KEY}{kind}"])
    ended = subprocess.run([lua(), "-"], input=program, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    status, _, message = ended.stdout.rstrip("\n").partition("|")
    return status, message


def job_with(*held: str, not_held: tuple[str, ...] = ()) -> dict[str, Any]:
    """As our own code writes conditions, one after the other."""
    conditions: c.Conditions = ()
    for status, kinds in ((c.FALSE, not_held), (c.TRUE, held)):
        for kind in kinds:
            condition = c.Condition(kind, status, message=f"it is {kind}")
            conditions = c.with_condition(conditions, condition, NOW)
    return {"status": {"conditions": msgspec.to_builtins(conditions)}}


MPIJOB: Final = f"{MPIJOBS.group}_{MPIJOBS.kind}"
TRAINJOB: Final = f"{TRAINJOBS.group}_{TRAINJOBS.kind}"


def test_both_kinds_have_a_script_under_the_name_that_argo_cd_looks_for() -> None:
    assert {*SCRIPTS} == {f"{KEY}{MPIJOB}", f"{KEY}{TRAINJOB}"}


@pytest.mark.parametrize(
    ("held", "not_held", "expected"),
    [
        ((c.CREATED,), (), ("Progressing", "it is Created")),
        ((c.CREATED, c.RUNNING), (), ("Progressing", "it is Running")),
        ((c.CREATED, c.RESTARTING), (c.RUNNING,), ("Progressing", "it is Restarting")),
        ((c.CREATED, c.SUSPENDED), (c.RUNNING,), ("Suspended", "it is Suspended")),
        ((c.CREATED, c.RUNNING), (c.SUSPENDED,), ("Progressing", "it is Running")),
        ((c.CREATED, c.SUCCEEDED), (c.RUNNING,), ("Healthy", "it is Succeeded")),
        ((c.CREATED, c.FAILED), (c.RUNNING,), ("Degraded", "it is Failed")),
        ((c.CREATED, c.FAILED), (c.SUSPENDED, c.RUNNING), ("Degraded", "it is Failed")),
    ],
)
def test_health_of_an_mpijob_is_that_of_its_state(
    held: tuple[str, ...], not_held: tuple[str, ...], expected: tuple[str, str]
) -> None:
    """OBS-5: a sync waits while a job runs, and fails with it."""
    assert health(MPIJOB, job_with(*held, not_held=not_held)) == expected


@pytest.mark.parametrize(
    ("held", "not_held", "expected"),
    [
        ((), (trainjob.SUSPENDED,), "Progressing"),
        ((trainjob.SUSPENDED,), (), "Suspended"),
        ((trainjob.COMPLETE,), (trainjob.SUSPENDED,), "Healthy"),
        ((trainjob.FAILED,), (trainjob.SUSPENDED,), "Degraded"),
    ],
)
def test_health_of_a_trainjob_is_that_of_its_conditions(
    held: tuple[str, ...], not_held: tuple[str, ...], expected: str
) -> None:
    """OBS-5."""
    assert health(TRAINJOB, job_with(*held, not_held=not_held))[0] == expected


@pytest.mark.parametrize("kind", [MPIJOB, TRAINJOB])
@pytest.mark.parametrize("job", [{}, {"status": {}}, {"status": {"conditions": []}}])
def test_a_job_that_nobody_has_looked_at_is_waited_for(kind: str, job: dict[str, Any]) -> None:
    """OBS-5: not Healthy, or a sync would go on before the job began."""
    assert health(kind, job)[0] == "Progressing"


def test_a_condition_without_a_message_is_no_error() -> None:
    job = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    assert health(MPIJOB, job) == ("Degraded", "")
