"""JobSet as a process of this machine, for a cluster whose nodes are fake and can run no pods.

Its webhooks are real: the published ones, by address instead of by Service.
"""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from tools.cluster import pki, published
from tools.cluster.build import build
from tools.cluster.components import JOBSET, KUBECTL
from tools.cluster.ports import unused_port
from tools.cluster.spec import Spec

Object = dict[str, Any]
_NAME = "jobset-webhook"


class HostJobSet(msgspec.Struct, frozen=True):
    """How to start it; `definitions` first, `webhooks` once it listens on `port`."""

    argv: tuple[str, ...]
    env: dict[str, str]
    port: int
    definitions: tuple[Object, ...]
    webhooks: tuple[Object, ...]


def prepared(spec: Spec, kubeconfig: Path, folder: Path) -> HostJobSet:
    """Writes configuration and certificate into `folder`."""
    certificates, port = folder / "certificates", unused_port()
    certificates.mkdir(parents=True)
    keys = spec.state / "pki"
    pki.issue(keys, pki.Identity(_NAME, _NAME, "", ("localhost", "127.0.0.1")))
    for ending in ("crt", "key"):
        shutil.copy(keys / f"{_NAME}.{ending}", certificates / f"tls.{ending}")
    config: Object = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"port": port, "certDir": str(certificates)},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{unused_port()}"},
        "metrics": {"bindAddress": f"127.0.0.1:{unused_port()}"},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    built = build([JOBSET, KUBECTL])
    kubectl = built[KUBECTL.name].bin / "kubectl"
    objects = published.rendered(kubectl, built[JOBSET.name].source, published.PUBLISHED["jobset"])
    trusted = base64.b64encode((keys / "ca.crt").read_bytes()).decode()
    return HostJobSet(
        argv=(str(built[JOBSET.name].bin / "jobset"), f"--config={folder / 'config.yaml'}"),
        env={"KUBECONFIG": str(kubeconfig), "TMPDIR": str(folder)},
        port=port,
        definitions=tuple(o for o in objects if o["kind"] == "CustomResourceDefinition"),
        webhooks=tuple(
            _by_address(o, port, trusted)
            for o in objects
            if o["kind"].endswith("WebhookConfiguration")
        ),
    )


def _by_address(configuration: Object, port: int, trusted: str) -> Object:
    def moved(hook: Object) -> Object:
        path = hook["clientConfig"]["service"].get("path", "")
        client = {"url": f"https://localhost:{port}{path}", "caBundle": trusted}
        return {**hook, "clientConfig": client}

    return {**configuration, "webhooks": [moved(hook) for hook in configuration["webhooks"]]}
