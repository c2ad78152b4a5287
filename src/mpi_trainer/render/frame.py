"""What all children of one job share, worked out once.

`Facts` is what only the controller knows: which attempt this is, and the cluster's domain (empty
where names are resolved without one). `Frame` adds the job and where its files are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api.mpijob import API_VERSION, KIND, MPIJob
from mpi_trainer.layout.model import File, Layout
from mpi_trainer.render import configkeys, names

Object = dict[str, Any]

USUAL_DOMAIN = "cluster.local"


class Facts(msgspec.Struct, frozen=True):
    attempt: int = 1
    domain: str = ""


class Frame(msgspec.Struct, frozen=True):
    job: MPIJob
    facts: Facts
    config_keys: Mapping[File, str]
    rank_pods: frozenset[str]

    @property
    def search(self) -> str:
        """The DNS domain of the job's pods, so that their short names resolve everywhere."""
        domain = self.facts.domain or USUAL_DOMAIN
        return f"{names.service(self.job.name)}.{self.job.namespace}.svc.{domain}"

    def metadata(self, name: str, **more: Any) -> Object:
        """Metadata of a child. A job that no API server has seen yet owns nothing."""
        job = self.job
        content: Object = {"name": name, "namespace": job.namespace, **more}
        if job.metadata.uid:
            owner = {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": job.name,
                "uid": job.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
            content["ownerReferences"] = [owner]
        return content

    def plain_metadata(self, name: str) -> Object:
        """Metadata of a child that is no pod and has none."""
        return self.metadata(name, labels={names.APP: self.job.name})


def frame(layout: Layout, job: MPIJob, facts: Facts) -> Frame:
    """A launcher without workers runs the ranks itself, whatever the hostfile says."""
    ranks = frozenset(h.pod for h in layout.hosts) or frozenset({layout.launcher.name})
    return Frame(job, facts, configkeys.keys(layout), ranks)
