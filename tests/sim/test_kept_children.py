"""Children that are kept as rendered: made, put right and removed, and nobody else's touched."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.mpijob import KIND
from mpi_trainer.controller.children import NameTaken, Predecessor
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.controller.kept_children import KeptChildren, kept_child, kept_store
from mpi_trainer.controller.objects import KeptChild
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.resources import MPIJOBS, NETWORK_POLICIES
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta
from mpi_trainer.runtime.store import Store
from tests.sim.server import Server, key_of

Object = dict[str, Any]

SPACE = "ns"
PI = Key(SPACE, "pi")
OWNER = Meta(name="pi", namespace=SPACE, uid="u-pi")
ASKED: Object = {"policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {"a": "b"}}]}]}


def policy(name: str = "pi-workers", spec: Object = ASKED, uid: str = "u-pi") -> Object:
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": KIND, "name": "pi", "uid": uid}
    meta = {
        "name": name,
        "namespace": SPACE,
        "labels": {"training.kubeflow.org/job-name": "pi"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    kind = {"apiVersion": NETWORK_POLICIES.api_version, "kind": NETWORK_POLICIES.kind}
    return {**kind, "metadata": meta, "spec": spec}


class Lab:
    def __init__(self, server: Server, client: Client) -> None:
        self.server = server
        self.store: Store[KeptChild] = kept_store()
        stores = {NETWORK_POLICIES: self.store}
        freshness: Freshness[Key, Any] = Freshness(stores, time.monotonic)
        writes = GuardedWrites(client, MPIJOBS, freshness, WriteConcurrency())
        self.children = KeptChildren(client, writes, freshness, stores, KIND)

    async def keep(self, *wanted: Object) -> None:
        await self.children.keep(PI, OWNER, NETWORK_POLICIES, wanted)

    def watched(self, name: str = "pi-workers") -> None:
        """The watch has shown what is stored."""
        stored = self.stored(name)
        self.store.put(msgspec.json.decode(msgspec.json.encode(stored), type=KeptChild))

    def stored(self, name: str = "pi-workers") -> Object:
        found: Object = self.server.objects.get(key_of(NETWORK_POLICIES, SPACE, name))
        return found

    @property
    def names(self) -> set[str]:
        return {key[2] for key in self.server.objects.objects}


def on_lab(act: Callable[[Lab], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Server() as server, Client(server.config) as client:
            await act(Lab(server, client))

    asyncio.run(run())


def test_what_is_wanted_is_made_once() -> None:
    """CTL-3, CTL-6: also where the watch is late."""

    async def act(lab: Lab) -> None:
        await lab.keep(policy())
        await lab.keep(policy())
        assert lab.names == {"pi-workers"}
        lab.watched()
        before = len(lab.server.requests)
        await lab.keep(policy())
        assert len(lab.server.requests) == before, "and nobody is asked again"

    on_lab(act)


def test_what_somebody_changed_or_added_is_put_right() -> None:
    """CTL-6: a rule that lets everybody in does not stay."""

    async def act(lab: Lab) -> None:
        wider = {**ASKED, "ingress": [*ASKED["ingress"], {}], "egress": [{}]}
        lab.server.put(NETWORK_POLICIES, policy(spec=wider))
        lab.watched()
        await lab.keep(policy())
        assert lab.stored()["spec"] == ASKED

    on_lab(act)


def test_what_is_no_longer_wanted_goes_and_what_was_deleted_comes_back() -> None:
    """CTL-6."""

    async def act(lab: Lab) -> None:
        await lab.keep(policy(), policy("pi-launcher"))
        lab.watched()
        lab.watched("pi-launcher")
        await lab.keep(policy("pi-launcher"))
        assert lab.names == {"pi-launcher"}
        lab.server.remove(NETWORK_POLICIES, SPACE, "pi-launcher")
        lab.store.replace((), "99")
        await lab.keep(policy("pi-launcher"))
        assert lab.names == {"pi-launcher"}

    on_lab(act)


def test_an_object_of_somebody_else_is_never_touched() -> None:
    async def act(lab: Lab) -> None:
        foreign = policy()
        del foreign["metadata"]["ownerReferences"]
        lab.server.put(NETWORK_POLICIES, foreign)
        lab.watched()
        with pytest.raises(NameTaken, match="NetworkPolicy pi-workers already exists"):
            await lab.keep(policy(spec={}))
        await lab.keep()
        assert lab.stored()["spec"] == ASKED

    on_lab(act)


def test_what_an_earlier_job_of_the_name_left_is_waited_for() -> None:
    async def act(lab: Lab) -> None:
        lab.server.put(NETWORK_POLICIES, policy(uid="u-earlier"))
        lab.watched()
        with pytest.raises(Predecessor):
            await lab.keep(policy())

    on_lab(act)


def test_one_that_is_still_being_deleted_does_not_count() -> None:
    """Pods would start, and then it would be gone."""

    async def act(lab: Lab) -> None:
        going = policy()
        going["metadata"] |= {"uid": "g", "deletionTimestamp": "2026-01-01T00:00:00Z"}
        lab.store.put(msgspec.json.decode(msgspec.json.encode(going), type=KeptChild))
        with pytest.raises(Predecessor, match="still being deleted"):
            await lab.keep(policy())
        await lab.keep()

    on_lab(act)


def test_one_that_was_made_anew_meanwhile_is_not_overwritten() -> None:
    """The change is guarded by the uid that was seen."""

    async def act(lab: Lab) -> None:
        lab.server.put(NETWORK_POLICIES, policy(spec={"egress": [{}]}))
        lab.watched()
        lab.server.remove(NETWORK_POLICIES, SPACE, "pi-workers")
        lab.server.put(NETWORK_POLICIES, policy(uid="u-other", spec={}))
        with pytest.raises(Exception, match="test"):
            await lab.keep(policy())
        assert lab.stored()["spec"] == {}

    on_lab(act)


def test_an_object_of_another_namespace_is_not_taken_for_the_job_s_whatever_uid_it_names() -> None:
    """Its policy would be believed to be there, and the stranger's be written to."""

    async def act(lab: Lab) -> None:
        forged = policy(spec={"ingress": [{}]})
        forged["metadata"]["namespace"] = "elsewhere"
        lab.server.put(NETWORK_POLICIES, forged)
        there = lab.server.objects.get(key_of(NETWORK_POLICIES, "elsewhere", "pi-workers"))
        lab.store.put(msgspec.json.decode(msgspec.json.encode(there), type=KeptChild))
        await lab.keep(policy())
        assert lab.stored()["spec"] == ASKED
        there = lab.server.objects.get(key_of(NETWORK_POLICIES, "elsewhere", "pi-workers"))
        assert there["spec"] == {"ingress": [{}]}

    on_lab(act)


def test_an_object_that_names_the_job_s_uid_for_another_kind_is_somebody_else_s() -> None:
    async def act(lab: Lab) -> None:
        forged = policy(spec={"ingress": [{}]})
        forged["metadata"]["ownerReferences"][0] |= {"apiVersion": "v1", "kind": "ConfigMap"}
        lab.server.put(NETWORK_POLICIES, forged)
        lab.watched()
        await lab.keep()
        assert lab.names == {"pi-workers"}
        with pytest.raises(NameTaken):
            await lab.keep(policy())

    on_lab(act)


def test_a_policy_whose_label_was_taken_away_is_put_right_and_watched_again() -> None:
    """Nothing of it is seen without its label, and it would stay open for good."""

    async def act(lab: Lab) -> None:
        hidden = policy(spec={"ingress": [{}]})
        hidden["metadata"]["labels"] = {"a": "b"}
        lab.server.put(NETWORK_POLICIES, hidden)
        await lab.keep(policy())
        assert lab.stored()["spec"] == ASKED
        labels = lab.stored()["metadata"]["labels"]
        assert labels == {"a": "b", "training.kubeflow.org/job-name": "pi"}

    on_lab(act)


def test_an_object_without_any_spec_is_given_one() -> None:
    """The definitions of PodGroups let a spec be taken away."""

    async def act(lab: Lab) -> None:
        bare = policy()
        del bare["spec"]
        lab.server.put(NETWORK_POLICIES, bare)
        lab.watched()
        await lab.keep(policy())
        assert lab.stored()["spec"] == ASKED

    on_lab(act)


def test_what_another_controller_made_for_the_job_is_not_deleted() -> None:
    """Volcano makes PodGroups of its own that the job controls: podgroup-UID."""

    async def act(lab: Lab) -> None:
        lab.server.put(NETWORK_POLICIES, policy("podgroup-u-pi"))
        lab.watched("podgroup-u-pi")
        await lab.keep()
        assert lab.names == {"podgroup-u-pi"}

    on_lab(act)


def test_a_huge_spec_of_somebody_is_neither_held_nor_decoded_and_is_put_right() -> None:
    """As those of jobs: a few users cannot fill the memory, nor keep the event loop busy."""

    async def act(lab: Lab) -> None:
        huge = policy(spec={**ASKED, "egress": [{"ports": [{"port": n}]} for n in range(30_000)]})
        lab.server.put(NETWORK_POLICIES, huge)
        stored = msgspec.json.encode(lab.stored())
        held = kept_child(msgspec.json.decode(stored, type=KeptChild))
        assert len(stored) > bounds.SPEC_BYTES
        assert len(bytes(held.spec)) < 100
        lab.store.put(held)
        await lab.keep(policy())
        assert lab.stored()["spec"] == ASKED

    on_lab(act)


def test_of_what_is_watched_no_more_is_held_than_is_compared() -> None:
    """A view would hold the whole page of the list that it came with."""
    noise = {"metadata": {"name": "n", "annotations": {"a": "b" * 1000}}, "spec": {"c": 1}}
    page = msgspec.json.encode(noise)
    held = kept_child(msgspec.json.decode(page, type=KeptChild))
    assert bytes(held.spec) == b'{"c":1}'
    assert not held.metadata.annotations
    before = sys.getrefcount(page)
    view = msgspec.json.decode(page, type=KeptChild)
    assert sys.getrefcount(page) > before
    kept = kept_child(view)
    del view
    assert sys.getrefcount(page) == before, kept
