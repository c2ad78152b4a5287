"""The Go trainer's webhooks and ours, over the same table: they differ where the table says so.

Upstream's definitions, its webhook configurations and its controller have an API server of their
own. What it refuses is marked SAME or SCHEMA in the table; what we refuse beyond it, EXTRA.
Issue 9, Shows 5.
"""

from __future__ import annotations

import base64
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.runtime.certificates import first_chain
from tests.api.admission.test_trainjobs import DENIED, numbered, stored, tried
from tests.cluster import Kubectl, eventually, shared_cluster
from tests.unit.api.traincases import EXTRA, REFUSED, RUNTIMES, RUNTIMES_REFUSED, TAKEN
from tools.cluster.build import build, source_of
from tools.cluster.components import JOBSET, TRAINER
from tools.cluster.report import environment
from tools.cluster.spec import Spec

PORT = 19843
SETTINGS = {
    "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
    "kind": "Configuration",
    "health": {"healthProbeBindAddress": "127.0.0.1:0"},
    "metrics": {"bindAddress": "0"},
    "webhook": {"port": PORT, "host": "127.0.0.1"},
    "leaderElection": {"leaderElect": False},
    "certManagement": {"enable": False},
}


@pytest.fixture(scope="module")
def peer_server() -> Iterator[Spec]:
    yield from shared_cluster(Spec(name="test-peer-webhook", profile="api"))


@pytest.fixture(scope="module")
def upstream(peer_server: Spec, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """kubectl in a namespace of an API server with the Go trainer in front of it."""
    kubectl, inside = Kubectl(peer_server), Kubectl(peer_server, "table")
    source = source_of(TRAINER)
    _install(kubectl, source)
    folder = tmp_path_factory.mktemp("trainer")
    bundle = _certificates(folder)
    with _serving(peer_server, folder) as process:
        eventually("the Go webhook answers", _answers, 60)
        assert process.poll() is None, "something else answers on its port"
        _configure(kubectl, source, bundle)
        kubectl.apply(*(stored(name, value) for name, value in RUNTIMES.items()))
        kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "table"}})
        eventually("account", lambda: not inside.attempt("get", "sa", "default").returncode)
        yield inside
        assert process.poll() is None, (folder / "trainer.log").read_text()[-2000:]


def _install(kubectl: Kubectl, source: Path) -> None:
    crds = [
        *sorted((source / "manifests/base/crds").glob("trainer*.yaml")),
        source_of(JOBSET) / "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
    ]
    for file in crds:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    for kind in ("trainjobs", "trainingruntimes", "clustertrainingruntimes", "jobsets"):
        eventually(kind, lambda kind=kind: not kubectl.attempt("get", kind).returncode)  # type: ignore[misc]


def _certificates(folder: Path) -> str:
    """Where the Go webhook looks for them; what the API server is to trust, for a configuration."""
    chain = first_chain(("localhost",), datetime.now(UTC))
    place = folder / "k8s-webhook-server" / "serving-certs"
    place.mkdir(parents=True)
    (place / "tls.crt").write_bytes(chain.server.certificate)
    (place / "tls.key").write_bytes(chain.server.key)
    return base64.b64encode(chain.bundle).decode()


@contextmanager
def _serving(spec: Spec, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    settings = folder / "settings.yaml"
    settings.write_text(yaml.safe_dump(SETTINGS))
    program = build([TRAINER])[TRAINER.name].bin / "trainer-controller-manager"
    with (folder / "trainer.log").open("wb") as log:
        process = subprocess.Popen(
            [program, f"--config={settings}"],
            env={**environment(spec), "TMPDIR": str(folder)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers() -> bool:
    try:
        with socket.create_connection(("127.0.0.1", PORT), 1):
            return True
    except OSError:
        return False


def _configure(kubectl: Kubectl, source: Path, bundle: str) -> None:
    text = (source / "manifests/base/webhook/manifests.yaml").read_text()
    objects = [one for one in yaml.safe_load_all(text) if one]
    for one in objects:
        for hook in one["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            url = f"https://localhost:{PORT}{path}"
            hook["clientConfig"] = {"url": url, "caBundle": bundle}
    kubectl.apply(*objects)


def refused(kubectl: Kubectl, objects: list[dict[str, Any]]) -> set[int]:
    """The numbers of those that are refused; each is tried by itself, as a user would."""
    said = [tried(kubectl, one) for one in objects]
    assert all(DENIED.search(text) or "created" in text for text in said), said
    return {n for n, text in enumerate(said) if "created" not in text}


def test_jobs_are_refused_as_upstream_does_but_for_the_listed_ones(upstream: Kubectl) -> None:
    found = refused(upstream, [numbered(n, one) for n, one in enumerate(REFUSED)])
    wanted = {n for n, one in enumerate(REFUSED) if one.by != EXTRA}
    assert [REFUSED[n] for n in sorted(found ^ wanted)] == []


def test_jobs_that_we_take_are_taken_by_upstream(upstream: Kubectl) -> None:
    found = refused(upstream, [numbered(n, one) for n, one in enumerate(TAKEN)])
    assert [TAKEN[n] for n in sorted(found)] == []


def test_runtimes_are_refused_as_upstream_does_but_for_the_listed_ones(upstream: Kubectl) -> None:
    made = [stored(f"bad-{n}", value) for n, (value, _, _) in enumerate(RUNTIMES_REFUSED)]
    wanted = {n for n, (_, _, by) in enumerate(RUNTIMES_REFUSED) if by != EXTRA}
    assert [RUNTIMES_REFUSED[n][1] for n in sorted(refused(upstream, made) ^ wanted)] == []
