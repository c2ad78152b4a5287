"""Renews the webhook's certificates, in one Secret that all replicas share.

Guarantee: an authority stands in the webhook configurations, and in the definition of MPIJobs where
we convert their versions, before a certificate that it signed is served (see
`runtime.shared_certificates`).
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from mpi_trainer.api.kinds.meta import ApiValue, ObjectMeta
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError, NotFound
from mpi_trainer.kube.resources import Resource
from mpi_trainer.runtime.shared_certificates import SharedChain
from mpi_trainer.runtime.tls import ServerCertificate

EVERY_SECONDS = 30.0
_GROUP = "admissionregistration.k8s.io"
CONFIGURATIONS = (
    Resource(_GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False),
    Resource(
        _GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False
    ),
)

_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
_MPIJOBS = "mpijobs.kubeflow.org"

log = logging.getLogger(__name__)


class ClientConfig(ApiValue, frozen=True):
    ca_bundle: str = ""


class Hook(ApiValue, frozen=True):
    name: str = ""
    client_config: ClientConfig = ClientConfig()


class Configuration(ApiValue, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Hook, ...] = ()


class ConversionWebhook(ApiValue, frozen=True):
    client_config: ClientConfig = ClientConfig()


class Conversion(ApiValue, frozen=True):
    webhook: ConversionWebhook | None = None


class DefinitionSpec(ApiValue, frozen=True):
    conversion: Conversion = Conversion()


class Definition(ApiValue, frozen=True):
    spec: DefinitionSpec = DefinitionSpec()


class CertificateNames(msgspec.Struct, frozen=True):
    """The webhook's Secret, its Service, and the name of both its configurations.

    The API server calls configurations in the order of their names; ours must come before
    `kueue…`, which reads the label that we set.
    """

    namespace: str
    secret: str = "mpi-trainer-webhook-cert"
    service: str = "mpi-trainer-webhook"
    configuration: str = "admission.mpi-trainer.opendatahub.io"
    more_names: tuple[str, ...] = ()
    conversion: bool = False
    """whether the definition of MPIJobs calls us too"""

    @property
    def host_names(self) -> tuple[str, ...]:
        return (f"{self.service}.{self.namespace}.svc", *self.more_names)


class CertificateRenewal:
    def __init__(
        self,
        client: Client,
        names: CertificateNames,
        certificate: ServerCertificate,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._names = names
        self._certificate = certificate
        self._chain = SharedChain(client, names.namespace, names.secret, names.host_names, now)

    async def run(self) -> None:
        """Until cancelled; a failure is logged and tried again."""
        while True:
            try:
                await self.once()
            except KubeError as error:
                log.warning("certificates could not be kept: %s", error)
            await asyncio.sleep(EVERY_SECONDS if self._certificate.ready else 1.0)

    async def once(self) -> None:
        chain = await self._chain.current()
        for resource in CONFIGURATIONS:
            await self._publish(resource, chain.bundle)
        if self._names.conversion:
            await self._publish_conversion(chain.bundle)
        if self._certificate.show(chain.server.certificate, chain.server.key):
            ends = chain.server.parsed.not_valid_after_utc
            log.info("showing a certificate that is valid until %s", ends.isoformat())

    async def _publish(self, resource: Resource, bundle: bytes) -> None:
        """JSON patch with a test of the name: the entry may have moved meanwhile."""
        name = self._names.configuration
        try:
            found = await self._client.call(requests.get(resource, "", name), Configuration)
        except NotFound:
            return
        wanted = base64.b64encode(bundle).decode()
        steps: list[dict[str, Any]] = []
        for n, hook in enumerate(found.webhooks):
            if hook.client_config.ca_bundle != wanted:
                where = f"/webhooks/{n}"
                steps.append({"op": "test", "path": f"{where}/name", "value": hook.name})
                path = f"{where}/clientConfig/caBundle"
                steps.append({"op": "add", "path": path, "value": wanted})
        if steps:
            await self._client.call(requests.patch(resource, "", name, steps, "json"), None)

    async def _publish_conversion(self, bundle: bytes) -> None:
        """Into the definition of MPIJobs, where that names a webhook."""
        try:
            found = await self._client.call(requests.get(_DEFINITIONS, "", _MPIJOBS), Definition)
        except NotFound:
            return
        webhook = found.spec.conversion.webhook
        wanted = base64.b64encode(bundle).decode()
        if webhook is None or webhook.client_config.ca_bundle == wanted:
            return
        path = "/spec/conversion/webhook/clientConfig/caBundle"
        steps = [{"op": "add", "path": path, "value": wanted}]
        await self._client.call(requests.patch(_DEFINITIONS, "", _MPIJOBS, steps, "json"), None)
