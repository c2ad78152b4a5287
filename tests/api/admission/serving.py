"""The webhook as a real process in front of a real API server, with the rights of its account."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.api.accounts import with_token
from tests.cluster import Kubectl, eventually
from tools.cluster.report import environment
from tools.cluster.spec import Spec
from tools.crds import definition
from tools.crds.conversion import converting

ROOT = Path(__file__).parents[3]
POLICIES = str(ROOT / "manifests" / "policies")
NAMESPACE = "mpi-trainer"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:mpi-trainer"
CONFIGURATION = "admission.mpi-trainer.opendatahub.io"
DEFINITION = "mpijobs.kubeflow.org"
CONVERSION_RIGHTS = ROOT / "manifests/overlays/conversion/rights.yaml"
PROGRAM = ("-m", "mpi_trainer.webhook")


class Server(msgspec.Struct, frozen=True):
    """One replica: its process and where it can be asked how it is."""

    process: subprocess.Popen[bytes]
    port: int
    probe_port: int

    def ready(self) -> bool:
        assert self.process.poll() is None, "the webhook has ended; its log says why"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.probe_port}/readyz", timeout=2):
                return True
        except OSError:
            return False

    def metrics(self) -> str:
        url = f"http://127.0.0.1:{self.probe_port}/metrics"
        with urllib.request.urlopen(url, timeout=5) as answer:
            text: str = answer.read().decode()
            return text

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)


def install(kubectl: Kubectl) -> None:
    """What an administrator installs, but for the Deployments: kubelets are not here."""
    crds = str(ROOT / "manifests" / "crds")
    kubectl("apply", "--server-side", "--force-conflicts", "-k", crds)
    eventually("mpijobs are served", lambda: not kubectl.attempt("get", "mpijobs").returncode)
    wanted = [
        *rendered(kubectl, "overlays/kubernetes", {"Deployment", "PodDisruptionBudget"}),
        *rendered(kubectl, "webhook", {"Deployment", "PodDisruptionBudget"}),
    ]
    own = Kubectl(kubectl.spec, NAMESPACE)
    own.apply(*(o for o in wanted if not o["kind"].endswith("WebhookConfiguration")))
    kubectl("apply", "-k", POLICIES)


def convert(kubectl: Kubectl, port: int, storage: str = "v2beta1") -> None:
    """The definition with the older versions, which are converted at this machine's address; of a
    bundle that is there nothing is said, so that it stays."""
    made = converting(definition.definition())["spec"]
    for version in made["versions"]:
        version["storage"] = version["name"] == storage
    client = {"url": f"https://localhost:{port}/convert-mpijob", "service": None}
    made["conversion"]["webhook"]["clientConfig"] = client
    change = {"spec": {"versions": made["versions"], "conversion": made["conversion"]}}
    kubectl("patch", "crd", DEFINITION, "--type=merge", f"--patch={json.dumps(change)}")


def rendered(kubectl: Kubectl, folder: str, without: set[str]) -> list[dict[str, Any]]:
    text = kubectl("kustomize", str(ROOT / "manifests" / folder))
    objects = [o for o in yaml.safe_load_all(text) if o and o["kind"] not in without]
    cluster_wide = ("Namespace", "ClusterRole", "ClusterRoleBinding")
    for o in objects:
        if o["kind"] not in cluster_wide and not o["kind"].endswith("Configuration"):
            o["metadata"].setdefault("namespace", NAMESPACE)
        for subject in o.get("subjects", ()):
            subject.setdefault("namespace", NAMESPACE)
    return objects


def configure(kubectl: Kubectl, port: int) -> None:
    """The published configurations, with this machine's address in place of the Service's.

    Where a bundle is there already it stays: the webhook has put it there.
    """
    bundles: dict[str, str] = {}
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        found = kubectl.attempt("get", kind, CONFIGURATION, "-o", "json")
        if found.returncode == 0:
            hooks = json.loads(found.stdout)["webhooks"]
            bundles |= {h["name"]: h["clientConfig"].get("caBundle", "") for h in hooks}
    objects = [
        o for o in rendered(kubectl, "webhook", set()) if o["kind"].endswith("WebhookConfiguration")
    ]
    for o in objects:
        for hook in o["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {"url": f"https://localhost:{port}{path}"}
            if bundle := bundles.get(hook["name"]):
                hook["clientConfig"]["caBundle"] = bundle
    kubectl.apply(*objects)


@contextmanager
def serving(
    spec: Spec, folder: Path, port: int, *flags: str, program: tuple[str, str] = PROGRAM
) -> Iterator[Server]:
    """A replica, from its start until the end of the block; its log lies in `folder`."""
    kubectl = Kubectl(spec)
    # First, so that the webhook finds where to tell of its authority when it first looks.
    configure(kubectl, port)
    server = start(spec, folder, port, *flags, program=program)
    try:
        eventually("the webhook is ready", server.ready)
        eventually("its authority is known", lambda: _trusted(kubectl), 40)
        yield server
    finally:
        server.stop()


def start(
    spec: Spec, folder: Path, port: int, *flags: str, program: tuple[str, str] = PROGRAM
) -> Server:
    """The process alone."""
    probe_port = port + 1
    account = with_token(Kubectl(spec, NAMESPACE), "mpi-trainer-webhook").kubeconfig(folder)
    log = (folder / f"webhook-{port}.log").open("ab")
    command = [
        *(sys.executable, *program, "--kubeconfig", str(account)),
        *("--port", str(port), "--probe-port", str(probe_port), "--namespace", NAMESPACE),
        *("--host-name", "localhost", "--maker", ACCOUNT, "--grace-seconds", "0.5"),
        *flags,
    ]
    process = subprocess.Popen(command, env=environment(spec), stdout=log, stderr=log)
    log.close()
    return Server(process, port, probe_port)


def _trusted(kubectl: Kubectl) -> bool:
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        hooks = kubectl.get(kind, CONFIGURATION)["webhooks"]
        if not all(hook["clientConfig"].get("caBundle") for hook in hooks):
            return False
    return True


def remove(kubectl: Kubectl) -> None:
    kubectl("delete", "-k", POLICIES, "--ignore-not-found")
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        kubectl("delete", kind, CONFIGURATION, "--ignore-not-found")


def quota(kubectl: Kubectl, hard: dict[str, str]) -> None:
    """A quota called `team`, once its status is counted."""
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "team"},
            "spec": {"hard": hard},
        }
    )
    eventually(
        "the quota is counted",
        lambda: bool(kubectl.get("resourcequota", "team").get("status", {}).get("hard")),
    )
