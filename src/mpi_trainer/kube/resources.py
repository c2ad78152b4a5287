"""The kinds that we talk about, and where the API server keeps them.

A `Resource` knows its paths and nothing else. A name goes into a path percent-encoded, and one
that could leave its place ("..", "a/b") is refused, so no text of a user ever picks the path.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec


class Resource(msgspec.Struct, frozen=True):
    """One kind in one version of its API; `group` is empty for the core."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As in an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """The collection, an object in it, or a part of that object.

        A namespaced kind without a namespace is the collection over all namespaces.
        """
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name!r}: the namespace is missing; say which one")
        if sub and not name:
            raise ValueError(f"{self.kind}: {sub!r} is part of one object; say which one")
        parts = [self._root]
        if namespace and self.namespaced:
            parts.append(f"namespaces/{segment(namespace)}")
        parts.append(self.plural)
        parts += [segment(part) for part in (name, sub) if part]
        return "/".join(parts)

    def route(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """`path` with placeholders for names, so that metrics have few series."""
        parts = [self._root]
        if namespace and self.namespaced:
            parts.append("namespaces/{namespace}")
        parts += [self.plural, *(["{name}"] if name else []), *([sub] if sub else [])]
        return "/".join(parts)

    @property
    def _root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


def segment(text: str) -> str:
    """One part of a path, by the rule that the API server has for names."""
    if text in (".", "..") or "/" in text or "%" in text:
        raise ValueError(
            f"{text!r} cannot be a name: it may not be '.' or '..' nor hold '/' or '%'"
        )
    return quote(text, safe="")


def _core(plural: str, kind: str, namespaced: bool = True) -> Resource:
    return Resource("", "v1", plural, kind, namespaced)


PODS: Final = _core("pods", "Pod")
SERVICES: Final = _core("services", "Service")
CONFIGMAPS: Final = _core("configmaps", "ConfigMap")
SECRETS: Final = _core("secrets", "Secret")
SERVICE_ACCOUNTS: Final = _core("serviceaccounts", "ServiceAccount")
EVENTS: Final = _core("events", "Event")
RESOURCE_QUOTAS: Final = _core("resourcequotas", "ResourceQuota")
LIMIT_RANGES: Final = _core("limitranges", "LimitRange")
PERSISTENT_VOLUME_CLAIMS: Final = _core("persistentvolumeclaims", "PersistentVolumeClaim")
NAMESPACES: Final = _core("namespaces", "Namespace", namespaced=False)
NODES: Final = _core("nodes", "Node", namespaced=False)

JOBS: Final = Resource("batch", "v1", "jobs", "Job")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
NETWORK_POLICIES: Final = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
POD_GROUPS: Final = (
    Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"),
    Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"),
)
"""of scheduler-plugins and of Volcano, where they are installed"""
PRIORITY_CLASSES: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
CRDS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
SELF_SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)
SUBJECT_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
TOKEN_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)

MPIJOBS: Final = Resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")
TRAINJOBS: Final = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
TRAINING_RUNTIMES: Final = Resource(
    "trainer.kubeflow.org", "v1alpha1", "trainingruntimes", "TrainingRuntime"
)
CLUSTER_TRAINING_RUNTIMES: Final = Resource(
    "trainer.kubeflow.org",
    "v1alpha1",
    "clustertrainingruntimes",
    "ClusterTrainingRuntime",
    namespaced=False,
)
JOBSETS: Final = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
