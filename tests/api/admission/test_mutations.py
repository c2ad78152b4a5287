"""Jobs spoilt by chance, before the real client: it answers, and it is right (CTL-4, SC-006).

A few in every run; by hand `MPI_TRAINER_MUTATIONS=10000` for all that were asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob.children import Facts, children
from tests.api.admin import JOBS, Admin, Refusal
from tests.api.admission.mutations import Object, mutated
from tests.api.admission.serving import ACCOUNT, Server
from tests.cluster import Kubectl, eventually

COUNT = int(os.environ.get("MPI_TRAINER_MUTATIONS", "24"))
AT_ONCE = 4
SAMPLE = min(COUNT, 300)
DRY_RUN = "?dryRun=All"
PATHS = {"Pod": "api/v1/pods", "Job": "apis/batch/v1/jobs", "Service": "api/v1/services"}


def few(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=COUNT < 1000,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


# What the API server takes and we do not, on purpose: such a job could only hang, loop or fail.
STRICTER = re.compile(
    "|".join(
        (
            "the job adds a volume of this name itself",
            "the job puts files of its own there",
            "the volume `(ssh-auth|mpi-job-config)` is mounted there already",
            "user 0 is root, and runAsNonRoot is set",
            "MPI jobs run on Linux nodes",
            "must be an absolute path",
            "must be a string, not null",  # taken there as the empty string, never meant so
        )
    )
)


@pytest.fixture
def client(webhook: Server, namespace: Kubectl) -> Iterator[Admin]:
    admin = Admin(namespace.spec, namespace.namespace)
    eventually("account", lambda: admin.get("api/v1/serviceaccounts/default") is not None)
    yield admin
    admin.close()


@pytest.fixture
def maker(client: Admin) -> Iterator[Admin]:
    """The controller's own name, by which alone a job's pods can be made."""
    admin = Admin(client.spec, client.namespace, ACCOUNT)
    yield admin
    admin.close()


def tried(admin: Admin, path: str, obj: Object) -> Object | Refusal:
    """The object as it would be stored, or why not. A fault of ours fails the test."""
    try:
        return admin.create(f"{path}{DRY_RUN}", obj)
    except Refusal as refusal:
        assert "failed calling webhook" not in str(refusal), (refusal, obj)
        assert refusal.code < 500, (refusal, obj)
        return refusal


def refused_children(maker: Admin, stored: Object) -> list[str]:
    """Why the API server refuses objects of a job, as the controller makes them."""
    found = load.job(stored)
    job = found.value
    assert isinstance(job, MPIJob)
    assert not found.errors, (found.errors, stored)
    made = children(layout(job), job, Facts())
    some = (made.service, *made.workers[:1], made.launcher_job)
    answers = [tried(maker, PATHS[obj["kind"]], obj) for obj in some]
    return [str(answer) for answer in answers if isinstance(answer, Refusal)]


@pytest.mark.timeout(3600, func_only=True)
def test_a_job_that_is_taken_gets_its_pods(client: Admin, maker: Admin) -> None:
    taken: list[bool] = []

    def judged(data: Object) -> bool:
        stored = tried(client, f"{JOBS}/mpijobs", data)
        if isinstance(stored, Refusal):
            return False
        refused = refused_children(maker, stored)
        # A busy API server's silence admits a job unasked: it is asked again.
        if refused:
            again = tried(client, f"{JOBS}/mpijobs", data)
            assert isinstance(again, Refusal), (refused, data)
        return True

    with ThreadPoolExecutor(AT_ONCE) as threads:

        @few(COUNT // AT_ONCE)
        @given(st.lists(mutated(), min_size=AT_ONCE, max_size=AT_ONCE))
        def all_judged(several: list[Object]) -> None:
            taken.extend(threads.map(judged, several))

        all_judged()
    print(f"{len(taken)} jobs, {sum(taken)} of them taken")
    assert sum(taken) > len(taken) / 10


@pytest.mark.timeout(1200, func_only=True)
def test_a_template_that_is_refused_makes_no_pods(client: Admin) -> None:
    """But for what is refused on purpose, each with its words in `STRICTER`."""

    @few(SAMPLE)
    @given(mutated())
    def judged(data: Object) -> None:
        errors = load.job(data).errors
        assume(errors and all(e.path[3:4] == ("template",) for e in errors))
        specs = data["spec"]["mpiReplicaSpecs"]
        pods = [_bare(specs[role].get("template")) for role in {e.path[2] for e in errors}]
        unjust = [str(error) for error in errors if not STRICTER.search(str(error))]
        answers = (tried(client, PATHS["Pod"], pod) for pod in pods)
        assert not unjust or any(isinstance(a, Refusal) for a in answers), (unjust, data)

    judged()


def _bare(template: Any) -> Object:
    """A pod of the template as anybody could make it; what cannot be read stays as it is."""
    content = template if isinstance(template, dict) else {"spec": template}
    given, spec = content.get("metadata") or {}, content.get("spec")
    if isinstance(given, dict):
        kept = {key: given[key] for key in ("labels", "annotations") if key in given}
        given = {**kept, "generateName": "bare-"}
    if isinstance(spec, dict):
        spec = {**spec, "restartPolicy": "Never"}
    return {"metadata": given, "spec": spec}
