"""What installing and removing do, in order. Each step is safe to repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from mpi_trainer.api.errors import ExplainedError
from mpi_trainer.cli.installation import bundles
from mpi_trainer.cli.installation.bundles import Object
from mpi_trainer.cli.installation.cluster import (
    CREATED,
    NOT_TRIED,
    REMOVING,
    WRITING,
    Cluster,
    Right,
    called,
)

Say = Callable[[str], None]
_POLICIES: Final = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
_RELEASE_SECONDS: Final = 120.0


class Wanted(msgspec.Struct, frozen=True):
    """`registry` is where all images are taken from; empty: as they are named."""

    profile: str = bundles.KUBERNETES
    admission: bool = True
    runtimes: bool = True
    registry: str = ""
    seconds: float = 300.0


class Change(msgspec.Struct, frozen=True):
    object: str
    what: str


def names(wanted: Wanted, policies: bool = True) -> list[str]:
    """The bundles, in the order of their installation."""
    admission = bundles.ADMISSION if policies else bundles.OLDER_ADMISSION
    return [
        wanted.profile,
        *([admission] if wanted.admission else []),
        *([bundles.RUNTIMES] if wanted.runtimes else []),
    ]


def objects(cluster: Cluster, wanted: Wanted) -> list[Object]:
    """All but the definitions, with namespaces first."""
    found = [
        one for name in names(wanted, cluster.serves(*_POLICIES)) for one in bundles.bundle(name)
    ]
    found.sort(key=lambda one: one["kind"] != "Namespace")
    return bundles.with_images(found, wanted.registry)


def install(cluster: Cluster, wanted: Wanted, say: Say, *, dry_run: bool) -> Iterator[Change]:
    """Everything is tried before anything is written: kinds, rights, and each object by a dry run.
    What cannot be tried before another exists (its namespace, its kind) is tried by writing it.
    Objects of our own kinds come last: our admission judges them, so it must serve."""
    definitions, others = bundles.definitions(), objects(cluster, wanted)
    own = {one["spec"]["names"]["kind"] for one in definitions}
    _check_kinds(cluster, others, own)
    check_rights(cluster.lacking([*definitions, *others], WRITING), "install")
    say("trying every object without writing it")
    tried = {}
    judged = [one for one in others if one["kind"] in own]
    others = [one for one in others if one["kind"] not in own]
    new = {
        one["metadata"]["name"]
        for one in others
        if one["kind"] == "Namespace" and cluster.get(one) is None
    }
    for one in (*definitions, *others):
        waits = one["metadata"].get("namespace", "") in new or cluster.resource(one) is None
        tried[_id(one)] = CREATED if waits else cluster.apply(one, dry_run=True)
    if dry_run:
        yield from (Change(called(one), tried[_id(one)]) for one in (*definitions, *others))
        yield from (_tried(cluster, one) for one in judged)
        return
    for one in definitions:
        yield Change(called(one), cluster.apply(one))
    cluster.until_served(definitions)
    for one in others:
        yield Change(called(one), cluster.apply(one))
    for one in others:
        if one["kind"] == "Deployment":
            roll_out(cluster, one, say, wanted.seconds)
    for one in judged:
        yield Change(called(one), cluster.apply(one))


def _tried(cluster: Cluster, obj: Object) -> Change:
    """Admission that does not serve now is no reason against installing what mends it."""
    if cluster.resource(obj) is None:
        return Change(called(obj), CREATED)
    try:
        return Change(called(obj), cluster.apply(obj, dry_run=True))
    except ExplainedError:
        return Change(called(obj), NOT_TRIED)


def check_rights(lacking: Sequence[Right], verb: str) -> None:
    if not lacking:
        return
    lines = "".join(f"\n  {right}" for right in lacking)
    raise ExplainedError(
        f"you lack rights that it takes to {verb}:{lines}",
        "Ask a cluster administrator to run the command; nothing was changed.",
    )


def _check_kinds(cluster: Cluster, others: Sequence[Object], own: set[str]) -> None:
    unknown = {
        f"{one['kind']} ({one['apiVersion']})"
        for one in others
        if one["kind"] not in own and cluster.resource(one) is None
    }
    if unknown:
        raise ExplainedError(
            f"the cluster does not know {', '.join(sorted(unknown))}",
            "Choose --profile kubernetes, or install what brings these kinds; nothing was changed.",
        )


def roll_out(cluster: Cluster, deployment: Object, say: Say, seconds: float) -> None:
    """Until all replicas are those of now and available."""
    deadline = time.monotonic() + seconds
    name, namespace = called(deployment), deployment["metadata"]["namespace"]
    selector = deployment["spec"]["selector"]["matchLabels"]

    def look() -> str:
        found = cluster.get(deployment) or deployment
        wanted, status = found["spec"].get("replicas", 1), found.get("status", {})
        seen = status.get("observedGeneration", 0) >= found["metadata"].get("generation", 1)
        ready = min(status.get("updatedReplicas", 0), status.get("availableReplicas", 0))
        left = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        if seen and ready >= wanted and left <= 0:
            return ""
        why = next(iter(cluster.waiting_pods(namespace, selector)), "")
        now = f"{ready} of {wanted} replicas are ready{f' ({why})' if why else ''}"
        if time.monotonic() > deadline:
            raise ExplainedError(
                f"{name}: after {seconds:.0f} s {now}",
                f"See `kubectl -n {namespace} describe pods`. The command may be run again.",
            )
        return now

    cluster.until(name, look, say)
    say(f"{name}: ready")


def uninstall(cluster: Cluster, wanted: Wanted, say: Say, *, dry_run: bool) -> Iterator[Change]:
    """Admission first, so that it refuses nothing; then the controller; then what holds launcher
    pods; then the rest. Definitions, runtimes and jobs stay."""
    both = [bundles.ADMISSION, bundles.OLDER_ADMISSION] if wanted.admission else []
    admission = [one for name in both for one in bundles.bundle(name)]
    rest = bundles.bundle(wanted.profile)
    known = [one for one in (*admission, *rest) if cluster.resource(one) is not None]
    there = list({_id(one): one for one in known if cluster.get(one) is not None}.values())
    release = bundles.with_images(bundles.bundle(bundles.RELEASE), wanted.registry)
    check_rights(cluster.lacking(there, REMOVING), "uninstall")
    if any(one["kind"] == "Deployment" for one in there):
        check_rights(cluster.lacking(release, (*WRITING, *REMOVING)), "uninstall")
    # Webhook configurations first: their Service goes too.
    there.sort(key=lambda one: (one["kind"] == "Namespace", "Webhook" not in one["kind"]))
    if not dry_run:
        for one in there:
            if one["kind"] == "Deployment" and one["metadata"]["name"] == "mpi-trainer":
                _release(cluster, one, release, say)
    for one in there:
        if dry_run or cluster.delete(one):
            yield Change(called(one), "deleted")


def _release(cluster: Cluster, controller: Object, release: Sequence[Object], say: Say) -> None:
    """Nobody is left then to read how launcher pods end, so nothing may hold them."""
    deadline = time.monotonic() + _RELEASE_SECONDS
    cluster.scale(controller, 0)

    def stopped() -> str:
        status = (cluster.get(controller) or {}).get("status", {})
        return _in_time(deadline, "the controller's pods end" if status.get("replicas") else "")

    cluster.until(called(controller), stopped, say)
    (job,) = release
    cluster.delete(job)
    cluster.until(called(job), lambda: _in_time(deadline, _still_there(cluster, job)), say)
    cluster.apply(job)

    def done() -> str:
        status = (cluster.get(job) or {}).get("status", {})
        return _in_time(deadline, "" if status.get("succeeded") else "launcher pods are let go")

    cluster.until(called(job), done, say)
    cluster.delete(job)


def _still_there(cluster: Cluster, obj: Object) -> str:
    return "an older one goes" if cluster.get(obj) else ""


def _in_time(deadline: float, now: str) -> str:
    if now and time.monotonic() > deadline:
        raise ExplainedError(
            f"{now}, and have not after {_RELEASE_SECONDS:.0f} s",
            'See "Uninstall" in docs/install.md for the steps one by one.',
        )
    return now


def _id(obj: Object) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return obj["kind"], metadata.get("namespace", ""), metadata["name"]
