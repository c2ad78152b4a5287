"""Whether a cluster is configured here, as kubectl would find it, at the cost of one `stat`."""

from __future__ import annotations

import os
from collections.abc import Mapping

CHOICE = "MPI_TRAINER_BACKEND"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def configured(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether kubectl would find a cluster here without being told."""
    if environ.get("KUBECONFIG"):
        return True
    home = environ.get("HOME", "")
    if home and os.path.exists(f"{home}/.kube/config"):  # noqa: PTH110 - pathlib costs 5 ms here
        return True
    if environ.get("OPENSHIFT_API_URL"):
        return True
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and os.path.exists(_ACCOUNT)  # noqa: PTH110
