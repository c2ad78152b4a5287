"""Whether a cluster is configured here, as kubectl would find it, at the cost of a `stat`."""

from __future__ import annotations

import os
from collections.abc import Mapping

CHOICE = "MPI_TRAINER_BACKEND"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


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
    # pathlib costs 5 ms here.
    return bool(home) and os.path.exists(f"{home}/.kube/config")  # noqa: PTH110
