"""The Go trainer as a process of this machine, against a cluster without nodes; for comparison.

It serves nobody's admission: its webhooks listen, because it will not start without, and no
configuration of the API server names them. Everything that it needs is in one folder.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from tools.cluster.build import build
from tools.cluster.components import TRAINER
from tools.cluster.ports import unused_port
from tools.cluster.spec import Spec


class Limits(msgspec.Struct, frozen=True):
    """Requests a second, in a burst, and jobs at a time; what is not named is as published."""

    qps: int = 50
    burst: int = 100
    jobs: int = 5


PUBLISHED = Limits()
RAISED = Limits(qps=1000, burst=2000, jobs=16)


class HostTrainer(msgspec.Struct, frozen=True):
    """How to start it."""

    argv: tuple[str, ...]
    env: dict[str, str]


def source() -> Path:
    """Its module, with its manifests."""
    return build([TRAINER])[TRAINER.name].source


def prepared(spec: Spec, kubeconfig: Path, folder: Path, limits: Limits = PUBLISHED) -> HostTrainer:
    """Writes configuration and certificate into `folder`."""
    certificates = folder / "k8s-webhook-server" / "serving-certs"
    certificates.mkdir(parents=True)
    for name, target in (("admin.crt", "tls.crt"), ("admin.key", "tls.key")):
        shutil.copy(spec.state / "pki" / name, certificates / target)
    config: dict[str, Any] = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "webhook": {"port": unused_port(), "host": "127.0.0.1"},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{unused_port()}"},
        "certManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": limits.qps, "burst": limits.burst},
        "controller": {
            "groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": limits.jobs},
        },
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    program = build([TRAINER])[TRAINER.name].bin / "trainer-controller-manager"
    argv = (str(program), f"--config={folder / 'config.yaml'}", f"--kubeconfig={kubeconfig}")
    return HostTrainer(argv, {"TMPDIR": str(folder), "HOME": str(folder)})
