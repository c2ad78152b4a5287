"""Gang schedulers beside the cluster's own: coscheduling of scheduler-plugins, and Volcano.

Both are processes beside the control plane, as its own scheduler is; their projects publish them
as Helm charts. Danger: they take the definitions of their kinds for granted when they start.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tools.cluster.addresses import Port
from tools.cluster.build import Built
from tools.cluster.spec import Spec

SCHEDULER_NAME: Final = "scheduler-plugins-scheduler"
"""of coscheduling, as its chart names it"""
DEFINITIONS: Final = {
    "coscheduling": "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
    "volcano": "config/crd/volcano/bases",
}
"""add-on -> file or folder in its module"""
SERVED: Final = {
    "coscheduling": ("/apis/scheduling.x-k8s.io/v1alpha1/podgroups",),
    "volcano": (
        "/apis/scheduling.volcano.sh/v1beta1/podgroups",
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        "/apis/topology.volcano.sh/v1alpha1/hypernodes",
        "/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies",
    ),
}
"""add-on -> what the API server must answer for before it starts"""
_PATIENCE_SECONDS: Final = 10
"""how long coscheduling keeps places for a gang that is not whole"""


def coscheduling_config(spec: Spec) -> dict[str, object]:
    """As its chart has it, with the one plugin that we are about."""
    plugin = "Coscheduling"
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(spec.state / "coscheduling.kubeconfig")},
        "profiles": [
            {
                "schedulerName": SCHEDULER_NAME,
                "plugins": {
                    "multiPoint": {
                        "enabled": [{"name": plugin}],
                        "disabled": [{"name": "PrioritySort"}],
                    }
                },
                "pluginConfig": [
                    {"name": plugin, "args": {"permitWaitingTimeSeconds": _PATIENCE_SECONDS}}
                ],
            }
        ],
    }


def volcano_config() -> str:
    """The scheduler's configuration as the chart has it."""
    first, second = (
        ["priority", "gang", "conformance"],
        [*("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack")],
    )
    unpreempted = {"gang", "drf"}
    tiers = [
        {
            "plugins": [
                {"name": name, **({"enablePreemptable": False} if name in unpreempted else {})}
                for name in tier
            ]
        }
        for tier in (first, second)
    ]
    return json.dumps({"actions": "enqueue, allocate, backfill", "tiers": tiers})


def commands(spec: Spec, name: str, built: Built) -> dict[str, list[str]]:
    """What to start for an add-on: name of the process -> command. Writes its configuration."""
    config = spec.state / f"{name}.kubeconfig"
    if name == "coscheduling":
        return {name: _coscheduling(spec, config, built.bin / name)}
    settings = spec.state / "volcano-scheduler.json"
    settings.write_text(volcano_config())
    common = [f"--kubeconfig={config}", "--leader-elect=false", "--v=3"]
    # Without admission of its own: it validates what people write, and the controller closes gaps.
    controllers = ["--controllers=queue-controller,pg-controller"]
    return {
        "volcano-scheduler": [
            str(built.bin / "vc-scheduler"),
            *common,
            f"--scheduler-conf={settings}",
            "--cache-dumper=false",
        ],
        "volcano-controllers": [str(built.bin / "vc-controllers"), *common, *controllers],
    }


def _coscheduling(spec: Spec, config: Path, program: Path) -> list[str]:
    settings = spec.state / "coscheduling.json"
    settings.write_text(json.dumps(coscheduling_config(spec)))
    pki = spec.state / "pki"
    return [
        str(program),
        f"--config={settings}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={spec.addresses.port(Port.COSCHEDULING)}",
        f"--tls-cert-file={pki / 'etcd.crt'}",
        f"--tls-private-key-file={pki / 'etcd.key'}",
        "--v=2",
    ]
