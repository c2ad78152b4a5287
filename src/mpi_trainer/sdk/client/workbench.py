"""The login that an OpenShift AI workbench gives its user: variables and files of its pod.

`OPENSHIFT_API_URL` and `NOTEBOOK_USER_TOKEN` are what the public examples use; the certificates
are those that the platform puts into every workbench. A workbench's own account often may not
create jobs, so the user's token wins over it. Certificates are always checked.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from mpi_trainer.kube.config import ACCOUNT, Config
from mpi_trainer.kube.credentials import Fixed, bearer
from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.proxies import proxy_for
from mpi_trainer.kube.trust import Trust

URL: Final = "OPENSHIFT_API_URL"
TOKEN: Final = "NOTEBOOK_USER_TOKEN"
AUTHORITIES: Final = ("CF_SDK_CA_CERT_PATH", "SSL_CERT_FILE")
BUNDLE: Final = Path("/etc/pki/tls/custom-certs/ca-bundle.crt")


def has_login() -> bool:
    return bool(os.environ.get(URL) and os.environ.get(TOKEN))


def config(namespace: str | None = None, account: Path = ACCOUNT) -> Config:
    """The user's login in this workbench."""
    server = os.environ.get(URL, "").rstrip("/")
    if not server.startswith("https://"):
        raise ConfigError(f"{URL}: must be a URL such as https://api.example.com:6443")
    return Config(
        server=server,
        namespace=namespace or _namespace(account) or "default",
        trust=Trust(authority_file=_authority(account)),
        credentials=Fixed(bearer(os.environ.get(TOKEN, "").strip())),
        proxy=proxy_for(server, os.environ),
        source=f"the variables {URL} and {TOKEN}",
    )


def _authority(account: Path) -> str:
    """The certificates to believe; empty means those of the system."""
    named = (Path(os.environ[name]) for name in AUTHORITIES if os.environ.get(name))
    return next((str(p) for p in (*named, BUNDLE, account / "ca.crt") if p.is_file()), "")


def _namespace(account: Path) -> str:
    """The project of the workbench."""
    file = account / "namespace"
    if file.is_file():
        return file.read_text().strip()
    prefix = os.environ.get("NB_PREFIX", "").split("/")  # /notebook/PROJECT/NAME
    return prefix[2] if len(prefix) > 3 else ""
