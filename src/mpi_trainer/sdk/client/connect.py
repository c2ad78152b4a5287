"""Where jobs go: the cluster that is found here, else this machine.

In this order: what the caller says; `MPI_TRAINER_BACKEND=local`; a kubeconfig (`KUBECONFIG`, else
the one that `oc login` writes); the user's token in an OpenShift AI workbench; the account of the
pod that this runs in; this machine, which is said once. Every client and every job asks for a
connection of its own, so that two logins in one notebook never meet. Nothing is sent before the
first call. `odh` imports this module in every command, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from mpi_trainer.kube.config import Config
    from mpi_trainer.sdk.backends.backend import Backend

CHOICE = "MPI_TRAINER_BACKEND"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_said: list[str] = []


def connect(
    *,
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    namespace: str | None = None,
    as_user: str | None = None,
    local: bool | None = None,
    say: Callable[[str], None] | None = None,
) -> Backend:
    """A new connection to where jobs run.

    Args:
        kubeconfig: The file that says which cluster and who you are.
        context: A context of that file; by default its current one.
        namespace: Where jobs go that name no namespace; by default the context's.
        as_user: Act as this user (impersonation).
        local: True takes this machine, False a cluster or nothing.
        say: Hears what a person should know; by default it goes to standard error.

    Raises:
        JobError: A cluster was asked for, and its configuration cannot be used.
    """
    asked = kubeconfig is not None or context is not None or as_user is not None
    if local is None and not asked:
        local = True if os.environ.get(CHOICE) == "local" else None
    if local is False or asked or (local is None and configured()):
        return _on_cluster(_config(kubeconfig, context, namespace, as_user), say)
    if local is None:
        _say_once("no cluster is configured here, so jobs run on this machine", say)
    from mpi_trainer.sdk.backends.local.backend import LocalBackend

    return LocalBackend()


def cluster_config(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    namespace: str | None = None,
    as_user: str | None = None,
) -> Config:
    """The address of the cluster that is meant and our account there.

    Raises:
        ConfigError: There is none, or its configuration cannot be used.
    """
    from mpi_trainer.kube import config

    asked = kubeconfig is not None or context is not None or as_user is not None
    if not asked and not kubeconfig_exists():
        from mpi_trainer.sdk.client import workbench

        if workbench.has_login():
            return workbench.config(namespace)
    return config.load(kubeconfig, context, namespace, as_user)


def _config(
    kubeconfig: str | Path | None,
    context: str | None,
    namespace: str | None,
    as_user: str | None,
) -> Config:
    from mpi_trainer.kube.errors import ConfigError
    from mpi_trainer.sdk.backends.cluster.errors import translated

    try:
        return cluster_config(kubeconfig, context, namespace, as_user)
    except ConfigError as error:
        raise translated(error) from error


def _on_cluster(config: Config, say: Callable[[str], None] | None) -> Backend:
    from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend

    return ClusterBackend(config, say) if say else ClusterBackend(config)


def _say_once(text: str, say: Callable[[str], None] | None) -> None:
    if say is not None:
        say(text)
    elif text not in _said:
        _said.append(text)
        print(f"mpi-trainer: {text}", file=sys.stderr, flush=True)


def configured(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether there is a cluster to be found without being told."""
    if kubeconfig_exists(environ) or environ.get("OPENSHIFT_API_URL"):
        return True
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and os.path.exists(_ACCOUNT)  # noqa: PTH110


def kubeconfig_exists(environ: Mapping[str, str] = os.environ) -> bool:
    """`KUBECONFIG` is an answer even where its files are missing: then that is the error."""
    if environ.get("KUBECONFIG"):
        return True
    home = environ.get("HOME", "")
    return bool(home) and os.path.exists(f"{home}/.kube/config")  # noqa: PTH110
