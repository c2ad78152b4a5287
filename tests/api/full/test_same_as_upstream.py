"""The Go mpi-operator and our rendering, on one API server, for the same jobs.

Both sides' objects have been through the server: upstream's because it made them, ours by a
dry-run create. They differ in the ways of `intended.INTENDED`, each of which occurs, and no others.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from mpi_trainer.api.kinds.annotations import bound
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob.children import Facts, children, secret
from tests.api.comparison import Unlike, differences
from tests.api.intended import ALWAYS, INTENDED, PAGE, page
from tests.api.sides import Sides, Upstream, by_key
from tests.api.test_render import create
from tests.cluster import Kubectl, eventually, shared_cluster
from tests.golden.render.objects import CASES
from tools.cluster.build import build
from tools.cluster.components import MPI_OPERATOR
from tools.cluster.ports import is_free
from tools.cluster.report import environment
from tools.cluster.spec import Spec

Object = dict[str, Any]

# One process serves one domain, and the objects' names are the same with and without it.
COMPARED = [case for case in CASES if not (case / "cluster-domain").exists()]
KINDS = "services,configmaps,secrets,pods,jobs"
HEALTH_PORT = 8080
AGENT_ANNOTATION = "mpi-trainer.opendatahub.io/agent"


@pytest.fixture(scope="module")
def peer_server() -> Iterator[Spec]:
    """An API server of its own: the operator takes every MPIJob that it sees."""
    yield from shared_cluster(Spec(name="test-peer", profile="api"))


@pytest.fixture(scope="module")
def sides(peer_server: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Ours first, while the names are free; then theirs."""
    built = build([MPI_OPERATOR])[MPI_OPERATOR.name]
    admin = Kubectl(peer_server)
    crd = built.source / "manifests/base/kubeflow.org_mpijobs.yaml"
    admin("apply", "--server-side", "-f", str(crd))
    eventually("its list", lambda: not admin.attempt("get", "mpijobs").returncode)
    name = f"same-{secrets.token_hex(4)}"
    admin("create", "namespace", name)
    inside = Kubectl(peer_server, name)
    inside("create", "serviceaccount", "reporter")
    eventually("default account", lambda: not inside.attempt("get", "sa", "default").returncode)
    ours = [made for job in submitted(inside) for made in rendered(inside, job)]
    operator = Upstream(
        (
            str(built.bin / "mpi-operator"),
            f"--namespace={name}",
            f"--lock-namespace={name}",
            "--kube-api-qps=100",
            "--kube-api-burst=100",
        ),
        environment(peer_server),
        KINDS,
    )
    mine = by_key(ours)
    eventually("port for upstream's health check", lambda: is_free(HEALTH_PORT, ""), seconds=100)
    yield Sides(operator.made(inside, set(mine), tmp_path_factory.mktemp("operator") / "log"), mine)
    admin("delete", "namespace", name, "--wait=false")


def submitted(kubectl: Kubectl) -> list[MPIJob]:
    """The jobs as the server returns them, each once more with the agent turned off."""
    manifests = []
    for case in COMPARED:
        manifest = yaml.safe_load((case / "in.yaml").read_text())
        name = manifest["metadata"]["name"]
        plain = {"annotations": {AGENT_ANNOTATION: "off", bound("wait"): "0"}}
        manifests.append({**manifest, "metadata": {"name": name}})
        manifests.append({**manifest, "metadata": {"name": f"{name}-off", **plain}})
    jobs = []
    for made in create(kubectl, manifests):
        found = load.job(made)
        assert isinstance(found.value, MPIJob)
        assert not found.errors
        jobs.append(found.value)
    return jobs


def rendered(kubectl: Kubectl, job: MPIJob) -> list[Object]:
    plan = layout(job)
    keys = secret(plan, job, {key.part: "…" for pod in plan.pods for key in pod.keys})
    return create(kubectl, [*children(plan, job, Facts()), keys], "--dry-run=server")


def unlike(sides: Sides, agent: bool) -> list[Unlike]:
    """All differences of the jobs with the agent, or of those without."""
    return [
        one
        for key, made in sides.ours.items()
        if agent != _job_of(made).endswith("-off")
        for one in differences(sides.theirs[key], made)
    ]


def _job_of(made: Object) -> str:
    (owner,) = made["metadata"]["ownerReferences"]
    name: str = owner["name"]
    return name


def test_both_sides_make_the_same_objects(sides: Sides) -> None:
    """CTL-1: the same kinds and names; upstream makes nothing that we do not."""
    owned = {
        key
        for key, one in sides.theirs.items()
        if any(o["kind"] == "MPIJob" for o in one["metadata"].get("ownerReferences", ()))
    }
    assert owned == sides.ours.keys()
    assert len(COMPARED) >= 12


@pytest.mark.parametrize("agent", [True, False])
def test_every_difference_is_intended(sides: Sides, agent: bool) -> None:
    """API-1, MIG-3: and with the agent off there is nothing of the agent's."""
    places = [place for one in (INTENDED if agent else ALWAYS) for place in one.places]
    strays = (one for one in unlike(sides, agent) if not any(place.fits(one) for place in places))
    assert not (stray := sorted({str(one) for one in strays})), "\n".join(stray)


def test_every_intended_difference_occurs(sides: Sides) -> None:
    """A line that nothing needs would hide the day when something does."""
    seen = unlike(sides, agent=True)
    idle = [
        f"{one.what}: {place}"
        for one in INTENDED
        for place in one.places
        if not any(place.fits(this) for this in seen)
    ]
    assert not idle, "\n".join(idle)


def test_the_launchers_own_words_follow_the_agents(sides: Sides) -> None:
    wrapped = [
        (words(made), words(sides.theirs[key]))
        for key, made in sides.ours.items()
        if made["kind"] == "Job" and words(made) != words(sides.theirs[key])
    ]
    assert wrapped
    before = {tuple(ours[: -len(theirs)]) for ours, theirs in wrapped}
    assert before == {("/etc/mpi-agent/launch",), ("/etc/mpi-agent/names",)}
    assert all(ours[1:] == theirs for ours, theirs in wrapped)


def words(launcher: Object) -> list[str]:
    """Of the launcher's main container, whichever fields hold them."""
    main = launcher["spec"]["template"]["spec"]["containers"][0]
    return [*main.get("command", ()), *main.get("args", ())]


def test_the_page_about_compatibility_is_this_list() -> None:
    """DOC-1."""
    assert PAGE.read_text() == page(), "run `python -m tests.api.intended`"
