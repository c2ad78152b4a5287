"""kubeconfig files with the credentials inside, so that one file is all a client needs."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path


def document(server: str, ca: bytes, certificate: bytes, key: bytes) -> str:
    """A kubeconfig for one user at one server. JSON is YAML too."""

    def encoded(data: bytes) -> str:
        return base64.b64encode(data).decode()

    cluster = {"server": server, "certificate-authority-data": encoded(ca)}
    user = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "default",
            "clusters": [{"name": "default", "cluster": cluster}],
            "users": [{"name": "default", "user": user}],
            "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        }
    )


def write(path: Path, server: str, pki: Path, identity: str) -> None:
    """Write the kubeconfig of an identity that has its certificate in `pki`."""
    text = document(
        server,
        (pki / "ca.crt").read_bytes(),
        (pki / f"{identity}.crt").read_bytes(),
        (pki / f"{identity}.key").read_bytes(),
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
