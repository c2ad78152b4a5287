"""A cluster of a kubeconfig as an address and as TLS settings, refusing what contradicts itself."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.kubeconfig import Cluster, User
from mpi_trainer.kube.trust import Trust
from mpi_trainer.kube.users import from_base64

_FOR_PLUGINS: Final = "client.authentication.k8s.io/exec"


def address(cluster: Cluster, user: User) -> str:
    """The server's URL, without a slash at its end; its own path is kept."""
    if not cluster.server:
        raise ConfigError("cluster.server: it is missing")
    server = cluster.server
    if "://" not in server:
        secured = (
            cluster.certificate_authority
            or cluster.certificate_authority_data
            or cluster.insecure_skip_tls_verify
            or user.client_certificate
            or user.client_certificate_data
        )
        server = f"{'https' if secured else 'http'}://{server}"
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("cluster.server: not a URL; write it as https://host:port")
    if parts.username or parts.query or parts.fragment:
        raise ConfigError("cluster.server: only host, port and path may be in it")
    return server.rstrip("/")


def trust(cluster: Cluster, cluster_folder: Path, user: User, folder: Path) -> Trust:
    authority = cluster.certificate_authority or cluster.certificate_authority_data
    if cluster.insecure_skip_tls_verify and authority:
        raise ConfigError(
            "certificate-authority, insecure-skip-tls-verify: they contradict; remove one of them"
        )
    return Trust(
        authority=from_base64(cluster.certificate_authority_data, "certificate-authority-data"),
        authority_file=_at(cluster_folder, cluster.certificate_authority),
        certificate=from_base64(user.client_certificate_data, "client-certificate-data"),
        certificate_file=_at(folder, user.client_certificate),
        key=from_base64(user.client_key_data, "client-key-data"),
        key_file=_at(folder, user.client_key),
        server_name=cluster.tls_server_name,
        insecure=cluster.insecure_skip_tls_verify,
    )


def _at(folder: Path, path: str) -> str:
    return str(folder / path) if path else ""


def exec_plugin_cluster(cluster: Cluster, cluster_folder: Path) -> dict[str, Any]:
    """What an exec plugin may know of the cluster."""
    authority = cluster.certificate_authority_data
    if not authority and cluster.certificate_authority:
        try:
            data = (cluster_folder / cluster.certificate_authority).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"certificate-authority: {error.filename}: {error.strerror}"
            ) from None
        authority = base64.b64encode(data).decode()
    own = [one.extension for one in cluster.extensions or () if one.name == _FOR_PLUGINS]
    fields = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authority,
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": own[0] if own else None,
    }
    return {key: value for key, value in fields.items() if value}
