"""The Go trainer and our rendering, on one API server, for the same TrainJobs.

Both sides' objects have been through the server: upstream's because it made them, ours by a
dry-run create. They differ in the ways of `intended_trainjob.INTENDED`, each of which occurs, and
no others.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.controller.trainjob.desired import desired
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.trainjob.snapshots import snapshot
from tests.api.comparison import Unlike, differences
from tests.api.intended_trainjob import INTENDED, PAGE, page
from tests.api.sides import Sides, Upstream, by_key
from tests.api.test_render import create
from tests.cluster import Kubectl, eventually, shared_cluster
from tools.cluster import hosttrainer
from tools.cluster.build import build
from tools.cluster.components import JOBSET
from tools.cluster.spec import Spec

Object = dict[str, Any]

FOLDER = Path(__file__).parent / "trainjobs"
JOBS = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "runtimes")
KINDS = "configmaps,secrets,jobsets"
LIKE_UPSTREAM = (
    "torch",
    "torch-on-gpus",
    "plain",
    "initializers",
    "jax",
    "xgboost",
    "xgboost-on-gpus",
    "torchtune",
    "torchtune-on-one",
)
"""jobs in whose pods nothing of MPI is"""

pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.fixture(scope="module")
def peer_server() -> Iterator[Spec]:
    """An API server of its own: the trainer takes every TrainJob that it sees."""
    yield from shared_cluster(Spec(name="test-trainer-peer", profile="api"))


@pytest.fixture(scope="module")
def sides(peer_server: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Ours first, while the names are free; then theirs."""
    admin = Kubectl(peer_server)
    crds = hosttrainer.source() / "manifests/base/crds"
    sets = build([JOBSET])["jobset"].source / "config/components/crd/bases"
    admin("apply", "--server-side", "-k", str(crds))
    admin("apply", "--server-side", "-f", str(sets))
    for kind in ("trainjobs", "trainingruntimes", "jobsets"):
        eventually(kind, lambda kind=kind: not admin.attempt("get", kind).returncode)  # type: ignore[misc]
    name = f"same-{secrets.token_hex(4)}"
    admin("create", "namespace", name)
    inside = Kubectl(peer_server, name)
    runtimes = {one.name: one for one in submitted_runtimes(inside)}
    ours = [made for job in submitted_jobs(inside) for made in rendered(inside, job, runtimes)]
    folder = tmp_path_factory.mktemp("trainer")
    start = hosttrainer.prepared(peer_server, peer_server.kubeconfig, folder)
    trainer = Upstream(start.argv, {**os.environ, **start.env}, KINDS)
    mine = by_key(ours)
    yield Sides(trainer.made(inside, set(mine), folder / "log"), mine)
    admin("delete", "namespace", name, "--wait=false")


def submitted_runtimes(kubectl: Kubectl) -> list[Runtime]:
    documents = list(yaml.safe_load_all((FOLDER / "runtimes.yaml").read_text()))
    made = []
    for document in create(kubectl, documents):
        found = load.runtime(document)
        assert isinstance(found.value, Runtime)
        assert not found.errors, found.errors
        made.append(found.value)
    return made


def submitted_jobs(kubectl: Kubectl) -> list[TrainJob]:
    """The jobs as the server returns them."""
    made = []
    for document in create(
        kubectl, [yaml.safe_load((FOLDER / f"{name}.yaml").read_text()) for name in JOBS]
    ):
        found = load.train_job(document)
        assert isinstance(found.value, TrainJob)
        assert not found.errors, found.errors
        made.append(found.value)
    return made


def rendered(kubectl: Kubectl, job: TrainJob, runtimes: dict[str, Runtime]) -> list[Object]:
    runtime = runtimes[job.spec.runtime_ref.name]
    wanted = desired(job, runtime, Facts())
    made = [wanted.children.job_set, snapshot(job, runtime)]
    keys, texts = wanted.keys, wanted.children.config_map
    if keys is not None and texts is not None:
        made += [texts, keys.made(dict.fromkeys(keys.parts, "…"))]
    return create(kubectl, made, "--dry-run=server")


def unlike(sides: Sides) -> list[tuple[str, Unlike]]:
    """All differences, each with the job that shows it."""
    found = []
    for key, made in sides.ours.items():
        (owner,) = made["metadata"]["ownerReferences"]
        theirs = sides.theirs[key]
        if key[1].endswith("-runtime-snapshot"):
            theirs, made = _parsed(theirs), _parsed(made)
        pair = _without_empty(theirs), _without_empty(made)
        found += [(owner["name"], one) for one in differences(*pair)]
    return found


def _without_empty(value: Any) -> Any:
    """Go writes a structure without content as `{}`; it says nothing."""
    if isinstance(value, dict):
        kept = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ({}, None)}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value


def _parsed(kept: Object) -> Object:
    """A snapshot by its content, in whichever way it is written."""
    runtime = yaml.safe_load(kept["data"]["runtime"])
    metadata = {k: runtime["metadata"].get(k) for k in ("name", "namespace", "labels")}
    return {**kept, "data": {**runtime, "metadata": metadata}}


def test_both_sides_make_the_same_objects(sides: Sides) -> None:
    """API-2: the same kinds and names; upstream makes nothing that we do not."""
    owned = {
        key
        for key, one in sides.theirs.items()
        if any(o["kind"] == "TrainJob" for o in one["metadata"].get("ownerReferences", ()))
    }
    assert owned == sides.ours.keys()
    assert len(JOBS) >= 12


def test_replicated_jobs_and_their_counts_are_upstream_s(sides: Sides) -> None:
    """Kueue computes them with upstream's code."""

    def counts(made: Object) -> list[tuple[str, int, int, int]]:
        return [
            (
                job["name"],
                job.get("replicas", 1),
                job["template"]["spec"]["parallelism"],
                job["template"]["spec"]["completions"],
            )
            for job in made["spec"]["replicatedJobs"]
        ]

    sets = [key for key in sides.ours if key[0] == "JobSet"]
    assert {key: counts(sides.ours[key]) for key in sets} == {
        key: counts(sides.theirs[key]) for key in sets
    }


def test_every_difference_is_intended(sides: Sides) -> None:
    """API-2, MIG-3."""
    places = [place for one in INTENDED for place in one.places]
    strays = {f"{job}: {one}" for job, one in unlike(sides) if not any(p.fits(one) for p in places)}
    assert not strays, "\n".join(sorted(strays))


def test_jobs_without_mpi_get_a_label_and_keep_failed_pods_and_nothing_else(sides: Sides) -> None:
    inside = {
        one.path.rpartition("spec.template.")[2]
        for job, one in unlike(sides)
        if job in LIKE_UPSTREAM and ".spec.template." in one.path
    }
    label = "metadata.labels.mpi-trainer.opendatahub.io/trainjob"
    assert inside == {label, "spec.restartPolicy"}


def test_every_intended_difference_occurs(sides: Sides) -> None:
    """A line that nothing needs would hide the day when something does."""
    seen = [one for _, one in unlike(sides)]
    idle = [
        f"{one.what}: {place}"
        for one in INTENDED
        for place in one.places
        if not any(place.fits(this) for this in seen)
    ]
    assert not idle, "\n".join(idle)


def test_the_page_about_compatibility_is_this_list() -> None:
    """DOC-1."""
    assert PAGE.read_text() == page(), "run `python -m tests.api.intended_trainjob`"
