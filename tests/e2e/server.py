"""The server in pods of a cluster, by its manifests and image, and a way to it from here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.cluster import Kubectl, eventually
from tests.e2e.operator import MANIFESTS
from tests.rpc import Ports
from tools.cluster.report import environment

SERVER = "mpi-trainer-server"
_FORWARDING = re.compile(r"127\.0\.0\.1:(\d+) -> (\d+)")


@contextmanager
def deployed(home: Kubectl, folder: Path, over: str = "base") -> Iterator[Ports]:
    """REST and gRPC of a folder of `manifests/server`, in a namespace that is there. A port forward
    enters the pod itself, past its network policy; who comes otherwise must be let in."""
    overlay = folder / "server"
    overlay.mkdir()
    root = Path(*[".."] * (len(overlay.parts) - 1)) / MANIFESTS.relative_to("/") / "server"
    wanted = {
        "namespace": home.namespace,
        "resources": [str(root / over)],
        "components": [str(root / "grpc")],
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    home("apply", "-k", str(overlay))
    rollout = ("rollout", "status", f"deployment/{SERVER}", "--timeout=120s")
    ended = home.attempt(*rollout, seconds=130)
    assert ended.returncode == 0, ended.stderr + home("get", "pods,events", "-o", "wide")
    with forwarded(home, replicas(home)[0], folder / "forward", 8080, 9090) as (rest, rpc):
        yield Ports(rest, rpc)


def replicas(home: Kubectl) -> list[str]:
    """The server's pods, the oldest first."""
    found = home.read("api/v1/pods?labelSelector=app.kubernetes.io/component=server")["items"]
    meta = sorted((one["metadata"]["creationTimestamp"], one["metadata"]["name"]) for one in found)
    return [f"pod/{name}" for _, name in meta]


@contextmanager
def forwarded(kubectl: Kubectl, target: str, log: Path, *ports: int) -> Iterator[list[int]]:
    """The ports of this machine that lead to these."""
    words = ["kubectl", f"--namespace={kubectl.namespace}", "port-forward", target]
    words += [f":{port}" for port in ports]
    found: dict[str, str] = {}

    def there() -> bool:
        found.update({port: own for own, port in _FORWARDING.findall(log.read_text())})
        return process.poll() is not None or len(found) == len(ports)

    with (
        log.open("w") as output,
        subprocess.Popen(
            [*words, "--address=127.0.0.1"],
            env=environment(kubectl.spec),
            stdout=output,
            stderr=output,
        ) as process,
    ):
        try:
            eventually("ports are forwarded", there, 30)
            assert process.poll() is None, log.read_text()
            yield [int(found[str(port)]) for port in ports]
        finally:
            process.terminate()
