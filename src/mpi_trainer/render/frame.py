"""What all children of one job share, worked out once, whatever kind the job is of.

`Facts` is what only the controller knows: which attempt this is, the cluster's domain (empty where
names are resolved without one), and where training programs tell their progress. `Names` is what a
kind calls its children and their volumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.network_isolation import NO_DEFAULT, IsolationDefault
from mpi_trainer.layout.model import File, Layout
from mpi_trainer.render.gang.model import GangSettings, Marks
from mpi_trainer.render.names import config_map_keys

Object = dict[str, Any]

USUAL_DOMAIN = "cluster.local"


class Endpoint(msgspec.Struct, frozen=True):
    """Where the status endpoint is, as pods see it (`https://host:port`), and the certificate of
    who signs for it (PEM)."""

    address: str
    authority: str


class Facts(msgspec.Struct, frozen=True):
    """`isolation`: what an administrator wants of networks where jobs say nothing."""

    attempt: int = 1
    domain: str = ""
    endpoint: Endpoint | None = None
    isolation: IsolationDefault = NO_DEFAULT
    gang: GangSettings = GangSettings()


class Owner(Protocol):
    """A job, as far as its children say whose they are."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def metadata(self) -> ObjectMeta: ...


class Names(msgspec.Struct, frozen=True):
    """`labels` are on every child that is no pod and has none, `marks` on every pod."""

    config_map: str
    config_volume: str
    secret: str
    ssh_volume: str
    labels: Mapping[str, str] = {}
    marks: Marks = Marks()


class Frame(msgspec.Struct, frozen=True):
    owner: Owner
    names: Names
    facts: Facts
    subdomain: str
    config_keys: Mapping[File, str]
    rank_pods: frozenset[str]
    marks: Marks = Marks()

    @property
    def search(self) -> str:
        """The DNS domain of the job's pods, so that their short names resolve everywhere."""
        domain = self.facts.domain or USUAL_DOMAIN
        return f"{self.subdomain}.{self.owner.metadata.namespace}.svc.{domain}"

    def metadata(self, name: str, **more: Any) -> Object:
        return metadata(self.owner, name, **more)

    def plain_metadata(self, name: str) -> Object:
        """Metadata of a child that is no pod and has none."""
        labels = {"labels": dict(self.names.labels)} if self.names.labels else {}
        return self.metadata(name, **labels)


def metadata(owner: Owner, name: str, **more: Any) -> Object:
    """Metadata of a child. A job that no API server has seen yet owns nothing."""
    job = owner.metadata
    content: Object = {"name": name, "namespace": job.namespace, **more}
    if job.uid:
        reference = {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": job.name,
            "uid": job.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        content["ownerReferences"] = [reference]
    return content


def frame(layout: Layout, owner: Owner, names: Names, facts: Facts) -> Frame:
    """A launcher without workers runs the ranks itself, whatever the hostfile says."""
    ranks = frozenset(h.pod for h in layout.hosts) or frozenset({layout.launcher.name})
    subdomain = layout.launcher.subdomain
    keys = config_map_keys(layout)
    return Frame(owner, names, facts, subdomain, keys, ranks, names.marks)
