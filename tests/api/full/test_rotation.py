"""New certificates, and a new authority, while fifty users a second are served (CTL-4)."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from tests.api.admin import Admin
from tests.api.admission.cases import job
from tests.api.admission.request_load import Crowd
from tests.api.admission.serving import CONFIGURATION, Server, install, serving
from tests.cluster import Kubectl, eventually, shared_cluster
from tools.cluster.spec import Spec

PORT = 19453
MANY = 400
"""answers, on a machine that cannot keep the crowd's pace"""

# The process as it is, but for its clockwork: years are half a minute.
HURRIED = """
from datetime import timedelta
from mpi_trainer.runtime import certificates
from mpi_trainer.webhook import certificate_renewal, main
certificates.AUTHORITY_LIFE = certificates.SERVER_LIFE = timedelta(seconds=30)
certificates.SPREAD = timedelta(seconds=3)
certificates._BACKDATED = timedelta(0)
certificate_renewal.EVERY_SECONDS = 0.5
main.main()
"""


@pytest.fixture(scope="module")
def api_server() -> Iterator[Spec]:
    """A server of its own: admission is for a whole cluster."""
    yield from shared_cluster(Spec(name="test-rotation", profile="api"))


@pytest.fixture
def hurried(api_server: Spec, tmp_path: Path) -> Iterator[Server]:
    install(Kubectl(api_server))
    with serving(api_server, tmp_path, PORT, program=("-c", HURRIED)) as server:
        yield server


def shown() -> x509.Certificate:
    pem = ssl.get_server_certificate(("localhost", PORT), timeout=10)
    return x509.load_pem_x509_certificate(pem.encode())


def trusted(kubectl: Kubectl) -> list[x509.Certificate]:
    hooks = kubectl.get("validatingwebhookconfiguration", CONFIGURATION)["webhooks"]
    return x509.load_pem_x509_certificates(base64.b64decode(hooks[0]["clientConfig"]["caBundle"]))


@pytest.mark.timeout(200, func_only=True)
def test_nobody_notices_that_certificates_and_their_authority_change(
    hurried: Server, namespace: Kubectl
) -> None:
    namespace.apply(job("steady"))
    admin = Admin(namespace.spec, namespace.namespace)
    before, (authority, *_) = shown(), trusted(namespace)
    before.verify_directly_issued_by(authority)
    with Crowd(admin, "steady") as crowd:
        eventually("two authorities are trusted", lambda: len(trusted(namespace)) == 2, 60)
        assert shown() == before, "trusted before it is shown"
        eventually("another certificate is shown", lambda: shown() != before, 30)
        shown().verify_directly_issued_by(trusted(namespace)[0])
        eventually(
            "the old authority is forgotten", lambda: authority not in trusted(namespace), 60
        )
        pace = crowd.pace
    admin.close()
    print(f"{len(crowd.seconds)} requests, {pace:.0f} a second")
    assert crowd.failures == []
    assert len(crowd.seconds) > MANY
