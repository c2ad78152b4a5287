"""Which API server, and as whom: one frozen value, from a kubeconfig or from inside a pod.

Read as kubectl reads it, with two differences: what kubectl would silently send to localhost is
an error here, and so is what we cannot do. `repr` shows the server and where the configuration
came from, never a secret.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from mpi_trainer.kube.credentials import Credentials, Fixed, TokenFile
from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.proxies import checked_proxy, proxy_for
from mpi_trainer.kube.trust import Trust

if TYPE_CHECKING:
    from mpi_trainer.kube.kubeconfig import Kubeconfig, User

Headers = tuple[tuple[str, str], ...]
ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Config(msgspec.Struct, frozen=True):
    """A server and an account. `impersonation` goes as headers with every request."""

    server: str
    namespace: str = "default"
    trust: Trust = Trust()
    credentials: Credentials = Fixed()
    impersonation: Headers = ()
    proxy: str = ""
    compress: bool = True
    source: str = ""

    def __repr__(self) -> str:
        return f"Config({self.server!r}, namespace={self.namespace!r}, source={self.source!r})"


def load(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    namespace: str | None = None,
    as_user: str | None = None,
) -> Config:
    """The configuration that kubectl would use here: `kubeconfig`, else `KUBECONFIG`, else the
    file in the home folder, else the pod's own account."""
    # Imported here because a controller in a pod needs no YAML.
    from mpi_trainer.kube.kubeconfig import User, read
    from mpi_trainer.kube.users import impersonation

    paths = _paths(kubeconfig)
    files = read(paths)
    if not files.files:
        if kubeconfig is None and context is None and in_pod():
            config = in_cluster()
            return msgspec.structs.replace(
                config,
                namespace=namespace or config.namespace,
                impersonation=impersonation(User(), as_user),
            )
        raise ConfigError(
            f"no kubeconfig: {', '.join(map(str, paths))}: no such file;"
            " set KUBECONFIG, or log in to a cluster first"
        )
    try:
        return _chosen(files, context or files.current, namespace, as_user)
    except ConfigError as error:
        raise ConfigError(f"{', '.join(map(str, files.files))}: {error}") from None


def in_cluster(account: Path = ACCOUNT) -> Config:
    """The configuration of a pod, from its service account. The token is read again as it turns."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError("not in a pod: KUBERNETES_SERVICE_HOST and _PORT are not set")
    token = TokenFile(account / "token")
    token.fetch()
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    space = account / "namespace"
    return Config(
        server=server,
        namespace=(space.read_text().strip() if space.exists() else "") or "default",
        trust=Trust(authority_file=str(account / "ca.crt")),
        credentials=token,
        proxy=proxy_for(server, os.environ),
        compress=False,
        source=str(account),
    )


def in_pod(account: Path = ACCOUNT) -> bool:
    """Whether `in_cluster` has what it needs."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (account / "token").exists()


def _paths(kubeconfig: str | Path | None) -> list[Path]:
    if kubeconfig is not None:
        path = Path(kubeconfig).expanduser()
        if not path.exists():
            raise ConfigError(f"{path}: no such file; say where the kubeconfig is")
        return [path]
    listed = os.environ.get("KUBECONFIG", "")
    paths = [Path(part) for part in listed.split(os.pathsep) if part]
    return paths or [Path.home() / ".kube" / "config"]


def _chosen(files: Kubeconfig, name: str, namespace: str | None, as_user: str | None) -> Config:
    from mpi_trainer.kube import servers
    from mpi_trainer.kube.users import credentials, impersonation

    known = ", ".join(files.contexts) or "none"
    if not name:
        raise ConfigError(f"current-context: none is set; choose a context (there are: {known})")
    if name not in files.contexts:
        raise ConfigError(f"there is no context {name!r}; choose another one (there are: {known})")
    context = files.contexts[name]
    if context.cluster not in files.clusters:
        raise ConfigError(f"context {name!r}: there is no cluster {context.cluster!r}")
    cluster, cluster_folder = files.clusters[context.cluster]
    user, folder = _user(files, name, context.user)
    server = servers.address(cluster, user)
    safe = server.startswith("https:")
    for_plugin = servers.exec_plugin_cluster(cluster, cluster_folder) if user.exec else {}
    proxy = checked_proxy(cluster.proxy_url, "proxy-url") if cluster.proxy_url else ""
    return Config(
        server=server,
        namespace=namespace or context.namespace or "default",
        trust=servers.trust(cluster, cluster_folder, user, folder),
        # As kubectl: over plain HTTP (`kubectl proxy`) no secret is sent.
        credentials=credentials(user, folder, for_plugin) if safe else Fixed(),
        impersonation=impersonation(user, as_user),
        proxy=proxy or proxy_for(server, os.environ),
        compress=not cluster.disable_compression,
        source=f"context {name} of {', '.join(map(str, files.files))}",
    )


def _user(files: Kubeconfig, context: str, name: str) -> tuple[User, Path]:
    from mpi_trainer.kube.kubeconfig import User

    if name and name not in files.users:
        raise ConfigError(f"context {context!r}: there is no user {name!r}")
    return files.users[name] if name else (User(), Path())
