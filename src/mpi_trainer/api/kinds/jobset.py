"""A JobSet's spec, `jobset.x-k8s.io/v1alpha2`: a typed view of the parts we read.

A JobSet is a list of replicated jobs, each a Job template; here `replicas` is always one Job, and
`parallelism` its pods. As with pod templates, what the view does not name is ignored, never lost:
whoever passes a JobSet on passes on what came.
"""

from __future__ import annotations

from mpi_trainer.api.kinds.labels import LABEL_ANCESTOR
from mpi_trainer.api.kinds.meta import Int32, PartlyRead
from mpi_trainer.api.kinds.pods import PodTemplate, TemplateMeta


class DependsOn(PartlyRead, frozen=True):
    name: str = ""
    status: str = ""


class JobSpecView(PartlyRead, frozen=True):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    template: PodTemplate = PodTemplate()


class JobTemplateView(PartlyRead, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: JobSpecView = JobSpecView()


class ReplicatedJobView(PartlyRead, frozen=True):
    name: str = ""
    replicas: Int32 = 1
    depends_on: tuple[DependsOn, ...] = ()
    template: JobTemplateView = JobTemplateView()

    @property
    def ancestor(self) -> str:
        """The part of a TrainJob that this job belongs to, by its label; often empty."""
        return self.template.metadata.labels.get(LABEL_ANCESTOR, "")


class JobSetNetwork(PartlyRead, frozen=True):
    subdomain: str = ""


class ClaimName(PartlyRead, frozen=True):
    name: str = ""


class ClaimTemplate(PartlyRead, frozen=True):
    metadata: ClaimName = ClaimName()


class ClaimPolicy(PartlyRead, frozen=True):
    templates: tuple[ClaimTemplate, ...] = ()


class JobSetView(PartlyRead, frozen=True):
    """The part of a JobSet's spec that we act upon."""

    replicated_jobs: tuple[ReplicatedJobView, ...] = ()
    network: JobSetNetwork = JobSetNetwork()
    volume_claim_policies: tuple[ClaimPolicy, ...] = ()

    @property
    def claims(self) -> tuple[str, ...]:
        """The volumes that the JobSet makes itself, which pods mount by these names."""
        every = (one for policy in self.volume_claim_policies for one in policy.templates)
        return tuple(one.metadata.name for one in every)
