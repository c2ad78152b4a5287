"""The start of a cluster, from nothing or from whatever state its last run left.

A whole cluster that is as asked is left alone; missing add-ons are added. A cluster that lost a
process, was built from other versions or never came up completely is taken down and started afresh:
there is one way up, and it begins from nothing. The spec is on disk before the first effect.
"""

from __future__ import annotations

import os
from typing import Final

import msgspec

from tools.cluster import debian, down, network, processes
from tools.cluster.build import Built, build
from tools.cluster.client import Client
from tools.cluster.errors import ClusterError, PortTakenError
from tools.cluster.lock import locked
from tools.cluster.paths import clusters_root, content_hash
from tools.cluster.progress import say
from tools.cluster.spec import Spec, checked, components_of, existing, load
from tools.cluster.start import install_addons, start

_SLOTS_TO_TRY: Final = 3


def up(wanted: Spec) -> Spec:
    """Bring the cluster up as asked, and return what runs."""
    wanted = checked(wanted)
    if wanted.needs_root:
        debian.require(debian.NODE_PROGRAMS)
    built = build(components_of(wanted))
    with locked(clusters_root() / f"{wanted.name}.lock", "up"):
        seen = load(wanted.name)
        if seen is None:
            return _fresh(wanted, built)
        _refuse_other_shape(seen, wanted)
        wanted = checked(msgspec.structs.replace(wanted, addons=(*seen.addons, *wanted.addons)))
        built = build(components_of(wanted))
        fault = why_unhealthy(seen) or _why_outdated(seen, built)
        if fault:
            say(wanted.name, f"restart: {fault}")
            down.remove(seen)
            return _fresh(wanted, built)
        return _extended(seen, wanted, built)


def why_unhealthy(spec: Spec) -> str:
    """What is wrong with a cluster that has state on disk; empty if it is whole."""
    if not (spec.state / "complete").exists():
        return "it never came up completely"
    dead = [name for name, pid in processes.recorded(spec.state).items() if not pid]
    if dead:
        return f"{dead[0]} is dead"
    if not Client(spec).ready():
        return "the API server is not ready"
    return ""


def _fresh(wanted: Spec, built: dict[str, Built]) -> Spec:
    spec = _started(wanted, built)
    (spec.state / "complete").touch()
    say(spec.name, f"up: KUBECONFIG={spec.kubeconfig}")
    return spec


def _started(wanted: Spec, built: dict[str, Built]) -> Spec:
    """The cluster in a slot of its own: in the next one if a port was taken at the last moment."""
    lost: set[int] = set()
    while True:
        spec = _claimed(wanted, built, lost)
        try:
            start(spec, built)
        except PortTakenError:
            lost.add(spec.slot)
            if len(lost) == _SLOTS_TO_TRY:
                raise
            down.remove(spec)
            say(spec.name, "another program has one of its ports: once more with others")
        else:
            return spec


def _claimed(wanted: Spec, built: dict[str, Built], lost: set[int]) -> Spec:
    """The spec with a slot that nobody has and that is not among the lost, written to disk."""
    with locked(clusters_root() / "slots.lock", "choosing addresses"):
        taken = {spec.slot for spec in existing()} | lost
        slot = network.free_slot(taken, root=os.geteuid() == 0)
        programs = {name: str(built[name].bin) for name in built}
        spec = msgspec.structs.replace(wanted, slot=slot, programs=programs)
        spec.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        _save(spec)
    return spec


def _extended(seen: Spec, wanted: Spec, built: dict[str, Built]) -> Spec:
    new = tuple(name for name in wanted.addons if name not in seen.addons)
    if new:
        programs = {name: str(built[name].bin) for name in built}
        seen = msgspec.structs.replace(
            seen, addons=wanted.addons, fake_nodes=wanted.fake_nodes, programs=programs
        )
        _save(seen)
        install_addons(seen, new, built)
    say(seen.name, "up already" if not new else f"added {', '.join(new)}")
    return seen


def _refuse_other_shape(seen: Spec, wanted: Spec) -> None:
    shape = (seen.profile, seen.real_nodes, seen.audit, seen.audit_users)
    asked = (wanted.audit, wanted.audit_users) if wanted.audit else shape[2:]
    if shape != (wanted.profile, wanted.real_nodes, *asked):
        raise ClusterError(
            f"{seen.name}: there is a cluster of another shape: profile {seen.profile}, "
            f"{seen.real_nodes} nodes, audit {'on' if seen.audit else 'off'}",
            f"Give another `--name`, or run `python -m tools.cluster down --name {seen.name}`.",
        )


def _why_outdated(seen: Spec, built: dict[str, Built]) -> str:
    changed = [n for n, path in seen.programs.items() if n in built and str(built[n].bin) != path]
    return f"it runs other versions of {', '.join(changed)}" if changed else ""


def _save(spec: Spec) -> None:
    target = spec.state / "spec.json"
    partial = spec.state / f".spec-{content_hash(spec)}"
    partial.write_bytes(msgspec.json.encode(spec))
    partial.rename(target)
